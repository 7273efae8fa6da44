"""Measures gradient noise while training, which shows what a larger batch would be worth.

Two estimators of the same thing. `NoiseMeter` is Pollux's (OSDI 2021, section 3.1): from gradients of equal parts of one
step, or of two steps in a row where there is only one part. `NoiseScale` is KungFu's (OSDI 2020, section 4): from the gradient
of a local and of the global batch. Both take squared norms, so no tensor library is needed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

SMOOTHING = 0.999  # per step at the first batch
_LEAST_VARIANCE = 1e-6


@dataclass(slots=True)
class NoiseMeter:
    """Squared norm of the true gradient and trace of its covariance at the base batch, as moving averages."""

    _square: float = 0.0
    _variance: float = 0.0
    _weight: float = 0.0  # of all that was seen; 1 once there is much of it
    biased: bool = True  # nothing but steps in a row was seen so far

    def add(self, part_square: float, mean_square: float, count: int, scale: float) -> None:
        """One step at ``scale`` times the base batch: the mean squared norm of ``count`` parts' gradients, and that of their mean."""
        if count < 2:
            raise ValueError(f"noise shows between parts, and there is {count}: use add_pair for steps in a row")
        if self.biased:
            self._forget()
            self.biased = False
        self._add(part_square, mean_square, count, scale)

    def add_pair(self, before_square: float, square: float, mean_square: float, scale: float) -> None:
        """Two steps in a row by a replica without parts: their squared norms and that of their mean. Counts until parts are seen."""
        if self.biased:
            self._add((before_square + square) / 2, mean_square, 2, 2.0 * scale)

    def _add(self, local: float, total: float, count: int, scale: float) -> None:
        square = (count * total - local) / (count - 1)
        variance = (local - total) * scale / (count - 1)
        keep: float = SMOOTHING**scale
        self._square = keep * self._square + (1.0 - keep) * square
        self._variance = keep * self._variance + (1.0 - keep) * variance
        self._weight = keep * self._weight + (1.0 - keep)

    def _forget(self) -> None:
        self._square = self._variance = self._weight = 0.0

    @property
    def is_known(self) -> bool:
        """Whether anything was measured."""
        return self._weight > 0.0

    @property
    def square(self) -> float:
        """The square of the true gradient's length; 0 before anything is measured, as Pollux assumes."""
        return max(self._square / self._weight, 0.0) if self.is_known else 0.0

    @property
    def variance(self) -> float:
        """Trace of the covariance at the base batch; 1 before anything is measured."""
        return max(self._variance / self._weight, _LEAST_VARIANCE) if self.is_known else 1.0

    def gain(self, scale: float) -> float:
        """Steps at the base batch that one step at ``scale`` times that batch is worth; at most ``scale``."""
        below = self.variance / scale + self.square
        if not (below > 0.0 and self.variance + self.square > 0.0):
            return 1.0
        return (self.variance + self.square) / below

    def noise_scale(self, base: float) -> float:
        """The batch at which half of the efficiency is gone, near enough; infinite while the gradient itself is not seen."""
        return base * self.variance / self.square if self.square > 0.0 else float("inf")

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"square": self._square, "variance": self._variance, "weight": self._weight, "biased": self.biased}

    @classmethod
    def of(cls, state: dict[str, Any]) -> NoiseMeter:
        """The meter that a checkpoint kept."""
        return cls(float(state["square"]), float(state["variance"]), float(state["weight"]), bool(state["biased"]))


@dataclass(slots=True)
class NoiseScale:
    """KungFu's noise scale: smoothed S over smoothed G."""

    smoothing: float = 0.9
    _gradient: float | None = None
    _spread: float | None = None

    def add(self, local_batch: float, global_batch: float, local_square: float, global_square: float) -> float:
        """One step's squared norms of the local and of the averaged gradient; the scale so far comes back."""
        if not 0 < local_batch < global_batch:
            raise ValueError(f"a local batch of {local_batch:g} of {global_batch:g} shows no noise: it must be a part of the global one")
        gradient = (global_batch * global_square - local_batch * local_square) / (global_batch - local_batch)
        spread = (local_square - global_square) / (1.0 / local_batch - 1.0 / global_batch)
        self._gradient = gradient if self._gradient is None else self.smoothing * self._gradient + (1 - self.smoothing) * gradient
        self._spread = spread if self._spread is None else self.smoothing * self._spread + (1 - self.smoothing) * spread
        return self.value

    @property
    def value(self) -> float:
        """The batch beyond which averaging more gradients helps little; NaN before anything is measured."""
        if self._gradient is None or self._spread is None:
            return float("nan")
        return self._spread / self._gradient if self._gradient else float("inf")


# How the learning rate follows the batch: one table of rules, for training loops and for the goodput models alike.
#
# ``scale`` is the batch over the one the rate was chosen for, ``gain`` how many steps at that batch one step is
# worth now, ``progress`` the steps at that batch done so far.


class BatchState(NamedTuple):
    """What a rule may look at."""

    scale: float
    gain: float
    progress: float = math.inf
    warmup: float = 0.0  # steps at the first batch over which a rule with a warm-up raises the rate


def _adascale(state: BatchState) -> float:
    """AdaScale (Johnson et al., ICML 2020): as many steps at once as the gradients allow."""
    return state.gain


def _adamscale(state: BatchState) -> float:
    """AdaScale's gain for Adam, whose step does not grow with the gradient: its root."""
    return math.sqrt(state.gain)


def _linear(state: BatchState) -> float:
    """In proportion to the batch (Goyal et al., 2017)."""
    return state.scale


def _root(state: BatchState) -> float:
    """With the root of the batch (Krizhevsky, 2014)."""
    return math.sqrt(state.scale)


def _legw(state: BatchState) -> float:
    """The root of the batch after a warm-up of so many epochs more (You et al., SC 2019)."""
    span = state.warmup * state.scale
    return math.sqrt(state.scale) * (min(1.0, state.progress / span) if span > 0.0 else 1.0)


RULES: Mapping[str, Callable[[BatchState], float]] = {
    "adascale": _adascale,
    "adamscale": _adamscale,
    "linear": _linear,
    "sqrt": _root,
    "legw": _legw,
}
