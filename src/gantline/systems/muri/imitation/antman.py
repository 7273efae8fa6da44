"""AntMan as Muri's simulator has it: guaranteed jobs own GPUs, opportunistic ones fit into the gaps of their stages; nothing is stopped.

Its authors call it not finished: memory always suffices, and a GPU holds at most one job of each class.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from functools import lru_cache

from gantline.models.sharing.stage_cycles import Stages
from gantline.systems.antman.policies.seats import gang_seats
from gantline.systems.muri.imitation.clock import MuriGroup
from gantline.systems.muri.imitation.jobs import MuriJob

_BY_GUARANTEED, _BY_RESERVED = 0.1, 0.09
"""How much a GPU is used by a job that runs, and by one that waits for more. A guest uses 0.9, and no other is let in above 0.8."""


class AntManSchedule:
    """GPUs with their owner and their guest; a guaranteed job that does not fit whole keeps what it can get until it does."""

    def __init__(self, nodes: Sequence[Sequence[int]]) -> None:
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

    def look_again(self, now: float) -> float:
        return math.inf

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
            seats = self._free(self._nodes[self._waits_for[job]])
        else:
            seats = gang_seats(job.gpus, [self._free(node) for node in self._nodes], self._width)
        more = seats[: job.gpus - len(mine)]
        mine += more
        self._without_owner -= len(more)
        self._owner.update(dict.fromkeys(more, job))
        if len(mine) < job.gpus <= max(self._width):
            self._waits_for[job] = next(at for at, node in enumerate(self._nodes) if mine[0] in node)
        return len(mine) == job.gpus

    def _free(self, node: Sequence[int]) -> list[int]:
        return [device for device in node if self._owner[device] is None]

    def _let_in(self, job: MuriJob) -> bool:
        """Seat an opportunistic job on the GPUs that are used least, wherever they are; a GPU with a guest is used too much."""
        if job.gpus > self._without_guest:
            return False
        seats = sorted((device for device, guest in self._guest.items() if guest is None), key=self._use)[: job.gpus]
        self._held[job] = seats
        self._without_guest -= job.gpus
        self._guest.update(dict.fromkeys(seats, job))
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
