"""The schedules of Muri's simulator: Muri itself, and the baselines SRTF, SRSF, Tiresias, Themis and AntMan."""

from __future__ import annotations

import math
from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import attrgetter

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.sharing.stage_cycles import ALONE, DISTURBED, Stages
from gantline.systems.antman.policies import gang_devices
from gantline.systems.muri.imitation.clock import EventSchedule, MuriGroup, MuriJob
from gantline.systems.muri.policies import Grouping

# Muri in its authors' simulator: an order by what is left or what was had, kept as a list from event to event, and groups.


UNMATCHED = (*DISTURBED[:3], 1.3 / ALONE)
"""The authors reckon with other figures where groups are not matched."""


class MuriSchedule(EventSchedule):
    """Jobs in order, grouped, and the groups in the order of their first members as far as they fit."""

    def __init__(self, devices: int, stages: Sequence[Stages], *, known: bool, matching: bool, worst: bool, most: int) -> None:
        super().__init__(devices)
        self._value = _left if known else _had
        disturbed = DISTURBED if matching else UNMATCHED
        self._grouping: Grouping[MuriJob] = Grouping(stages, matching=matching, worst=worst, most=most, disturbed=disturbed)

    def decide(self, now: float) -> list[MuriGroup]:
        value = dict(zip(self._listed, map(self._value, self._listed)))
        self._listed.sort(key=value.__getitem__)
        bunches = self._grouping.form(self._listed, self._devices)
        bunches.sort(key=lambda bunch: min(map(value.__getitem__, bunch)))
        room, groups = self._devices, []
        for bunch in bunches:
            if bunch[0].gpus <= room:
                room -= bunch[0].gpus
                groups.append(MuriGroup(bunch, self._grouping.period(bunch)))
        self._listed.sort(key=attrgetter("gpus"), reverse=True)
        return groups


def _left(job: MuriJob) -> float:
    """The GPU-seconds that are left; until its first run a job has the length that the trace says."""
    return (job.alone if job.ran > 0.0 else job.duration) * job.gpus


def _had(job: MuriJob) -> float:
    """The GPU-seconds that it had, where those left are not known."""
    return job.ran * job.gpus


# The schedulers that Muri is compared with and that keep an order: SRTF, SRSF and Tiresias, one job on a GPU at a time.

LIMITS = (3250.0, 7200.0)
"""GPU-seconds at which Tiresias moves a job to the next queue."""


def admit(order: Iterable[MuriJob], devices: int) -> list[MuriGroup]:
    """Jobs by themselves, in order, those that do not fit left out."""
    groups = []
    for job in order:
        if job.gpus <= devices:
            devices -= job.gpus
            groups.append(MuriGroup((job,), job.step))
    return groups


class ShortestSchedule(EventSchedule):
    """By a key, least first; jobs of equal keys stay in the order in which the event before left them."""

    def __init__(self, devices: int, key: Callable[[MuriJob], float]) -> None:
        super().__init__(devices)
        self._key = key

    def decide(self, now: float) -> list[MuriGroup]:
        self._listed.sort(key=self._key)
        return admit(self._listed, self._devices)


class TiresiasSchedule(EventSchedule):
    """Three queues by attained GPU-time; in each the jobs that run stand before those that wait."""

    def __init__(self, devices: int) -> None:
        super().__init__(devices)
        self._queues: list[list[MuriJob]] = [[] for _ in range(len(LIMITS) + 1)]
        self._level: dict[MuriJob, int] = {}  # in the order of arrival
        self._running: list[MuriJob] = []

    def arrive(self, job: MuriJob) -> None:
        self._queues[0].append(job)
        self._level[job] = 0

    def end(self, job: MuriJob) -> None:
        self._queues[self._level.pop(job)].remove(job)

    def decide(self, now: float) -> list[MuriGroup]:
        for job, level in self._level.items():
            if job.running and level < len(LIMITS) and job.ran * job.gpus >= LIMITS[level]:
                self._queues[level].remove(job)
                self._queues[level + 1].append(job)
                self._level[job] = level + 1
        room = self._devices
        self._running = []
        for level, queue in enumerate(self._queues):
            runs, waits = list[MuriJob](), list[MuriJob]()
            for job in queue:
                if job.gpus <= room:
                    room -= job.gpus
                    runs.append(job)
                else:
                    waits.append(job)
            self._queues[level] = runs + waits
            self._running += runs
        return [MuriGroup((job,), job.step) for job in self._running]

    def look_again(self, now: float) -> float:
        """The next demotion; one that is overdue waits for whatever comes next, since a job moves by one queue an event.

        So does one that is nearer than the clock can tell: an event now would find the job as it is.
        """
        level = self._level
        running = [job for job in self._running if level[job] < len(LIMITS)]
        times = [now + (math.ceil(LIMITS[level[job]] / job.gpus) - job.ran) for job in running]
        return min([time for time in times if time > now], default=math.inf)


