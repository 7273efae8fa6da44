"""The clock of Sia's simulator: every round all jobs advance, then the scheduler is asked, then changes take effect.

So the first decision falls at the end of the first round, an arrival waits for the next one, and GPUs that become free within a round idle
until its end. Decisions are handed over by a *scheduler*: Sia's program, a recorded table, or a baseline.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gantline.core.columns import Job, Option
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import DeviceCalendar, HeldInterval, write_intervals, write_jobs
from gantline.policies.node_classes import NodeClass
from gantline.systems.sia.imitation.jobs import SiaJob
from gantline.systems.sia.policies.placement import Parts, PlacementRequest, place_fast, place_sticky, shape_of


class SiaGrant(NamedTuple):
    """GPUs of a class of nodes, and on which nodes of it where the scheduler chooses them."""

    group: int
    gpus: int
    parts: Parts = ()


_PATIENCE = 1000  # rounds in which jobs wait and none has anything, after which a run is given up


class RoundScheduler(ABC):
    """What each job gets at the end of a round."""

    @abstractmethod
    def decide(self, now: float, jobs: Sequence[SiaJob], held: Sequence[SiaGrant | None]) -> list[SiaGrant | None]:
        """A grant or nothing for each job that is there, in the order given."""

    def next_change(self, now: float) -> float:
        """When it may change something although no job has arrived or runs: now, as turns do; infinite if never."""
        return now


@dataclass
class Spell:
    """A stretch of time in which a job held the same GPUs."""

    job: int
    group: int
    parts: Parts
    begin: float
    end: float = math.nan
    finished: bool = False


@dataclass
class SiaRounds:
    """The run: jobs in the order of the trace, nodes by class, the spells of holding GPUs so far."""

    jobs: Sequence[SiaJob]
    classes: Sequence[NodeClass]
    scheduler: RoundScheduler
    interval: float = 60.0
    sticky: bool = True
    until: float = math.inf
    now: float = 0.0
    decisions: int = 0
    stalled: bool = False  # given up, because jobs waited and got nothing for long
    spells: list[Spell] = field(default_factory=list)
    contention: list[int] = field(default_factory=list)
    on_progress: Callable[[float, int, int], None] | None = None

    def __post_init__(self) -> None:
        self._open: dict[int, Spell] = {}
        self._grant: dict[int, SiaGrant] = {}
        self._arrived = 0
        self._active: list[int] = []
        self._order = sorted(range(len(self.jobs)), key=lambda k: (self.jobs[k].asked.submit, k))

    def run(self) -> None:
        """Run until every job has finished, nothing can happen any more, or the time is up."""
        idle = 0
        while self._active or self._arrived < len(self.jobs):
            following = self._next_round()
            if following > self.until or following == math.inf:
                break
            self._advance(following)
            self._decide()
            idle = idle + 1 if self._active and not self._grant else 0
            self.stalled = idle > _PATIENCE
            if self.stalled:
                break
            if self.on_progress is not None:
                self.on_progress(self.now, self._arrived, len(self._active))
        self._close()

    def _next_round(self) -> float:
        """The end of this round or, while no job holds anything, of the first one in which anything can change."""
        due = self.now + self.interval
        if self._grant:
            return due
        first = self.scheduler.next_change(self.now) if self._active else math.inf
        if self._arrived < len(self.jobs):
            first = min(first, self.jobs[self._order[self._arrived]].asked.submit)
        if first == math.inf:
            return first
        return max(due, math.ceil(first / self.interval - 1e-9) * self.interval)

    def _advance(self, until: float) -> None:
        """Run all jobs to the end of the round; those that arrive in it are there at its end."""
        span = until - self.now
        for k in list(self._active):
            job = self.jobs[k]
            job.advance(self.now, span)
            if job.done:
                self._active.remove(k)
                del self._grant[k]
                self._end_spell(k, job.finish, finished=True)
        self.now = until
        while self._arrived < len(self._order) and self.jobs[self._order[self._arrived]].asked.submit <= until:
            self._active.append(self._order[self._arrived])
            self._arrived += 1
        self._active.sort()

    def _decide(self) -> None:
        active = self._active
        self.contention.append(len(active))
        if not active:
            return
        self.decisions += 1
        held = [self._grant.get(k) for k in active]
        wanted = self.scheduler.decide(self.now, [self.jobs[k] for k in active], held)
        if wanted == held:
            return
        for k, grant in zip(active, wanted, strict=True):
            if grant is None:
                self._grant.pop(k, None)
            else:
                self._grant[k] = grant
        for group, nodes in enumerate(self.classes):
            here = {k: grant for k, grant in sorted(self._grant.items()) if grant.group == group}
            requests = [PlacementRequest(k, grant.gpus) for k, grant in here.items() if not grant.parts]
            before = {k: spell.parts for k, spell in self._open.items() if spell.group == group}
            placed = place_sticky(nodes, requests, before) if self.sticky else place_fast(nodes, requests)
            for k, parts in (placed | {k: grant.parts for k, grant in here.items() if grant.parts}).items():
                self._place(k, group, nodes, parts)
        for k in [k for k in active if k not in self._grant and k in self._open]:
            self._end_spell(k, self.now)
            self.jobs[k].place("", (), self.now)

    def _place(self, k: int, group: int, nodes: NodeClass, parts: Parts) -> None:
        """Give a job these GPUs; the same ones are no change, other nodes of the same shape no restart."""
        spell = self._open.get(k)
        if spell is not None and (spell.group, spell.parts) == (group, parts):
            return
        self._end_spell(k, self.now)
        self.jobs[k].place(nodes.type, shape_of(parts), self.now)
        self._open[k] = Spell(k, group, parts, self.now)

    def _end_spell(self, k: int, when: float, *, finished: bool = False) -> None:
        spell = self._open.pop(k, None)
        if spell is not None:
            spell.end, spell.finished = when, finished
            self.spells.append(spell)

    def _close(self) -> None:
        """Close the intervals of the jobs that still hold GPUs."""
        for k in list(self._open):
            self._end_spell(k, self.now)


# Writes the result of the rounds into the tables and the log of a run.


def write_result(simulation: Simulation, rounds: SiaRounds) -> None:
    """Fill in starts, ends, service, restarts and the intervals in which GPUs were held."""
    jobs = rounds.jobs
    write_jobs(
        simulation, service=[job.seconds for job in jobs], first_start=[job.first_start for job in jobs],
        finish=[job.finish for job in jobs], restarts=[job.restarts for job in jobs], gpu_time=[job.gpu_seconds for job in jobs],
        done=[min(job.progress / job.edges[-1], 1.0) for job in jobs],
    )  # fmt: skip
    simulation.state.now = max((spell.end for spell in rounds.spells), default=rounds.now)
    simulation.engine.decisions = rounds.decisions
    write_intervals(simulation, _intervals(simulation, rounds))


def _intervals(simulation: Simulation, rounds: SiaRounds) -> Iterator[HeldInterval]:
    """One per spell; a node's GPUs are given out from the lowest number that is free."""
    t = simulation.state.tables
    calendar = DeviceCalendar(t.D.shape[1])
    for spell in sorted(rounds.spells, key=lambda spell: (spell.begin, spell.job)):
        nodes, held = rounds.classes[spell.group], list[int]()
        for node, gpus in spell.parts:
            held += calendar.take(gpus, spell.begin, spell.end, int(t.cluster.first_device[nodes.nodes[node]]), nodes.size)
        reason = Reason.FINISHED if spell.finished else Reason.END if spell.end >= rounds.now else Reason.RESIZED
        option = _option(simulation, spell.job, t.cluster.type_code(nodes.type))
        yield HeldInterval(spell.job, spell.begin, spell.end, held, reason, option)


def _option(simulation: Simulation, row: int, kind: int) -> int:
    """The option of that type, which is listed once per type whatever the size."""
    t = simulation.state.tables
    first, count = int(t.I[Job.OPTION_FIRST, row]), int(t.I[Job.OPTION_COUNT, row])
    kinds = t.options.I[Option.TYPE, first : first + count].tolist()
    return first + (kinds.index(kind) if kind in kinds else 0)
