"""Themis as ElasticFlow's artifact has it: time fractions that make the worst finish-time fairness best, the largest fractions run."""

from __future__ import annotations

import math

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.systems.elasticflow.imitation.rigid import RigidJobs, RigidRun


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
