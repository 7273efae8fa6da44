"""How long a job whose batch size changes will still run (Zheng et al.: Shockwave, NSDI 2023, section 5).

The regimes of a job, one per batch size, are as likely as a Dirichlet prior that knows nothing, updated by the epochs seen so far.
Durations of epochs come from a profile of whole seconds, scaled by one factor where what was measured is far from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

_TOLERATED = 0.4  # by how much samples measured and profiled may differ before durations are corrected


@dataclass
class Predictor:
    """One job's profile, what has been measured of it, and what follows."""

    batches: Sequence[int]  # per epoch
    seconds: Sequence[float]  # per epoch
    samples: float  # per epoch
    round_length: float = 120.0
    factor: float = 1.0  # by which durations are corrected
    measured: float = 0.0  # samples, as the original counts them
    last: int = 0  # round of the last measurement
    _modes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.epochs = len(self.batches)
        self._duration = np.maximum(1.0, np.round(np.asarray(self.seconds, dtype=np.float64)))
        self._ends = np.cumsum(self._duration)
        size = np.asarray(self.batches)
        self._modes = list(dict.fromkeys(self.batches))
        self._mean = {mode: float(self._duration[size == mode].mean()) for mode in self._modes}
        self._seen = {mode: np.cumsum(size == mode) for mode in self._modes}

    def observe(self, number: int, speed: float, batch: int) -> None:
        """A task ended in this round at so many steps per second. Rounds of waiting are counted as run: a slip of the original."""
        self.measured += batch * speed * self.round_length * (number - self.last)
        self.last = number

    def calibrate(self, times: int = 1) -> None:
        """Correct durations where samples measured and profiled disagree; another call may change the answer again."""
        for _ in range(times if self.last else 0):
            passed = self.round_length * self.last
            whole = int(np.searchsorted(self._ends, passed, side="right"))
            rest = passed - (float(self._ends[whole - 1]) if whole else 0.0)
            current = self.factor * float(self._duration[min(whole, self.epochs - 1)])
            profiled = self.samples * whole + self.samples * rest / current
            if abs(self.measured - profiled) <= _TOLERATED * profiled:
                return
            before, self.factor = self.factor, profiled / self.measured
            if self.factor == before:
                return

    def spent(self, done: int) -> float:
        """Seconds of the epochs done."""
        return self.factor * float(self._ends[min(done, self.epochs) - 1]) if done > 0 else 0.0

    def mean(self, done: int) -> float:
        """Mean seconds of the epochs done and the one under way."""
        last = min(done, self.epochs - 1)
        return self.factor * float(self._ends[last]) / (last + 1)

    def remaining(self, done: int) -> float:
        """Expected seconds until the end."""
        left = self.epochs - done
        if left <= 0:
            return 1.0
        last = min(done, self.epochs - 1)
        seen = {mode: float(self._seen[mode][last]) for mode in self._modes}
        prior = self.epochs / len(self._modes)
        total = _sum(prior + count for count in seen.values())
        expected = {mode: self.epochs * (prior + seen[mode]) / total for mode in self._modes}
        for mode in self._modes:
            expected[mode] -= min(seen[mode], float(int(expected[mode])))
        seconds = _sum(expected[mode] * self._mean[mode] for mode in self._modes) * self.factor
        return seconds * left / max(int(_sum(expected.values()) + 1), left)


def _sum(values: Iterable[float]) -> float:
    """Rounded after every addition, as the original's: from Python 3.12 on `sum` rounds once, and whole epochs hang on the last digit."""
    total = 0.0
    for value in values:
        total += value
    return total
