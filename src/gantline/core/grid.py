"""The grid behind a cluster: what devices draw, how clean the current is, and what it costs, as signals that change in steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError

DAY = 86400.0


@dataclass(frozen=True)
class Signal:
    """`values[k]` holds from `step * k` to `step * (k + 1)` seconds after the beginning of the run.

    Behind its end the signal repeats its last whole day (all of it, where it is shorter than a day): a stated fallback, which
    `covers` lets a caller report.
    """

    values: tuple[float, ...]
    step: float = 3600.0
    origin: float | None = None
    """When it begins, in seconds since 1970, where its file gives dates."""

    def starting(self, seconds: float) -> Signal:
        """The same signal for a run which begins so many seconds after its first value; whole steps only."""
        skipped = round(seconds / self.step)
        if abs(skipped * self.step - seconds) > 1e-6 or not 0 <= skipped < len(self.values):
            last = (len(self.values) - 1) * self.step / 3600.0
            raise UsageError(
                f"the series has no step {seconds / 3600.0:g} hours after its beginning",
                where="--series-start",
                fix=f"name a whole step of {self.step:g} s, from 0 to {last:g} hours",
            )
        begins = None if self.origin is None else self.origin + seconds
        return replace(self, values=self.values[skipped:], origin=begins)

    @property
    def end(self) -> float:
        """The instant up to which the values are given, not repeated."""
        return self.step * len(self.values)

    def covers(self, time: float) -> bool:
        return time <= self.end

    def at(self, time: Any) -> Any:
        """The value at an instant, or at each of an array of instants."""
        return self._levels[self._place(np.floor_divide(time, self.step).astype(np.int64))]

    def integral(self, begin: Any, end: Any) -> Any:
        """The sum over time, value times seconds, from begin to end; arrays give one sum each."""
        return self._sum_until(end) - self._sum_until(begin)

    def next_step(self, time: float) -> float:
        """The first instant after `time` at which another value begins."""
        return float((np.floor_divide(time, self.step) + 1.0) * self.step)

    @cached_property
    def _levels(self) -> Floats:
        return np.asarray(self.values, dtype=np.float64)

    @cached_property
    def _cycle(self) -> int:
        """How many of the last values are repeated behind the end."""
        return min(len(self.values), max(1, round(DAY / self.step)))

    @cached_property
    def _sums(self) -> Floats:
        return np.concatenate(([0.0], np.cumsum(self._levels))) * self.step

    def _place(self, number: Any) -> Any:
        """The value that stands for a step, also behind the end."""
        first = len(self.values) - self._cycle
        return np.where(number < len(self.values), number, first + (number - first) % self._cycle)

    def _sum_until(self, time: Any) -> Any:
        number = np.floor_divide(time, self.step).astype(np.int64)
        first = len(self.values) - self._cycle
        rounds = np.maximum(number - first, 0) // self._cycle * (number >= len(self.values))
        place = number - rounds * self._cycle
        whole = self._sums[place] + rounds * (self._sums[-1] - self._sums[first])
        return whole + self._levels[self._place(number)] * (time - number * self.step)


@dataclass(frozen=True, slots=True)
class DevicePower:
    """Watts of one device (of one CPU on nodes without devices) while a gang holds it, and while none does."""

    busy: float
    idle: float = 0.0

    def __str__(self) -> str:
        """As people write it."""
        return f"{self.busy!r}/{self.idle!r}"


@dataclass(frozen=True, slots=True)
class PowerGrid:
    """What a run knows of power; all of it may be absent."""

    carbon: Signal | None = None
    """Grams of CO2 equivalent per kilowatt-hour, over time."""
    electricity: Signal | None = None
    """Money per kilowatt-hour, over time."""
    power: Mapping[str, DevicePower] = field(default_factory=dict)
    """By device type."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "power", MappingProxyType(dict(self.power)))


NO_GRID = PowerGrid()
"""Nothing is known of power."""
