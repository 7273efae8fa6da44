"""ElasticFlow's rigid baselines: what they share, and its forms of Tiresias and Themis."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.systems.elasticflow.imitation.rounds import ElasticFlowOutcome, Span, StallGuard, seconds_of_start

# What ElasticFlow's rigid baselines share: jobs of a fixed size and duration, arrivals merged into slots, spans.


@dataclass(frozen=True)
class RigidJobs:
    """The baselines' data on every job, in order of arrival."""

    arrival: Floats
    deadline: Floats  # infinity: best effort
    gpus: Ints  # as requested; no other size is used
    duration: Floats  # seconds on that size
    iterations: Floats
    speed: Floats  # iterations per second on that size

    def __len__(self) -> int:
        return len(self.arrival)


class RigidRun:
    """One run: the state that all three have, and the arrivals to come."""

    on_round: Callable[[float, int, int], None] | None = None  # time, jobs that have arrived, jobs inside

    def __init__(self, jobs: RigidJobs, capacity: int, per_node: int, slot: float) -> None:
        self.jobs, self.capacity, self.per_node, self.slot = jobs, capacity, per_node, slot
        n = len(jobs)
        self.size, self.duration = jobs.gpus.tolist(), jobs.duration.tolist()
        self.start, self.end, self.ended = np.full(n, np.nan), np.full(n, np.nan), np.full(n, np.nan)
        self.rounds = 0
        self.arrivals: list[tuple[float, list[int]]] = []  # by time
        for job, time in enumerate(jobs.arrival.tolist()):
            if self.arrivals and self.arrivals[-1][0] == time:
                self.arrivals[-1][1].append(job)
            else:
                self.arrivals.append((time, [job]))
        self._spans: list[Span] = []
        self._last: dict[int, int] = {}  # a job's latest span

    def round_ended(self, now: float) -> None:
        """Count a round, and report it."""
        self.rounds += 1
        if self.on_round is not None:
            arrived = len(self.jobs) - sum(len(jobs) for _, jobs in self.arrivals)
            self.on_round(now, arrived, arrived - int(np.count_nonzero(self.ended == self.ended)))

    def seconds_to_start(self, gpus: int, restart: bool) -> float:
        """What the artifact takes off the progress of a gang that is started; no range of ranks is ever warm here."""
        base, again = seconds_of_start(self.capacity)
        return base + (again if restart else 0.0) + 2.0 * (math.log2(gpus) + 1.0)

    def is_restart(self, rounds: int) -> bool:
        """Whether trainers are restarted: every n rounds, where n is the seconds of a slot."""
        return rounds > 0 and rounds % self.slot == 0

    def merge_arrivals(self, now: float, single_too: bool = False) -> None:
        """Arrivals at most a slot away come together at its end; a single event keeps its time, but for Themis."""
        near = 0
        while near < len(self.arrivals) and self.arrivals[near][0] - now <= self.slot:
            near += 1
        if near and (len(self.arrivals) > 1 or single_too):
            together = [job for _, jobs in self.arrivals[:near] for job in jobs]
            self.arrivals[:near] = [(now + self.slot, together)]

    def held(self, job: int, begin: float, end: float) -> None:
        """A job held its GPUs from begin to end; what goes on without a gap is one span."""
        last = self._last.get(job)
        if last is not None and self._spans[last].end == begin:
            self._spans[last] = self._spans[last]._replace(end=end)
        else:
            self._last[job] = len(self._spans)
            self._spans.append(Span(job, begin, end, -1, self.size[job]))

    def outcome(self) -> ElasticFlowOutcome:
        """The result."""
        rejected = np.zeros(len(self.jobs), dtype=bool)
        return ElasticFlowOutcome(self.jobs.deadline, self.start, self.end, None, self.ended, rejected, self._spans, self.rounds)


# Tiresias as ElasticFlow's artifact has it (its `dlas-gpu`): three queues by attained GPU-time, in each every job that fits.

LIMITS = (3250.0, 7200.0)  # GPU-seconds after which a job goes one queue down


