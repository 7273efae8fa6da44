"""The rounds of ElasticFlow's artifact and their result: progress, ends, arrivals and plans, spare GPUs, ranks, overhead.

The rules are in docs/design/elasticflow.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.errors import RefusedError
from gantline.systems.elasticflow.imitation.planning import (
    FULL,
    IN_TIME,
    P_COUNT,
    P_END,
    P_EXACT,
    P_FIRST,
    P_GPUS,
    PlanState,
    plan_all,
    plan_by_deadline,
    share_spare,
)
from gantline.systems.elasticflow.policies.settings import DeadlinePolicy

# The result of a run of ElasticFlow's simulator, for each of its schedules.


class Span(NamedTuple):
    """Which job held which ranks from when to when; first = -1: any that are free."""

    job: int
    start: float
    end: float
    first: int
    gpus: int


@dataclass(frozen=True)
class ElasticFlowOutcome:
    """One column per job."""

    deadline: Floats  # infinity: best effort
    start: Floats
    end: Floats  # as it is recorded
    exact: Floats | None  # ElasticFlow only: before it is rounded up to slots
    ended: Floats  # the round that saw it; nan: it never ended
    rejected: Bools
    spans: list[Span]
    rounds: int


# Ends runs that would go on for ever: slots so short that the costs of a round use them up.

_ROUNDS = 1000  # without an arrival, an end or progress: no later one will have any


@dataclass
class StallGuard:
    """How long nothing has happened."""

    slot: float
    idle: int = 0

    def wait(self, moved: bool) -> None:
        """Count a round; `moved` says whether a job arrived, ended or progressed in it."""
        self.idle = 0 if moved else self.idle + 1
        if self.idle > _ROUNDS:
            fault = f"no job progresses: rounds cost jobs seconds, and a slot has only {self.slot:g}"
            raise RefusedError(fault, where="--regime elasticflow", fix="a longer --round")


# The calendar of ElasticFlow's artifact: at most one event per time, with the jobs that arrive and those that end then.


def seconds_of_start(capacity: int) -> tuple[float, float]:
    """What the start of a gang takes in a cluster of so many GPUs, and how much longer it takes where trainers are restarted."""
    return (7.0, 47.0) if capacity >= 256 else (2.0, 27.0)


@dataclass
class Event:
    """The jobs that arrive and those that end; an event without jobs causes a round."""

    arrivals: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


class Calendar:
    """Events by time."""

    def __init__(self) -> None:
        self.events: dict[float, Event] = {}

    def add(self, time: float) -> Event:
        """The event at that time, made if absent."""
        return self.events.setdefault(time, Event())

    def move(self, job: int, old: float, new: float) -> None:
        """Move a job's end; an event without jobs is removed."""
        if old == new:
            return
        there = self.events.get(old)
        if there is not None and job in there.ends:
            there.ends.remove(job)
            if not (there.arrivals or there.ends):
                del self.events[old]
        self.add(new).ends.append(job)

    def pop(self, time: float) -> Event:
        return self.events.pop(time, Event())

    def first(self) -> float:
        """The time of the earliest event."""
        return min(self.events)

    def merge(self, now: float, slot: float) -> None:
        """All events within a slot become one at its end, unless a single event is left."""
        if len(self.events) < 2 or self.first() - now > slot:
            return
        near = sorted(time for time in self.events if time - now <= slot)
        together = Event()
        for time in near:
            event = self.events.pop(time)
            together.arrivals += event.arrivals
            together.ends += event.ends
        self.events[now + slot] = together


# The rounds of ElasticFlow's artifact: progress, ends, arrivals and plans, spare GPUs, ranks, overhead (docs/design/elasticflow.md).


@dataclass(frozen=True)
class ElasticFlowJobs:
    """The artifact's data on every job, in order of arrival."""

    arrival: Floats
    deadline: Floats  # infinity: best effort
    iterations: Floats
    speed: Floats  # per level (2**level GPUs)
    top: Ints  # largest level

    def __len__(self) -> int:
        return len(self.arrival)


