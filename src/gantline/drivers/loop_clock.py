"""Clock and counters of the compiled loops, and what they come back with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.engine.regime import Regime

# places of `time`: seconds, GPUs at which admission stops, whether every round is looked at, and until when the last answer of a policy
# holds although nothing happens (NaN: it does not say)
NOW, ROUND, QUANTUM, LOAD_LIMIT, UNTIL, WAKE, LAST_DECISION, STEP_ALL, VALID, TIMES = range(10)
# places of `number`: what the loop counts, and the rows with which it ends
DECISIONS, STARTED, STOPPED, TRACK_LOW, TRACK_HIGH, NUMBERS = range(6)

STALL = 1000  # decisions without any change, with jobs waiting and nothing else to come, after which a run is given up
DONE, NEED_LOG, CUT = 0, 1, 2  # everything has ended, the log is full, the bound in time is reached


@dataclass(frozen=True)
class LoopBounds:
    """When a loop ends, whom it lets in, and who wants to hear of it."""

    until: float = math.inf
    track: tuple[int, int] | None = None  # rows [low, high): it ends when all of them have
    load_limit: float = math.inf  # GPUs at which admission stops
    step_all: bool = False  # visit every round even if nothing can change
    on_progress: Callable[[float, int, int], None] | None = None  # time, rows that have arrived, rows inside


class LoopClock(NamedTuple):
    """What time it is for a loop, with its bounds, and what it has counted."""

    time: Floats
    number: Ints


def clock(regime: Regime, bounds: LoopBounds) -> LoopClock:
    """The clock of a loop that has not begun."""
    time = np.zeros(TIMES)
    time[ROUND], time[QUANTUM], time[UNTIL], time[LOAD_LIMIT] = regime.round, regime.quantum, bounds.until, bounds.load_limit
    time[WAKE], time[LAST_DECISION], time[STEP_ALL] = np.inf, -1.0, float(bounds.step_all)
    number = np.zeros(NUMBERS, dtype=np.int64)
    number[TRACK_LOW], number[TRACK_HIGH] = bounds.track or (0, -1)
    return LoopClock(time, number)
