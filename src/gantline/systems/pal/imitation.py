"""The loop of `--regime pal`: FIFO, LAS and SRTF with PAL's placements as its authors' simulator (a fork of Blox) runs them, job by job."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from gantline.core.errors import RefusedError, near
from gantline.core.facts import DeviceSpeeds
from gantline.core.reasons import Reason
from gantline.engine.assembly.from_trace import classes_of
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import HeldInterval, write_intervals, write_jobs
from gantline.policies.placement.picking import DeviceBins, Devices, packed, pal, pm_first, speed_bins
from gantline.traces.trace import Trace

# One round of PAL's placements: from the order of the jobs to which are suspended and which are launched where.


_TABLE_ROWS = (1404, 1096, 1096, 880)
"""Rows of the measurement files of classes A to D: the authors draw each GPU's values from these before anything else."""


class PalEntry(NamedTuple):
    """A job in the order of a round."""

    job: int
    gpus: int
    kind: str


class PalRound(NamedTuple):
    """Which jobs lose their devices, and which get others."""

    suspend: list[int]
    launch: list[tuple[int, Devices]]


Choose = Callable[[Sequence[int], int, DeviceBins], Devices | None]


@dataclass(frozen=True)
class Placing:
    """A rule on a cluster: how one job's devices are chosen, and whether running jobs stay where they are."""

    device_bins: Mapping[str, DeviceBins]
    choose: Choose
    sticky: bool = False
    by_class: bool = False

    @staticmethod
    def named(rule: str, device_bins: Mapping[str, DeviceBins], penalty: float) -> Placing:
        if rule == "pal":
            return Placing(device_bins, lambda free, count, own: pal(free, count, own, penalty, tightest=False), by_class=True)
        if rule == "pm-first":
            return Placing(device_bins, pm_first, by_class=True)
        if rule == "random":
            return Placing(device_bins, _drawn(len(next(iter(device_bins.values())).node)), sticky=True)
        return Placing(device_bins, packed, sticky=rule == "packed-sticky")

    def place(self, order: Sequence[PalEntry], held: Mapping[int, Devices]) -> PalRound:
        return self._around_those_that_run(order, held) if self.sticky else self._afresh(order, held)

    def _afresh(self, order: Sequence[PalEntry], held: Mapping[int, Devices]) -> PalRound:
        """Free all, place in order, stop at the first job that does not fit.

        With classes, the prefix that fits by count goes by class; a job that keeps its set of devices is launched without being
        suspended. Otherwise whatever ran is suspended, even if it returns to its devices.
        """
        free = list(range(len(self._any.node)))
        launch = []
        for entry in self._in_classes(order) if self.by_class else order:
            devices = self.choose(free, entry.gpus, self.device_bins[entry.kind])
            if devices is None:
                break
            launch.append((entry.job, devices))
            free = _without(free, devices)
        same = {job for job, devices in launch if self.by_class and set(devices) == set(held.get(job, ()))}
        return PalRound([entry.job for entry in order if entry.job in held and entry.job not in same], launch)

    def _around_those_that_run(self, order: Sequence[PalEntry], held: Mapping[int, Devices]) -> PalRound:
        """Running jobs stay. One that waits takes free devices, or those of jobs from the end of the order.

        Where that does not suffice the round ends, and the victims stay suspended.
        """
        running = set(held)
        free = _without(range(len(self._any.node)), [device for devices in held.values() for device in devices])
        suspend: list[int] = []
        launch: list[tuple[int, Devices]] = []
        for place, entry in enumerate(order):
            if entry.job in running:
                continue
            device_bins = self.device_bins[entry.kind]
            devices = self.choose(free, entry.gpus, device_bins)
            for victim in reversed(order[place + 1 :]):
                if devices is not None:
                    break
                if victim.job in running:
                    running.remove(victim.job)
                    suspend.append(victim.job)
                    free = sorted([*free, *held[victim.job]])
                    devices = self.choose(free, entry.gpus, device_bins)
            if devices is None:
                break
            launch.append((entry.job, devices))
            free = _without(free, devices)
        return PalRound(suspend, launch)

    def _in_classes(self, order: Sequence[PalEntry]) -> list[PalEntry]:
        """The prefix whose demand fits the cluster, most sensitive class first; then the rest."""
        room, fits = len(self._any.node), 0
        for entry in order:
            room -= entry.gpus
            if room < 0:
                break
            fits += 1
        return [*sorted(order[:fits], key=lambda entry: entry.kind), *order[fits:]]

    @property
    def _any(self) -> DeviceBins:
        return next(iter(self.device_bins.values()))


