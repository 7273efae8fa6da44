"""A job of Shockwave's simulator: steps at the present batch size, and the change of batch size that waits for its next task to close."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, isnan, nan

from gantline.systems.shockwave.imitation.models import LARGEST, SAMPLES, accordion_batch, gns_batch, profile, steps_per_epoch

Speed = Callable[[str, int, int], float]  # model, batch size, gang -> steps per second of the gang; NaN: not measured


@dataclass
class ShockwaveJob:
    """One job, from its arrival to its end."""

    index: int
    model: str
    mode: str  # static, accordion or gns
    gang: int
    first: int  # the batch size it was submitted with
    arrival: float
    steps: int  # in all, at the present batch size
    speed: Speed
    batch: int = 0
    done: int = 0  # steps done, counted at the present batch size
    run_time: float = 0.0
    last_turn: float = 0.0  # seconds credited for its last task
    pending: int = 0  # the batch size it will change to when its next task closes; 0: none
    admitted: float = nan
    first_start: float = nan
    finish: float = nan
    failures: int = 0
    started: list[int] = field(default_factory=list)  # passes in which it was started
    measured: list[tuple[int, float, int]] = field(default_factory=list)  # (pass, steps per second, batch size)

    def __post_init__(self) -> None:
        self.batch = self.batch or self.first
        self.epochs = ceil(self.steps / steps_per_epoch(self.model, self.first))

    @property
    def throughput(self) -> float:
        return self.speed(self.model, self.batch, self.gang)

    @property
    def left(self) -> int:
        """Steps to go, at the present batch size."""
        return self.steps - self.done

    @cached_property
    def planned(self) -> list[int]:
        """The batch size of every epoch, as the planner sees it."""
        return profile(self.model, self.mode, self.gang, self.first, self.epochs)

    @cached_property
    def epoch_seconds(self) -> list[float]:
        """Seconds of every epoch by the profile."""
        seconds = {batch: self.seconds_of_epoch(batch) for batch in set(self.planned)}
        return [seconds[batch] for batch in self.planned]

    def seconds_of_epoch(self, batch: int) -> float:
        return SAMPLES[self.model] / (batch * self.speed(self.model, batch, self.gang))

    @cached_property
    def exclusive(self) -> float:
        """Seconds of the whole job by the profile: its time on a cluster of its own."""
        return sum(self.epoch_seconds)

    def note_request(self) -> None:
        """Decide whether the batch size shall change; the change is made when the job's next task closes."""
        epoch = ceil(self.done / steps_per_epoch(self.model, self.batch))
        if self.mode == "accordion":
            wanted = accordion_batch(self.model, self.first, epoch)
            if (self.batch == self.first) != (wanted == self.first):
                self.pending = wanted
        elif self.mode == "gns":
            ahead = max(gns_batch(self.model, self.gang, self.first, at) for at in (epoch, epoch + 1))
            if ahead > self.batch and self.batch < LARGEST.get(self.model, 0):
                self.pending = 2 * self.batch

    def change_batch(self) -> None:
        """Make the change that is pending: epochs are kept, steps are counted anew."""
        wanted, self.pending = self.pending, 0
        if not wanted or self.first == LARGEST.get(self.model) or isnan(self.speed(self.model, wanted, self.gang)):
            return
        before, after = steps_per_epoch(self.model, self.batch), steps_per_epoch(self.model, wanted)
        epochs = ceil(self.steps / before)
        steps = ceil(self.steps * self.batch / wanted)
        self.steps = steps if ceil(steps / after) == epochs else after * epochs
        self.done = ceil(self.done / before) * after
        self.batch = wanted


def fairness(jct: float, job: ShockwaveJob, contention: float) -> float:
    """Completion time over the fair finish time: the job alone on its part of the cluster (Themis, NSDI 2020, section 3.1)."""
    return round(jct / (job.exclusive * max(1.0, contention)), 5)


def mean_contention(active: Sequence[int], gpus: int, begin: int, end: int) -> float:
    """Jobs per GPU over the passes [begin, end)."""
    seen = active[begin:end]
    return sum(seen) / len(seen) / gpus if seen else 0.0