# Themis as Muri's simulator has it: shares of the GPUs that bound the worst finish-time fairness, then turns by share over time run.
#
# The time that a job would take on its fair share is counted in iterations there, as if a share were a speed. Only the
# jobs that attain the worst fairness have a share that is determined; here every job gets the least that keeps it no
# worse off.

_HALVINGS = 100
_NEVER_RAN = 1e9


class ThemisSchedule(EventSchedule):
    """Jobs by what they should have had, most first."""

    def __init__(self, devices: int) -> None:
        super().__init__(devices)
        self._isolated: dict[MuriJob, float] = defaultdict(float)  # what is done, over the fair shares at which it would have been done
        self._seen: dict[MuriJob, tuple[float, float]] = {}  # iterations left and fair share at the event before

    def decide(self, now: float) -> list[MuriGroup]:
        jobs = self._listed
        if not jobs:
            return []
        fair = math.ceil(self._devices / len(jobs))
        for job in jobs:
            if job in self._seen:
                left, share = self._seen[job]
                self._isolated[job] += (left - job.left) / share
            self._seen[job] = job.left, min(1.0, fair / job.gpus)
        waited = np.array([now - job.submit for job in jobs])
        alone = np.array([job.alone for job in jobs])
        isolated = np.array([self._isolated[job] + job.left / self._seen[job][1] for job in jobs])
        shares = least_shares(waited, alone, isolated, np.array([float(job.gpus) for job in jobs]), float(self._devices))
        turn = {job: part / job.ran if job.ran > 0.0 else part * _NEVER_RAN for job, part in zip(jobs, shares.tolist(), strict=True)}
        jobs.sort(key=lambda job: -turn[job])
        return admit(jobs, self._devices)


def least_shares(waited: Floats, alone: Floats, isolated: Floats, gpus: Floats, devices: float) -> Floats:
    """The least shares (0 to 1) under which the worst of (waited + alone / share) / isolated is as small as it can be."""

    def bounded(worst: float) -> Floats:
        """The shares with which no job is worse off than that."""
        found: Floats = alone / np.maximum(worst * isolated - waited, alone)
        return found

    low = float(((waited + alone) / isolated).max())
    if gpus @ bounded(low) <= devices:
        return bounded(low)
    high = 2.0 * low
    while gpus @ bounded(high) > devices:
        high *= 2.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if gpus @ bounded(middle) <= devices else (middle, high)
        if high - low <= 1e-12 * high:
            break
    return bounded(high)


# AntMan as Muri's simulator has it: guaranteed jobs own GPUs, opportunistic ones fit into the gaps of their stages; nothing is stopped.
#
# Its authors call it not finished: memory always suffices, and a GPU holds at most one job of each class.

_BY_GUARANTEED, _BY_RESERVED = 0.1, 0.09
"""How much a GPU is used by a job that runs, and by one that waits for more. A guest uses 0.9, and no other is let in above 0.8."""