class TiresiasRun(RigidRun):
    """One run. A round is at the next arrival, the next end, or the next demotion, whichever comes first."""

    def __init__(self, jobs: RigidJobs, capacity: int, per_node: int, slot: float, limits: tuple[float, ...] = ()) -> None:
        super().__init__(jobs, capacity, per_node, slot)
        self.limits = limits or LIMITS
        n = len(jobs)
        self.queues: list[list[int]] = [[] for _ in range(len(self.limits) + 1)]
        self.level, self.executed, self.lost = [0] * n, [0] * n, [0.0] * n
        self.checked = jobs.arrival.tolist()
        self.runnable: list[int] = []
        self.running: set[int] = set()

    def run(self) -> None:
        """Run until no job is left, or none that is left fits into the cluster."""
        ends: tuple[float, list[int]] | None = None  # the earliest end only
        demotion, guard = math.inf, StallGuard(self.slot)
        while self.arrivals or self.runnable:
            arrival = self.arrivals[0][0] if self.arrivals else math.inf
            end = ends[0] if ends else math.inf
            now, before = min(arrival, end), (len(self.runnable), sum(self.executed))
            if math.isinf(now):
                return
            if now > demotion:
                now = demotion
            else:
                if ends and end == now:
                    self._finish(ends[1], now)
                if arrival == now:
                    entering = self.arrivals.pop(0)[1]
                    self.runnable += entering
                    self.queues[0] += entering
            self._progress(now)
            guard.wait((len(self.runnable), sum(self.executed)) != before)
            restart = self.is_restart(self.rounds)
            self.round_ended(now)
            self._choose(now, restart)
            ends = self._next_end(now, restart)
            demotion = max(self._next_demotion(now), now + self.slot)
            self.merge_arrivals(now)

    def _finish(self, jobs: list[int], now: float) -> None:
        for job in jobs:
            self.held(job, self.checked[job], now)
            self.ended[job] = now
            self.runnable.remove(job)
            self.running.discard(job)
            self.queues[self.level[job]].remove(job)

    def _progress(self, now: float) -> None:
        """Time run since the last round, less what starting took; at most one queue down."""
        for job in self.runnable:
            if job in self.running:
                self.held(job, self.checked[job], now)
                self.executed[job] += int(max(int(now - self.checked[job]) - self.lost[job], 0))
                self.lost[job] = 0.0
                level = self.level[job]
                if level < len(self.limits) and self.executed[job] * self.size[job] >= self.limits[level]:
                    self.level[job] = level + 1
                    self.queues[level].remove(job)
                    self.queues[level + 1].append(job)
            self.checked[job] = now

    def _choose(self, now: float, restart: bool) -> None:
        """Run the jobs that fit, queue by queue; those that wait go to the back of theirs."""
        free, runs = self.capacity, set()
        for queue in self.queues:
            for job in queue:
                if self.size[job] <= free:
                    free -= self.size[job]
                    runs.add(job)
        for job in runs - self.running:
            self.lost[job] = self.seconds_to_start(self.size[job], restart)
            if math.isnan(self.start[job]):
                self.start[job] = now
        self.running = runs
        self.runnable.sort(key=lambda job: -self.size[job])
        for queue in self.queues:
            queue.sort(key=lambda job: job not in runs)

    def _next_end(self, now: float, restart: bool) -> tuple[float, list[int]] | None:
        """The earliest end and whose it is, a slot from now at the earliest; what starting takes is not part of it, but for restarts."""
        first = math.inf
        ending: list[int] = []
        for job in self.runnable:
            if job not in self.running:
                continue
            left = self.duration[job] - self.executed[job]
            if restart:
                self.lost[job] = self.seconds_to_start(self.size[job], True)
                left += self.lost[job]
            end = math.floor(now + left)
            seen = max(now + self.slot, end)
            if seen > first:
                continue
            if seen < first:
                first, ending = seen, []
            ending.append(job)
            self.end[job] = end
        return (first, ending) if ending else None

    def _next_demotion(self, now: float) -> float:
        """When a job goes a queue down; GPU-seconds less seconds are divided here, so this is often too early."""
        times = [
            math.ceil((self.limits[self.level[job]] - self.executed[job]) / self.size[job]) + now
            for job in self.running
            if self.level[job] < len(self.limits)
        ]
        return min(times, default=math.inf)


# Themis as ElasticFlow's artifact has it: time fractions that make the worst finish-time fairness best, the largest fractions run.


