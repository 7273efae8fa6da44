"""The clock of Muri's simulator: events are arrivals, ends, and whatever a schedule waits for; at each the schedule says what runs.

Inside an event: ends, arrivals, what the event costs those that go on running, then the schedule. An end is foreseen when the schedule has
spoken and is not corrected for the cost of an event, so that a job which sees no event between start and end pays nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from gantline.systems.muri.imitation.jobs import MuriJob

_SAME_INSTANT = 1.0 + 1e-9
_REPORTED = 16
"""Events between two reports to whoever watches."""


class MuriGroup(NamedTuple):
    """Jobs on the same GPUs, and the seconds that an iteration takes each of them."""

    members: tuple[MuriJob, ...]
    period: float
    devices: tuple[int, ...] = ()  # where the schedule chooses them; else they are counted off


class EventSchedule(Protocol):
    """What runs from now on."""

    def arrive(self, job: MuriJob) -> None:
        """A job is there."""

    def end(self, job: MuriJob) -> None:
        """A job has ended."""

    def decide(self, now: float) -> Sequence[MuriGroup]:
        """The groups that run now."""

    def look_again(self, now: float) -> float:
        """When to ask again although nothing happens."""


class MuriSpell(NamedTuple):
    """A group held devices from begin to end."""

    members: tuple[MuriJob, ...]
    begin: float
    end: float
    devices: tuple[int, ...]


class MuriSeat(NamedTuple):
    """Where a group sits, and since when."""

    begin: float
    devices: tuple[int, ...]


MuriSeats = dict[tuple[MuriJob, ...], MuriSeat]
"""The seats of all groups that run, by their members."""


class MuriLives(NamedTuple):
    """What became of the jobs."""

    end: list[float]
    ran: list[float]
    changes: list[int]  # of its pace
    done: list[float]  # the part of its iterations
    spells: list[MuriSpell]
    events: int
    now: float


def run_events(
    jobs: Sequence[MuriJob], schedule: EventSchedule, until: float = math.inf, on_progress: Callable[[float, int, int], None] | None = None
) -> MuriLives:
    """From the first arrival to the last end."""
    coming = sorted(jobs, key=lambda job: job.submit)
    end, spells = [math.nan] * len(jobs), list[MuriSpell]()
    seats: MuriSeats = {}
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
        seats = _seat(groups, seats, now, spells)
        if on_progress is not None and events % _REPORTED == 0:
            on_progress(now, arrived, alive)
    if running:  # the run ends between two events: what jobs have done by then counts
        for job in running:
            job.advance(until - now)
        now = until
    _seat((), seats, now, spells)
    return MuriLives(
        end,
        [job.ran for job in jobs],
        [job.changes for job in jobs],
        [1.0 - job.left / job.iterations for job in jobs],
        spells,
        events,
        now,
    )


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


def _seat(groups: Sequence[MuriGroup], before: MuriSeats, now: float, spells: list[MuriSpell]) -> MuriSeats:
    """Which devices each group has from now on: counted off from the first, the widest groups first, as the original fills its nodes.

    GPU counts are powers of two there, so that no gang of a node's size or less spans two. A group that keeps its members and its devices
    goes on; the spells of the others end.
    """
    seats: MuriSeats = {}
    first = 0
    for members, _, chosen in sorted(groups, key=_width, reverse=True):
        gpus, held = members[0].gpus, before.get(members)
        if held is not None and (held.devices == chosen if chosen else held.devices[0] == first):
            seats[members] = held
            del before[members]
        else:
            seats[members] = MuriSeat(now, chosen or tuple(range(first, first + gpus)))
        first += gpus
    spells += [MuriSpell(members, begin, now, devices) for members, (begin, devices) in before.items() if begin < now]
    return seats


def _width(group: MuriGroup) -> int:
    return group.members[0].gpus
