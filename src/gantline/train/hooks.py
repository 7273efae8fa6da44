"""Adaptation inside the job: hooks around steps and epochs, whose requests the scheduler may grant (KungFu, OSDI 2020).

A hook looks at what training shows (noise, speed, steps) and asks: for another batch, which the job decides itself within its limits,
or for other devices, which the scheduler decides. Hooks run in their order before a step and in reverse after it. In a gang every rank
runs the same hooks; what they compute must be equal everywhere, and `job.sum` makes it so.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from gantline.train.training import Training


class Hook:
    """What may be overridden; a checkpoint keeps what `state` gives and `resume` gets it back."""

    def before_train(self, job: Training) -> None: ...

    def before_epoch(self, job: Training) -> None: ...

    def before_step(self, job: Training) -> None: ...

    def after_step(self, job: Training) -> None: ...

    def after_epoch(self, job: Training) -> None: ...

    def after_train(self, job: Training) -> None: ...

    def state(self) -> Mapping[str, Any]:
        return {}

    def resume(self, state: Mapping[str, Any]) -> None: ...


class NoiseScaleBatch(Hook):
    """Let the batch follow the gradient noise: towards the noise scale, by at most ``factor`` at a time, every ``every`` steps.

    With ``per_gpu`` it requests as many devices as the batch fills, between ``min_gpus`` and ``max_gpus``.
    """

    def __init__(self, *, every: int = 50, factor: float = 2.0, per_gpu: int = 0, min_gpus: int = 1, max_gpus: int = 0) -> None:
        if every < 1 or factor <= 1.0 or per_gpu < 0 or min_gpus < 1:
            raise ValueError("every and min_gpus are 1 or more, factor is above 1, per_gpu is 0 or more")
        self.every, self.factor, self.per_gpu = every, factor, per_gpu
        self.min_gpus, self.max_gpus = min_gpus, max_gpus

    def after_step(self, job: Training) -> None:
        if job.step % self.every or not job.noise.is_known:
            return
        wanted = min(job.noise.noise_scale(job.base_batch), job.batch * self.factor)
        job.ask_batch(max(round(wanted), round(job.batch / self.factor), 1))
        if self.per_gpu:
            gpus = max(math.ceil(min(wanted, 1e9) / self.per_gpu), self.min_gpus)
            job.request(gpus=min(gpus, self.max_gpus) if self.max_gpus else gpus)


class ScheduledResize(Hook):
    """Request so many devices from given steps on: ``ScheduledResize({0: 1, 1000: 4})``."""

    def __init__(self, schedule: Mapping[int, int]) -> None:
        if not schedule or min(schedule) < 0 or min(schedule.values()) < 1:
            raise ValueError("a schedule maps steps from 0 on to 1 or more devices")
        self.schedule = dict(sorted(schedule.items()))

    def before_step(self, job: Training) -> None:
        due = [gpus for step, gpus in self.schedule.items() if step < job.step]  # the step in hand counts as done already
        if due and due[-1] != job.requested_gpus:
            job.request(gpus=due[-1])


class InterferenceVote(Hook):
    """Vote to leave when steps have become slow: below ``threshold`` times the best window of ``window`` steps so far.

    A majority of the ranks decides. The default is to request one device less, with the present number as the most, so that the
    scheduler may place the job elsewhere; ``act`` does something else instead.
    """

    def __init__(self, *, threshold: float = 0.8, window: int = 20, act: Callable[[Training], None] | None = None) -> None:
        if not 0.0 < threshold < 1.0 or window < 1:
            raise ValueError("threshold lies between 0 and 1, window is 1 or more")
        self.threshold, self.window, self.act = threshold, window, act or _leave_one
        self.votes = 0  # that were won
        self._recent: deque[float] = deque(maxlen=window)
        self._best = 0.0

    def after_step(self, job: Training) -> None:
        self._recent.append(job.step_samples / max(job.step_seconds, 1e-9))
        if job.step % self.window or len(self._recent) < self.window:
            return
        speed = math.fsum(self._recent) / self.window
        slow = self._best > 0.0 and speed < self.threshold * self._best
        self._best = max(self._best, speed)
        (yes,) = job.sum([1.0 if slow else 0.0])
        if 2 * yes > job.world:
            self.votes += 1
            self._best = 0.0  # what is fast is learned anew
            self._recent.clear()
            self.act(job)


def _leave_one(job: Training) -> None:
    if job.gpus > 1:
        job.request(gpus=job.gpus - 1, max_gpus=job.gpus)