class ThemisRun(RigidRun):
    """One run: a round in each slot from the first arrival on; jobs run from the round's beginning to its end."""

    def __init__(self, jobs: RigidJobs, capacity: int, per_node: int, slot: float) -> None:
        super().__init__(jobs, capacity, per_node, slot)
        n = len(jobs)
        self.left, self.time_left = jobs.iterations.copy(), jobs.duration.copy()
        self.isolated = np.zeros(n)  # time that a job would have taken alone so far
        self.before = jobs.iterations.copy()  # iterations that were left in the last round
        self.share = np.ones(n)  # its part of the cluster then, which the original uses in place of a speed
        self.runnable: list[int] = []

    def run(self) -> None:
        """Run until no job is left."""
        now = changed = self.arrivals[0][0] if self.arrivals else 0.0  # changed: when a job last arrived or left
        ending: list[int] = []
        while self.arrivals or self.runnable:
            arrived = bool(self.arrivals) and self.arrivals[0][0] == now
            if arrived or ending:
                changed = now
                for job in ending:
                    self.runnable.remove(job)
                    self.ended[job] = now
                if arrived:
                    self.runnable += self.arrivals.pop(0)[1]
            if not self.runnable and self.arrivals:  # rounds in which nothing can happen
                idle = max(math.ceil((self.arrivals[0][0] - now) / self.slot) - 1, 0)
                now, self.rounds = now + idle * self.slot, self.rounds + idle
            chosen = self._choose(changed) if self.runnable else []
            self.round_ended(now)
            ending = [job for job in chosen if self._run_slot(job, now)]
            self.merge_arrivals(now, single_too=True)
            now += self.slot

    def _choose(self, changed: float) -> list[int]:
        """Those with the largest fractions, as far as they fit; the order stays for the next round."""
        rows = np.array(self.runnable, dtype=np.int64)
        size = self.jobs.gpus[rows]
        self.isolated[rows] += (self.before[rows] - self.left[rows]) / self.share[rows]
        self.before[rows] = self.left[rows]
        self.share[rows] = np.minimum(math.ceil(self.capacity / len(rows)) / size, 1.0)
        alone = self.isolated[rows] + self.left[rows] / self.share[rows]
        fraction = fairest(changed - self.jobs.arrival[rows], self.left[rows] / self.jobs.speed[rows], alone, size, self.capacity)
        self.runnable = rows[np.argsort(-fraction, kind="stable")].tolist()
        free, chosen = self.capacity, []
        for job in self.runnable:
            if self.size[job] <= free:
                free -= self.size[job]
                chosen.append(job)
        return chosen

    def _run_slot(self, job: int, now: float) -> bool:
        """Run a slot; whether that was the last. A job without iterations left ends with the slot."""
        self.held(job, now, now + self.slot)
        if math.isnan(self.start[job]):
            self.start[job] = now
        end = now + self.time_left[job]
        self.time_left[job] = max(0.0, self.time_left[job] - self.slot)
        self.left[job] -= self.slot * self.jobs.speed[job]
        if self.left[job] <= 0.0:
            self.time_left[job], end = 0.0, now + self.slot
        if end > now + self.slot:
            return False
        self.end[job] = end
        return True


def fairest(waited: Floats, work: Floats, alone: Floats, size: Ints, capacity: int) -> Floats:
    """Fractions of time x, at most 1, that make the largest (waited + work / x) / alone least, with sum(size * x) <= capacity.

    Where a job that runs all the time is the worst, the others' fractions are not determined by that: they are made best in turn.
    """
    x, free, room = np.ones(len(work)), np.ones(len(work), dtype=bool), float(capacity)
    while free.any():
        floor = (waited[free] + work[free]) / alone[free]
        worst = float(floor.max())

        def need(rho: float) -> Floats:
            return np.minimum(work[free] / np.maximum(rho * alone[free] - waited[free], 1e-300), 1.0)

        if float((size[free] * need(worst)).sum()) > room:
            low, high = worst, worst * 2.0 + 1.0
            while float((size[free] * need(high)).sum()) > room:
                high *= 2.0
            for _ in range(200):
                middle = 0.5 * (low + high)
                if middle in (low, high):
                    break
                low, high = (middle, high) if float((size[free] * need(middle)).sum()) > room else (low, middle)
            x[free] = need(high)
            return x
        critical = np.flatnonzero(free)[floor >= worst]
        free[critical] = False
        room -= float(size[critical].sum())
    return x