class ElasticFlowClock:
    """One run."""

    on_round: Callable[[float, int, int], None] | None = None  # time, jobs that have arrived, jobs inside

    def __init__(self, jobs: ElasticFlowJobs, rules: DeadlinePolicy, capacity: int, per_node: int, slot: float) -> None:
        self.jobs, self.rules, self.capacity, self.per_node, self.slot = jobs, rules, capacity, per_node, slot
        n = len(jobs)
        self.rem = jobs.iterations.copy()
        self.gpus = np.zeros(n, dtype=np.int64)
        self.end = np.full(n, np.nan)  # planned end, recorded
        self.exact = np.full(n, np.nan)
        self.overhead = np.zeros(n)
        self.start = np.full(n, np.nan)
        self.ended = np.full(n, np.nan)  # the round in which the end was processed
        self.rejected = np.zeros(n, dtype=bool)
        self.runnable: list[int] = []
        self.pending: list[int] = []
        self.running: list[int] = []  # in order of start
        self.calendar = Calendar()
        for job, time in enumerate(jobs.arrival.tolist()):
            self.calendar.add(time).arrivals.append(job)
        self.rounds = 0
        self.cached: set[tuple[int, int]] = set()
        self.spans: list[Span] = []
        self._open: dict[int, tuple[float, int, int]] = {}  # job -> since, first rank, GPUs
        self.board = self._make_board(64, 1024)

    def _make_board(self, breakpoints: int, entries: int) -> PlanState:
        n, jobs = len(self.jobs), self.jobs
        return PlanState(
            self.rem, jobs.deadline, jobs.speed, jobs.top, self.capacity, self.slot,
            np.empty(breakpoints), np.empty(breakpoints, np.int64), np.empty(entries), np.empty(entries, np.int64),
            np.zeros((3, n), np.int64), np.full((2, n), np.nan), np.zeros(2, np.int64),
            np.empty((3, breakpoints)), np.empty((3, breakpoints), np.int64), np.empty(4),
        )  # fmt: skip

    def outcome(self) -> ElasticFlowOutcome:
        """The result."""
        exact = self.exact if self.rules.elastic else None
        return ElasticFlowOutcome(self.jobs.deadline, self.start, self.end, exact, self.ended, self.rejected, self.spans, self.rounds)

    # --- the loop -------------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Run until calendar, pending and running are empty."""
        before, guard = 0.0, StallGuard(self.slot)
        while self.calendar.events:
            now, left = self.calendar.first(), self.rem.sum()
            self._progress(now, now - before if self.rounds else 0.0)
            event = self.calendar.pop(now)
            for job in event.ends:
                self._finish(job, now)
            over = any(self.ended[job] == now for job in event.ends)
            guard.wait(bool(event.arrivals) or over or self.rem.sum() < left)
            if self.rules.elastic:
                self._elastic_round(now, event.arrivals)
            else:
                self._deadline_round(now, event.arrivals)
            self.rounds += 1
            if self.on_round is not None:
                arrived = int(np.searchsorted(self.jobs.arrival, now, side="right"))
                self.on_round(now, arrived, arrived - int(np.count_nonzero((self.ended == self.ended) | self.rejected)))
            self.calendar.merge(now, self.slot)
            before = now

    def _progress(self, now: float, passed: float) -> None:
        for job in self.runnable:
            held = int(self.gpus[job])
            if not held:
                continue
            speed = self._speed(job, held)
            limit = self.exact[job] if self.rules.elastic else self.end[job]
            ran = passed - (now - limit) if now > limit else passed
            done = max(0.0, ran - self.overhead[job]) * speed
            if self.rem[job] <= done and self.end[job] > now:
                self.calendar.move(job, self.end[job], now)
                self.end[job] = (now - passed) + math.ceil(self.rem[job] / speed)
            self.rem[job] -= done
            self.overhead[job] = 0.0

    def _speed(self, job: int, gpus: int) -> float:
        return float(self.jobs.speed[job, gpus.bit_length() - 1])

    def _finish(self, job: int, now: float) -> None:
        if self.rules.elastic and self.rules.admission != "off" and not self.gpus[job]:
            return
        self.runnable.remove(job)
        (self.running if job in self.running else self.pending).remove(job)
        self.gpus[job] = 0
        self.ended[job] = now

    def _begin(self, job: int, now: float) -> None:
        self.pending.remove(job)
        self.running.append(job)
        self.start[job] = now

    # --- ElasticFlow ----------------------------------------------------------------------------------------------------
    def _elastic_round(self, now: float, arrivals: list[int]) -> None:
        before = self.end.copy()
        self._admit(now, arrivals)
        self._plan(self.runnable, now)
        for job in self.runnable:
            self._take(job, before[job])
        for job in [job for job in self.pending if self.gpus[job]]:
            self._begin(job, now)
        if self.rules.admission == "off":
            for job in self.pending:
                entries, sizes = self._plan_of(job)
                self.calendar.add(float(entries[np.argmax(sizes > 0)]))
        self._share_spare(now)
        self._place(now)
        self._wake(now)
        self._charge()

    def _groups(self, arrivals: list[int]) -> list[list[int]]:
        """Newcomers as they are admitted: one by one, or all or none."""
        return [[job] for job in arrivals] if self.rules.admission == "single" else [arrivals] if arrivals else []

    def _admit(self, now: float, arrivals: list[int]) -> None:
        for group in self._groups(arrivals):
            if self.rules.admission == "off" or self._plan([*self.runnable, *group], now) == IN_TIME:
                entering = group
            else:
                entering = [job for job in group if math.isinf(self.jobs.deadline[job])]
                self.rejected[[job for job in group if job not in entering]] = True
            self.runnable += entering
            self.pending += entering

    def _plan(self, order: list[int], now: float) -> int:
        """Plan all jobs in order of deadlines; the list itself is sorted."""
        order.sort(key=self.jobs.deadline.__getitem__)
        listed, plan = np.array(order, dtype=np.int64), plan_all if self.rules.elastic else plan_by_deadline
        while (verdict := plan(self.board, listed, now)) == FULL:
            self.board = self._make_board(2 * len(self.board.free_t), 2 * len(self.board.plan_t))
        return int(verdict)

    def _plan_of(self, job: int) -> tuple[Floats, Ints]:
        first, count = self.board.known[P_FIRST, job], self.board.known[P_COUNT, job]
        return self.board.plan_t[first : first + count], self.board.plan_v[first : first + count]

    def _take(self, job: int, old: float) -> None:
        self.gpus[job] = self.board.known[P_GPUS, job]
        self.exact[job], self.end[job] = self.board.times[P_EXACT, job], self.board.times[P_END, job]
        self.calendar.move(job, old, float(self.end[job]))

    def _share_spare(self, now: float) -> None:
        while True:
            order = np.array(self.runnable, dtype=np.int64)
            room = len(order) * (self.jobs.speed.shape[1] + 1)
            steps, ends = np.empty(room, np.int64), np.empty(room)
            taken = int(share_spare(self.board, order, now, self.rules.spare_order == "artifact", steps, ends))
            if taken != FULL:
                break
            self.board = self._make_board(2 * len(self.board.free_t), 2 * len(self.board.plan_t))
            self._plan(list(self.runnable), now)
        self.runnable = order.tolist()
        for job, end in zip(steps[:taken].tolist(), ends[:taken].tolist()):
            old, self.end[job] = float(self.end[job]), end
            self.calendar.move(job, old, end)
            self.gpus[job], self.exact[job] = self.board.known[P_GPUS, job], self.board.times[P_EXACT, job]
            if job in self.pending:
                self._begin(job, now)

    def _wake(self, now: float) -> None:
        """Rounds in which no job arrives or ends: when a plan changes."""
        if self.rules.admission == "off":
            for job in self.running:
                entries, _ = self._plan_of(job)
                if len(later := entries[entries > now]):
                    self.calendar.add(float(later[0]))
            return
        changes = [float(later[0]) for job in self.runnable if len(later := self._plan_of(job)[0][1:])]
        if changes and (not self.calendar.events or min(changes) < self.calendar.first()):
            self.calendar.add(min(changes))

    # --- earliest deadline first ----------------------------------------------------------------------------------------
    def _deadline_round(self, now: float, arrivals: list[int]) -> None:
        if self.rules.admission == "off":
            self._plan([*self.runnable, *arrivals] if arrivals else self.runnable, now)
            self.runnable += arrivals
            self.pending += arrivals
            self._take_deadlines(now, paused_too=True)
        else:
            accepted = False
            for group in self._groups(arrivals):
                if self._plan([*self.runnable, *group], now) != IN_TIME:
                    self.rejected[group] = True
                    continue
                accepted = True
                self.runnable += group
                self.pending += group
                self._take_deadlines(now, paused_too=True)
            if not accepted:
                self._plan(self.runnable, now)
                self._take_deadlines(now, paused_too=False)
        self._place(now)
        if self.rules.admission != "off":
            self._charge()

    def _take_deadlines(self, now: float, paused_too: bool) -> None:
        running = set(self.running)
        for job in self.runnable:
            held, old, new = int(self.board.known[P_GPUS, job]), float(self.end[job]), float(self.board.times[P_END, job])
            self.gpus[job] = held
            if job in running:
                if held or paused_too:
                    self.end[job] = new
                    self.calendar.move(job, old, new)
            elif held or paused_too:
                self.end[job] = new
                if held:
                    self._begin(job, now)
                    self.calendar.move(job, math.nan, new)

    # --- placement and overhead -----------------------------------------------------------------------------------------
    def _place(self, now: float) -> None:
        """Ranks one after another; a change is a new span."""
        rules = self.rules
        if rules.elastic and rules.admission != "off":
            self.runnable.sort(key=lambda job: -int(self.gpus[job]))
            order = self.runnable
        elif rules.elastic:
            order = sorted(self.running, key=lambda job: -min(int(self.gpus[job]), self.per_node))
        else:
            order = self.runnable
        first, spans = 0, {}
        for job in order:
            if held := int(self.gpus[job]):
                spans[job] = (first, held)
                first += held
        for job, (since, rank, held) in list(self._open.items()):
            if spans.get(job) != (rank, held):
                self.spans.append(Span(job, since, now, rank, held))
                del self._open[job]
        for job, (rank, held) in spans.items():
            if job not in self._open:
                self._open[job] = (now, rank, held)

    def _charge(self) -> None:
        """Seconds lost at the beginning of the next stretch; ranges of ranks that were used before are warm."""
        if self.rules.overhead == "none":
            return
        restart = self.rounds > 0 and self.rounds % self.slot == 0
        base, again = seconds_of_start(self.capacity)
        for job, (_, rank, held) in self._open.items():
            seconds = base
            if (rank, held) not in self.cached:
                seconds += 2.0 * held.bit_length() + (again if restart else 0.0)
                self.cached.add((rank, held))
            old = float(self.end[job])
            self.overhead[job], self.end[job] = seconds, old + seconds
            self.calendar.move(job, old, old + seconds)
        if restart:
            self.cached.clear()
