"""How the learning rate follows the batch: one table of rules, for training loops and for the goodput models alike.

``scale`` is the batch over the one the rate was chosen for, ``gain`` how many steps at that batch one step is worth now,
``progress`` the steps at that batch done so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple


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
