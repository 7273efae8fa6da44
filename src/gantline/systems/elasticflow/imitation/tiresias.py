"""Tiresias as ElasticFlow's artifact has it (its `dlas-gpu`): three queues by attained GPU-time, in each every job that fits."""

from __future__ import annotations

import math

from gantline.systems.elasticflow.imitation.patience import Patience
from gantline.systems.elasticflow.imitation.rigid import RigidJobs, RigidRun

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
        demotion, patience = math.inf, Patience(self.slot)
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
            patience.wait((len(self.runnable), sum(self.executed)) != before)
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
