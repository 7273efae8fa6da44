"""Clock, bounds and counters of the compiled loops, the codes they return, and how they take a policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.constants import Constants
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.tables import Tables
from gantline.engine.engine import Engine
from gantline.engine.regime import Regime
from gantline.engine.settings import Switch
from gantline.engine.state import State


class LoopTime(Constants):
    """Places of `time`: seconds, GPUs at which admission stops, whether every round is looked at, and until when
    the last answer of a policy holds although nothing happens (NaN: it does not say)."""

    NOW, ROUND, QUANTUM, LOAD_LIMIT, UNTIL, WAKE, STEP_ALL, VALID = range(8)


class LoopCount(Constants):
    """Places of `number`: what the loop counts (decisions, starts, stops, instants, instants in a row at which
    nothing changed), the rows with which it ends, whether it has looked at all, and how far this instant has
    come."""

    DECISIONS, STARTED, STOPPED, INSTANTS, IDLE, TRACK_LOW, TRACK_HIGH, LOOKED, READY = range(9)


class Stage(Constants):
    """Of READY: the instant is to come; it is here, and the order of its jobs is known."""

    BEFORE, KNOWN = range(2)


STALL = 1000  # decisions without any change, with jobs waiting and nothing else to come, after which a run is given up


class Outcome(Constants):
    """What a loop comes back with: everything has ended; it must be given room in the log, or a look at alarms; the
    bound in time is reached; the policy is to say the keys of this instant; the policy must be asked from this decision on; jobs
    wait, and nothing is to come. The last is no end: a decision was made, or there was nothing to decide."""

    DONE, NEED_LOG, CUT, KEYS, ASK, STALLED, GO_ON = range(7)


@dataclass(frozen=True)
class LoopBounds:
    """When a loop ends, what it lets in, and what it calls meanwhile."""

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
    time = np.zeros(len(LoopTime))
    time[LoopTime.ROUND], time[LoopTime.QUANTUM], time[LoopTime.UNTIL], time[LoopTime.LOAD_LIMIT] = (
        regime.round,
        regime.quantum,
        bounds.until,
        bounds.load_limit,
    )
    time[LoopTime.WAKE], time[LoopTime.STEP_ALL], time[LoopTime.VALID] = np.inf, float(bounds.step_all), np.inf
    number = np.zeros(len(LoopCount), dtype=np.int64)
    number[LoopCount.TRACK_LOW], number[LoopCount.TRACK_HIGH] = bounds.track or (0, -1)
    return LoopClock(time, number)


def count_in(engine: Engine, clock: LoopClock) -> None:
    """Let the engine know what time it is, and what a loop has done that counts by itself."""
    engine.state.now = float(clock.time[LoopTime.NOW])
    engine.decisions += int(clock.number[LoopCount.DECISIONS])
    engine.started += int(clock.number[LoopCount.STARTED])
    engine.stopped += int(clock.number[LoopCount.STOPPED])


# --- a policy as compiled loops take it ---------------------------------------------------------------------------------


def take_order(state: State, policy: Policy) -> None:
    """Whether the order stops gangs, and what may pass one that does not fit."""
    assert isinstance(policy, OrderPolicy)
    state.SI[Switch.PREEMPT] = int(policy.preempt or state.regime.strict)
    state.SI[Switch.MISFIT] = 1 if state.regime.strict else int(policy.misfit)


@contextmanager
def as_priorities(numbers: Floats | None, tables: Tables) -> Iterator[None]:
    """While a loop runs, the numbers of a key that was read replace the priorities; None: it needs none."""
    given = tables.F[Job.PRIORITY].copy()
    if numbers is not None:
        tables.F[Job.PRIORITY] = numbers
    try:
        yield
    finally:
        tables.F[Job.PRIORITY] = given