def _without(free: Sequence[int], taken: Devices) -> Devices:
    gone = set(taken)
    return [device for device in free if device not in gone]


def _drawn(devices: int) -> Choose:
    """Devices at random, by a generator that goes on after the draws of the tables."""
    draw = Random(42)
    for _ in range(devices):
        for rows in _TABLE_ROWS:
            draw.randrange(rows)

    def choose(free: Sequence[int], count: int, device_bins: DeviceBins) -> Devices | None:
        return draw.sample(list(free), count) if len(free) >= count else None

    return choose


# PAL's clock: rounds of Blox, in which a job's steps take as long as its slowest GPU and its spread over nodes make them.

_REFILL_PER_HOUR = 2.0
_PROMOTED, _PATIENCE = 1, 3_600_000.0
"""A job that has waited a thousand hours goes before all others."""


class PalJob(NamedTuple):
    """A job as the trace gives it."""

    submit: float
    gpus: int
    steps: float
    step_time: float
    kind: str


@dataclass
class Life:
    """What has become of a job."""

    executed: float = 0.0
    service: float = 0.0
    waited: float = 0.0
    first_start: float = math.nan
    end: float = math.nan
    spells: list[tuple[float, float, Devices]] = field(default_factory=list)
    """(from, to, devices) in which it held the same devices."""


@dataclass
class PalRounds:
    """The run. The trace is repeated behind its end, at two jobs an hour, until the jobs of the trace itself are done."""

    jobs: Sequence[PalJob]
    speeds: DeviceSpeeds
    placing: Placing
    penalty: float
    length: float
    order_by: str
    on_round: Callable[[float, int, int], None] | None = None  # time, jobs of the trace that have arrived, and that are inside

    def run(self) -> list[Life]:
        """What became of each job of the trace."""
        self._list, self._lives = list(self.jobs), [Life() for _ in self.jobs]
        self._refill, self._admitted = Random(1), 0
        self._active: list[int] = []
        self._held: dict[int, Devices] = {}
        self._pace: dict[int, float] = {}
        self._since: dict[int, float] = {}
        open_jobs, now, settled = set(range(len(self.jobs))), 0.0, False
        while True:
            ended = self._advance(now)
            open_jobs -= ended
            if not open_jobs:
                return self._lives[: len(self.jobs)]
            came = self._admit(now)
            if ended or came or not settled or self.order_by != "fifo":
                settled = self._place(now)
            self._count_waiting()
            if self.on_round is not None:
                arrived = min(self._admitted, len(self.jobs))
                self.on_round(now, arrived, arrived - len(self.jobs) + len(open_jobs))
            now += self.length

    @property
    def fillers(self) -> int:
        """Jobs that were added behind the trace and came before the end."""
        return self._admitted - len(self.jobs)

    def _advance(self, now: float) -> set[int]:
        """A round's steps for whatever runs; what has done all of them ends now."""
        ended = set()
        for job, pace in self._pace.items():
            life = self._lives[job]
            life.executed += self.length / pace
            life.service += self.length
            if life.executed >= self._list[job].steps:
                life.end = now
                ended.add(job)
        for job in ended:
            self._release(job, now)
            self._active.remove(job)
        return ended

    def _admit(self, now: float) -> bool:
        before = self._admitted
        while self._submit(self._admitted) <= now:
            self._active.append(self._admitted)
            self._admitted += 1
        return self._admitted > before

    def _submit(self, job: int) -> float:
        if job == len(self._list):
            again = self._list[job % len(self.jobs)]
            gap = math.ceil(self._refill.expovariate(_REFILL_PER_HOUR) * 3600.0)
            self._list.append(again._replace(submit=self._list[-1].submit + gap))
            self._lives.append(Life())
        return self._list[job].submit

    def _place(self, now: float) -> bool:
        """One round of placement; whether it left everything as it was."""
        order = [PalEntry(job, self._list[job].gpus, self._list[job].kind) for job in sorted(self._active, key=self._key)]
        suspend, launch = self.placing.place(order, self._held)
        before = dict(self._held)
        given = dict(launch)
        for job in suspend:
            if given.get(job) != before[job]:
                self._release(job, now)
        for job, devices in launch:
            if self._held.get(job) == devices:
                continue
            if job in self._held:
                self._release(job, now)
            self._held[job], self._since[job] = devices, now
            self._pace[job] = self._step_time(job, devices)
            if math.isnan(self._lives[job].first_start):
                self._lives[job].first_start = now
        return self._held == before

    def _key(self, job: int) -> tuple[float, float]:
        life, asked = self._lives[job], self._list[job]
        first = _PROMOTED if life.waited >= _PATIENCE else 999
        if self.order_by == "fifo":
            return first, asked.submit
        return first, life.service if self.order_by == "las" else asked.step_time * asked.steps - life.service

    def _step_time(self, job: int, devices: Devices) -> float:
        asked, node = self._list[job], next(iter(self.placing.device_bins.values())).node
        slowest = max(float(self.speeds.slowdown[asked.kind][device]) for device in devices)
        spans = len({node[device] for device in devices}) > 1
        return asked.step_time * slowest * (self.penalty if spans else 1.0)

    def _release(self, job: int, now: float) -> None:
        self._lives[job].spells.append((self._since.pop(job), now, self._held.pop(job)))
        del self._pace[job]

    def _count_waiting(self) -> None:
        for job in self._active:
            if job not in self._held:
                self._lives[job].waited += self.length


