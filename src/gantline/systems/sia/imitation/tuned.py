"""Tuned jobs under Themis and Shockwave in the clock of Sia's simulator: the other baselines of the paper's table 4, on one GPU type.

Every job keeps the GPUs and the batch of the trace. Themis is the policy of that name in Shockwave's artifact: the smallest worst ratio of
finish times gives shares of time, and rounds follow them as under Gavel. Shockwave plans a window of rounds from what the profiles say is
left; batches never change here, so there is nothing to predict, and nothing is given that a job's profile does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core.arrays import Bools, Floats
from gantline.core.errors import RefusedError
from gantline.models.goodput.batch import ACCUMULATION, LOCAL, gain, split
from gantline.models.goodput.measured import packed_shape
from gantline.policies.node_classes import NodeClass
from gantline.systems.shockwave.imitation.shares import Memory, finish_time_fairness
from gantline.systems.shockwave.policies.policy import Shockwave
from gantline.systems.shockwave.policies.window import PlanningWindow, fair_window, plan_with_cut, priorities
from gantline.systems.sia.imitation.gavel import GavelScheduler
from gantline.systems.sia.imitation.jobs import SiaJob
from gantline.systems.sia.imitation.rounds import SiaGrant


@dataclass(frozen=True)
class TunedJob:
    """A job as rules for shares read it: work is seconds on its own GPUs."""

    index: int
    gang: int
    arrival: float
    left: float
    throughput: float = 1.0


class EpochTimes:
    """Seconds of each epoch of tuned jobs, and of all that is left."""

    def __init__(self, classes: Sequence[NodeClass]) -> None:
        if len(classes) != 1:
            fix = "use one type and size of nodes, such as aws:16x4, or --policy sia"
            raise RefusedError("Themis and Shockwave know one kind of nodes", where="--regime sia", fix=fix)
        self.nodes = classes[0]
        self._known: dict[str, Floats] = {}

    def of(self, job: SiaJob) -> Floats:
        """Seconds of each epoch."""
        if job.asked.name not in self._known:
            measured, shape = job.types[self.nodes.type], packed_shape(job.asked.gpus, self.nodes.size)
            out, training = np.zeros(3), job.training
            split(job.fixed_batch, sum(shape), job.limits(measured, measured.job_most(shape), max(training.most, job.fixed_batch)), out)
            local, steps = max(int(measured.clipped(out[LOCAL], sum(shape))), 1), int(out[ACCUMULATION])
            step, sync = measured.times(shape, local)
            total = sum(shape) * local * (steps + 1)
            worth = np.array([gain(*training.noise(total, epoch), total / training.base) for epoch in range(training.epochs)])
            seconds = (step + steps * (step - sync)) * job.charges.slowdown
            self._known[job.asked.name] = np.diff(training.edges, prepend=0.0) * seconds / worth
        return self._known[job.asked.name]

    def left(self, job: SiaJob) -> float:
        """Seconds until its end."""
        seconds, at = self.of(job), job.epoch
        begun = job.edges[at - 1] if at else 0.0
        rest = (job.edges[at] - job.progress) / (job.edges[at] - begun)
        return float(rest * seconds[at] + seconds[at + 1 :].sum())


class ThemisScheduler(GavelScheduler):
    """Gavel's rounds with the shares of finish-time fairness."""

    def __init__(self, classes: Sequence[NodeClass]) -> None:
        super().__init__(classes)
        self._times, self._memory, self._now = EpochTimes(classes), Memory(), 0.0

    def decide(self, now: float, jobs: Sequence[SiaJob], held: Sequence[SiaGrant | None]) -> list[SiaGrant | None]:
        self._now = now
        return super().decide(now, jobs, held)

    def _shares(self, jobs: Sequence[SiaJob], speeds: Floats) -> Floats:
        """The smallest worst ratio of a job's finish time to that on an equal part."""
        there: Any = [TunedJob(job.asked.row, job.asked.gpus, job.asked.submit, max(self._times.left(job), 1e-6)) for job in jobs]
        found = finish_time_fairness(there, self._times.nodes.gpus, self._now, self._memory)
        return np.array([[found[job.index]] for job in there])


class ShockwaveScheduler:
    """Shockwave's plan of rounds in force, and the fair finish times so far."""

    def __init__(self, classes: Sequence[NodeClass], policy: Shockwave, length: float) -> None:
        self._times, self._policy, self._length = EpochTimes(classes), policy, length
        self._number, self._row = 0, 0
        self._members: list[str] = []
        self._plan: Bools = np.zeros((0, 0), dtype=np.bool_)
        self._targets: dict[str, list[tuple[int, float]]] = {}

    def decide(self, now: float, jobs: Sequence[SiaJob], held: Sequence[SiaGrant | None]) -> list[SiaGrant | None]:
        """The jobs of this round of the plan; a new plan where a job arrived or left, or it is time."""
        self._number = round(now / self._length)
        names = [job.asked.name for job in jobs]
        self._row += 1
        if names != self._members or self._row >= min(self._policy.beat, self._policy.window):
            self._replan(jobs, names != self._members)
            self._members, self._row = names, 0
        return [SiaGrant(0, job.asked.gpus) if runs else None for job, runs in zip(jobs, self._plan[:, self._row].tolist(), strict=True)]

    def next_change(self, now: float) -> float:
        """Turns change every round."""
        return now

    def _replan(self, jobs: Sequence[SiaJob], changed: bool) -> None:
        policy, gpus, length = self._policy, self._times.nodes.gpus, self._length
        share = min(1.0, gpus / len(jobs))
        remaining = np.array([max(self._times.left(job), 1.0) for job in jobs])
        if changed:
            for job, left in zip(jobs, remaining.tolist(), strict=True):
                spent = float(self._times.of(job).sum()) - left
                self._targets.setdefault(job.asked.name, []).append((self._number, job.asked.submit + (spent + left) / share))
        target = np.array([self._target(job.asked.name) for job in jobs])
        lateness = (length * self._number + remaining / share) / target
        window = PlanningWindow(
            np.array([job.asked.gpus for job in jobs], dtype=np.int64),
            np.array([float(len(job.edges)) for job in jobs]),
            np.array([float(job.epoch) for job in jobs]),
            np.array([float(self._times.of(job)[: job.epoch + 1].mean()) for job in jobs]),
            remaining,
            priorities(lateness, remaining, largest=policy.largest, power=policy.power, length=length),
            gpus,
            policy.window,
            length,
            policy.makespan,
        )
        fair = fair_window(window, target, share, policy.largest, length * (self._number + policy.window))
        self._plan = plan_with_cut(window if fair is None else fair)[0]

    def _target(self, name: str) -> float:
        """The fair finish time so far, weighted by how long each estimate held, and a little of the last."""
        series = self._targets[name]
        ends = [number for number, _ in series[1:]] + [self._number]
        weight = [end - number for (number, _), end in zip(series, ends, strict=True)]
        last = series[-1][1]
        mean = math.fsum(w * value for w, (_, value) in zip(weight, series, strict=True)) / sum(weight) if sum(weight) else last
        return 0.9 * mean + 0.1 * last
