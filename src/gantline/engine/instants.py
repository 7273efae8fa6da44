"""The arithmetic of instants: on which one a decision falls, and when an order or an answer is looked at again.

Every loop asks here, in Python (`engine.agenda`) and in compiled code (`drivers.six_steps`, `drivers.futures`).
"""

from __future__ import annotations

import numpy as np

from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.rounding import round_down, round_up


@kernel
def next_instant(due: float, now: float, length: float, looked: bool, every: bool) -> float:
    """When something that is due then is decided: at once, or with rounds of that `length` at the next boundary.

    `looked`: there was a decision before, so that the next one falls on a later boundary; `every`: on the very next, whatever is due.
    """
    if length <= 0.0:
        return max(due, now)
    number = max(0.0, round_up(due / length - 1e-9))
    if looked:
        following = round_down(now / length + 1e-9) + 1.0
        number = following if every else max(number, following)
    return number * length


@kernel
def next_look(change: float, now: float, quantum: float) -> float:
    """When an order that moves by itself is looked at again: the first whole multiple of the quantum after now at which it has changed.

    Multiples of a fixed length, rather than so long after the last look, because then a look in between without a change has no effect.
    """
    if change == np.inf:
        return change
    number = max(round_up(change / quantum - 1e-9), round_down(now / quantum + 1e-9) + 1.0)
    return number * quantum


@kernel
def answer_ends(until: float, now: float, length: float, quantum: float) -> float:
    """When an answer that holds `until` then is asked for again; NaN: it does not say, so in the next round or quantum."""
    if np.isnan(until):
        return now + length if length > 0.0 else next_look(now, now, quantum)
    if length <= 0.0 and until <= now:
        return next_look(now, now, quantum)
    return until