# The loop of `--regime pal`: FIFO, LAS and SRTF with PAL's placements as its authors' simulator runs them, job by job.

_RULES = ("packed", "packed-sticky", "pm-first", "pal", "random")


def drive(simulation: Simulation, trace: Trace) -> dict[str, Any]:
    """Run the trace until its last job is done; jobs that the original adds behind it compete, and are not reported."""
    state = simulation.state
    _refuse_what_it_has_not(simulation)
    speeds = state.facts.device_speeds
    if speeds is None:
        raise RefusedError("no speeds of devices are known", where="--regime pal", fix="give --device-speeds FILE.csv")
    node = [int(each) for each in state.tables.cluster.device_node]
    device_bins = {kind: DeviceBins(node, _bins(speeds, kind)) for kind in speeds.classes}
    penalty = state.facts.locality
    rounds = PalRounds(
        _jobs(trace, speeds), speeds, Placing.named(state.placement.name, device_bins, penalty), penalty, state.regime.round,
        simulation.engine.policy.name, simulation.on_progress,
    )  # fmt: skip
    lives = rounds.run()
    _write(simulation, lives)
    simulation.engine.decisions = round(state.now / state.regime.round) + 1
    return {"fillers": rounds.fillers, "locality": penalty}


def _refuse_what_it_has_not(simulation: Simulation) -> None:
    rule = simulation.state.placement.name
    if rule not in _RULES:
        raise RefusedError(
            f"PAL's simulator has no placement '{rule}'", where="--regime pal", fix=f"{near(rule, _RULES)}; it has {', '.join(_RULES)}"
        )
    if len(simulation.state.tables.cluster.types) != 1:
        raise RefusedError("PAL's simulator knows one type of device", where="--regime pal", fix="use a cluster such as 16x4")


def _bins(speeds: DeviceSpeeds, kind: str) -> list[float]:
    """Bins as the file gives them; else with two clusters and the outliers, as the authors' program always ends up with."""
    found = speeds.bins[kind] if kind in speeds.bins else speed_bins(speeds.slowdown[kind], clusters=2)
    return [float(each) for each in found]


def _jobs(trace: Trace, speeds: DeviceSpeeds) -> list[PalJob]:
    """The trace in steps; where it has none, a job is so many steps of one second."""
    frame = trace.frame
    stepped = {"iterations", "iteration_time"} <= set(frame.columns)
    steps = frame["iterations" if stepped else "duration"].to_list()
    step_time = frame["iteration_time"].to_list() if stepped else [1.0] * len(frame)
    rows = zip(frame["arrival"].to_list(), frame["gpus"].to_list(), steps, step_time, classes_of(trace, speeds))
    return [PalJob(at, int(gpus), float(count), float(each), kind) for at, gpus, count, each, kind in rows]


def _write(simulation: Simulation, lives: list[Life]) -> None:
    """Starts, ends, service and intervals, in the tables and the log of the run."""
    write_jobs(
        simulation, service=[life.service for life in lives], first_start=[life.first_start for life in lives],
        finish=[life.end for life in lives], restarts=[len(life.spells) - 1 for life in lives],
    )  # fmt: skip
    simulation.state.now = max((life.end for life in lives), default=0.0)
    spells = sorted((begin, row, end, devices) for row, life in enumerate(lives) for begin, end, devices in life.spells)
    write_intervals(
        simulation,
        (
            HeldInterval(row, begin, end, devices, Reason.FINISHED if math.isclose(end, lives[row].end) else Reason.PREEMPTED)
            for begin, row, end, devices in spells
        ),
    )
