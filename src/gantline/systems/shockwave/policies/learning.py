"""The same prediction without knowledge of the future: batch sizes that a job has not had are unknown, and no prior speaks of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Learner:
    """What a job has shown: how long its epochs took at the batch sizes they had."""

    epochs: int
    seconds: Callable[[int], float]  # seconds of an epoch at a batch size that has been seen
    present: int  # the batch size it has now
    ends: list[float] = field(default_factory=lambda: [0.0])  # seconds after so many epochs

    def observe(self, batch: int, done: int) -> None:
        """So many epochs are done, the last of them at the batch size before this one."""
        each = self.seconds(self.present)
        while len(self.ends) <= done:
            self.ends.append(self.ends[-1] + each)
        del self.ends[max(done, 0) + 1 :]
        self.present = batch

    def calibrate(self, times: int = 1) -> None:
        """Nothing to correct: durations are those measured."""

    def spent(self, done: int) -> float:
        """Seconds of the epochs done."""
        return self.ends[min(done, len(self.ends) - 1)]

    def mean(self, done: int) -> float:
        """Mean seconds of the epochs done and the one under way."""
        return (self.spent(done) + self.seconds(self.present)) / (min(done, len(self.ends) - 1) + 1)

    def remaining(self, done: int) -> float:
        """What is left goes on as now: a regime once left is not expected to come back."""
        left = self.epochs - done
        return 1.0 if left <= 0 else left * self.seconds(self.present)
