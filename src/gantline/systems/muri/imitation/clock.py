"""The clock of Muri's simulator and the jobs that it advances: events are arrivals, ends, and whatever a schedule waits for."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from gantline.core.errors import TraceError
from gantline.models.sharing.stage_cycles import ALONE, ITERATION, STAGES, Stages, usable
from gantline.systems.muri.traces import RestartOverheads
from gantline.traces.trace import Trace

# Jobs as Muri's simulator sees them: so many iterations, each a cycle of three stages, and what an event costs them.


@dataclass(slots=True, eq=False)
class MuriJob:
    """A job of the trace, and where it stands."""

    row: int
    number: int  # what the trace calls it, where that is a number
    submit: float
    gpus: int
    iterations: float
    duration: float
    step: float  # seconds of an iteration alone
    stages: Stages
    overhead: float
    guest: bool  # an opportunistic job of AntMan
    kind: int  # jobs of one kind have the same stages
    left: float = field(init=False)  # iterations
    ran: float = 0.0  # seconds on its devices, those that an event cost included
    running: bool = False
    period: float = 0.0  # seconds of an iteration as it runs now
    charge: float = 0.0  # what the next event costs it
    due: float = 0.0
    changes: int = 0  # of its pace while it ran

    def __post_init__(self) -> None:
        self.left = self.iterations

    @property
    def alone(self) -> float:
        """Seconds that it needs to its end by itself."""
        return self.left * self.step

    def run(self, now: float, period: float, charge: float) -> None:
        """It runs from now on; its end is foreseen as if nothing else happened."""
        if period != self.period:
            self.changes += self.period > 0.0 and self.ran > 0.0
            self.period = period
        self.running, self.charge = True, charge
        self.due = now + self.left * period

    def advance(self, seconds: float) -> None:
        """An event that is not its end: what it costs is paid, whether or not anything restarts."""
        self.ran += seconds
        if seconds > self.charge:
            self.left -= (seconds - self.charge) / self.period


def read_jobs(trace: Trace, overheads: RestartOverheads) -> list[MuriJob]:
    """The jobs of a trace, in its order."""
    frame = trace.frame
    names = ("arrival", "gpus", "duration", "iterations", ITERATION, *STAGES, "model")
    for name in names:
        if name not in frame.columns:
            raise TraceError(f"column '{name}' is missing", file=trace.source, fix="write the trace with gantline trace import muri")
    guests = frame["opportunistic"].to_list() if "opportunistic" in frame.columns else [0] * len(frame)
    named = frame["job"].cast(pl.Int64, strict=False)
    numbers = range(len(frame)) if named.null_count() else named.to_list()
    kinds: dict[Stages, int] = {}
    jobs = []
    for row, (arrival, gpus, duration, iterations, step, *times, model) in enumerate(zip(*(frame[name].to_list() for name in names))):
        stages = Stages(*times)
        if not all(each is not None and each > 0.0 for each in (iterations, step)) or not usable(stages):
            what = f"has {iterations} iterations of {step} s with stages of {times} s"
            raise trace.fault(row, "", what, "give iterations and times above 0, stages of 0 or more")
        kind, overhead, guest = kinds.setdefault(stages, len(kinds)), overheads.of(gpus, model), bool(guests[row])
        jobs.append(MuriJob(row, numbers[row], arrival, gpus, iterations, duration, step * ALONE, stages, overhead, guest, kind))
    return jobs


# The clock of Muri's simulator: events are arrivals, ends, and whatever a schedule waits for; at each the schedule says what runs.
#
# Inside an event: ends, arrivals, what the event costs those that go on running, then the schedule. An end is foreseen
# when the schedule has spoken and is not corrected for the cost of an event, so that a job which sees no event between
# start and end pays nothing.

_SAME_INSTANT = 1.0 + 1e-9
_REPORTED = 16
"""Events between two reports to whoever watches."""


class MuriGroup(NamedTuple):
    """Jobs on the same GPUs, and the seconds that an iteration takes each of them."""

    members: tuple[MuriJob, ...]
    period: float
    devices: tuple[int, ...] = ()  # where the schedule chooses them; else they are counted off


class EventSchedule(ABC):
    """What runs from now on, out of the jobs that are there: a list, at first in the order in which they came."""

    def __init__(self, devices: int) -> None:
        self._devices = devices
        self._listed: list[MuriJob] = []

    def arrive(self, job: MuriJob) -> None:
        self._listed.append(job)

    def end(self, job: MuriJob) -> None:
        self._listed.remove(job)

    @abstractmethod
    def decide(self, now: float) -> Sequence[MuriGroup]:
        """The groups that run now."""

    def look_again(self, now: float) -> float:
        """When to ask again although nothing happens."""
        return math.inf


class MuriSpell(NamedTuple):
    """A group held devices from begin to end."""

    members: tuple[MuriJob, ...]
    begin: float
    end: float
    devices: tuple[int, ...]


class MuriGrant(NamedTuple):
    """Where a group sits, and since when."""

    begin: float
    devices: tuple[int, ...]


MuriGrants = dict[tuple[MuriJob, ...], MuriGrant]
"""What all groups that run hold, by their members."""


class MuriLives(NamedTuple):
    """What became of the jobs."""

    end: list[float]
    spells: list[MuriSpell]
    events: int
    now: float


def run_events(
    jobs: Sequence[MuriJob], schedule: EventSchedule, until: float = math.inf, on_progress: Callable[[float, int, int], None] | None = None
) -> MuriLives:
    """From the first arrival to the last end."""
    coming = sorted(jobs, key=lambda job: job.submit)
    end, spells = [math.nan] * len(jobs), list[MuriSpell]()
    grants: MuriGrants = {}
    running: list[MuriJob] = []
    now, arrived, events, alive = 0.0, 0, 0, 0
    while arrived < len(coming) or alive:
        due = min([job.due for job in running], default=math.inf)
        arrival = coming[arrived].submit if arrived < len(coming) else math.inf
        then = min(due, arrival, schedule.look_again(now))
        if then > until or then == math.inf:
            break
        events += 1
        seconds, now = then - now, then
        for job in running:
            if job.due <= now * _SAME_INSTANT:
                job.running, job.left = False, 0.0
                job.ran += seconds
                end[job.row] = now
                alive -= 1
                schedule.end(job)
        while arrived < len(coming) and coming[arrived].submit <= now:
            schedule.arrive(coming[arrived])
            arrived, alive = arrived + 1, alive + 1
        for job in running:
            if job.running:
                job.advance(seconds)
        groups = schedule.decide(now)
        running = _take_over(groups, running, now)
        grants = _grant(groups, grants, now, spells)
        if on_progress is not None and events % _REPORTED == 0:
            on_progress(now, arrived, alive)
    if running:  # the run ends between two events: what jobs have done by then counts
        for job in running:
            job.advance(until - now)
        now = until
    _grant((), grants, now, spells)
    return MuriLives(end, spells, events, now)


def _take_over(groups: Sequence[MuriGroup], before: list[MuriJob], now: float) -> list[MuriJob]:
    """Let the groups run, and nothing else."""
    for job in before:
        job.running = False
    running: list[MuriJob] = []
    for group in groups:
        charge = sum([job.overhead for job in group.members])
        for job in group.members:
            job.run(now, group.period, charge)
        running += group.members
    return running


def _grant(groups: Sequence[MuriGroup], before: MuriGrants, now: float, spells: list[MuriSpell]) -> MuriGrants:
    """Which devices each group has from now on: counted off from the first, the widest groups first, as the original fills its nodes.

    GPU counts are powers of two there, so that no gang of a node's size or less spans two. A group that keeps its members and its devices
    goes on; the spells of the others end.
    """
    grants: MuriGrants = {}
    first = 0
    for members, _, chosen in sorted(groups, key=lambda group: group.members[0].gpus, reverse=True):
        gpus, held = members[0].gpus, before.get(members)
        if held is not None and (held.devices == chosen if chosen else held.devices[0] == first):
            grants[members] = held
            del before[members]
        else:
            grants[members] = MuriGrant(now, chosen or tuple(range(first, first + gpus)))
        first += gpus
    spells += [MuriSpell(members, begin, now, devices) for members, (begin, devices) in before.items() if begin < now]
    return grants