class AntManSchedule(EventSchedule):
    """GPUs with their owner and their guest; a guaranteed job that does not fit whole keeps what it can get until it does."""

    def __init__(self, nodes: Sequence[Sequence[int]]) -> None:
        super().__init__(sum(map(len, nodes)))
        self._nodes = [list(node) for node in nodes]
        self._width = [len(node) for node in nodes]
        self._owner: dict[int, MuriJob | None] = {device: None for node in nodes for device in node}
        self._guest: dict[int, MuriJob | None] = dict.fromkeys(self._owner)
        self._without_owner = self._without_guest = len(self._owner)
        self._held: dict[MuriJob, list[int]] = {}  # those that run, and what others have reserved
        self._waits_for: dict[MuriJob, int] = {}  # the node on which a job has reserved something
        self._pending: list[MuriJob] = []  # by class, submission and number
        self._runs: dict[MuriJob, MuriGroup] = {}

    def arrive(self, job: MuriJob) -> None:
        insort(self._pending, job, key=_turn)

    def end(self, job: MuriJob) -> None:
        del self._runs[job]
        devices = self._held.pop(job)
        if job.guest:
            self._without_guest += len(devices)
            self._guest.update(dict.fromkeys(devices))
        else:
            self._without_owner += len(devices)
            self._owner.update(dict.fromkeys(devices))
            self._pace_guests(devices)

    def decide(self, now: float) -> list[MuriGroup]:
        waiting = []
        for job in self._pending:
            if not (self._let_in(job) if job.guest else self._reserve(job)):
                waiting.append(job)
                continue
            self._waits_for.pop(job, None)
            devices = self._held[job]
            self._runs[job] = MuriGroup((job,), self._period(job), tuple(devices))
            if not job.guest:
                self._pace_guests(devices)
        self._pending = waiting
        return list(self._runs.values())

    def _reserve(self, job: MuriJob) -> bool:
        """Take what a guaranteed job may have; whether that is all that it needs. What it has in part binds it to that node."""
        if not self._without_owner:
            return False
        mine = self._held.setdefault(job, [])
        if job in self._waits_for:
            chosen = self._free(self._nodes[self._waits_for[job]])
        else:
            chosen = gang_devices(job.gpus, [self._free(node) for node in self._nodes], self._width)
        more = chosen[: job.gpus - len(mine)]
        mine += more
        self._without_owner -= len(more)
        self._owner.update(dict.fromkeys(more, job))
        if len(mine) < job.gpus <= max(self._width):
            self._waits_for[job] = next(at for at, node in enumerate(self._nodes) if mine[0] in node)
        return len(mine) == job.gpus

    def _free(self, node: Sequence[int]) -> list[int]:
        return [device for device in node if self._owner[device] is None]

    def _let_in(self, job: MuriJob) -> bool:
        """Put an opportunistic job on the GPUs that are used least, wherever they are; a GPU with a guest is used too much."""
        if job.gpus > self._without_guest:
            return False
        chosen = sorted((device for device, guest in self._guest.items() if guest is None), key=self._use)[: job.gpus]
        self._held[job] = chosen
        self._without_guest -= job.gpus
        self._guest.update(dict.fromkeys(chosen, job))
        return True

    def _use(self, device: int) -> float:
        """Of a GPU without a guest."""
        owner = self._owner[device]
        return 0.0 if owner is None else _BY_GUARANTEED if owner in self._runs else _BY_RESERVED

    def _pace_guests(self, devices: Sequence[int]) -> None:
        """Guests on these GPUs go at another pace, because a host came or left."""
        for guest in dict.fromkeys(self._guest[device] for device in devices):
            if guest is not None:
                self._runs[guest] = self._runs[guest]._replace(period=self._period(guest))

    def _period(self, job: MuriJob) -> float:
        """A guest waits for as many iterations of the slowest of its hosts as its stages need."""
        if not job.guest:
            return job.step
        hosts = {host for device in self._held[job] if (host := self._owner[device]) is not None and host in self._runs}
        return max([job.step, *(iterations_to_fit(job.stages, host.stages) * host.step for host in hosts)])


def _turn(job: MuriJob) -> tuple[bool, float, int]:
    return job.guest, job.submit, job.number


@lru_cache(maxsize=4096)
def iterations_to_fit(guest: Stages, host: Stages) -> float:
    """Iterations of the host in whose gaps one iteration of the guest fits, stage by stage; the end of a gap serves the next stage."""
    load, gpu, network = guest
    gap = host.gpu + host.network
    count, rest = divmod(load, gap)
    if rest > 0.0:
        count += 1
        gpu -= min(gpu, host.network, gap - rest)
    more, rest = divmod(gpu, host.load + host.network)
    count += more
    if rest > 0.0:
        count += 1
        if rest < host.load:
            network -= min(network, host.load + host.gpu - rest)
    more, rest = divmod(network, host.load + host.gpu)
    count += more
    return count + 1 if rest > host.load else count
