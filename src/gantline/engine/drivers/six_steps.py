"""The six steps of a run in compiled code, written once.

    1. the next instant     2. what has finished     3. what has arrived     4. order     5. walk     6. when to look again

What a step does depends on where the jobs are: on records (`record_loop`) or in the tables (`table_loop`). Each of these has
verbs of its own, and `loop_over` compiles the steps with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.constants import Constants
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.tables import Tables
from gantline.engine.agenda import next_instant
from gantline.engine.engine import Engine
from gantline.engine.lists import RowCount
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


def clock_of(regime: Regime, bounds: LoopBounds) -> LoopClock:
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


# --- the steps ----------------------------------------------------------------------------------------------------------


class Verbs(NamedTuple):
    """What the steps do on one kind of store, and what they ask of it; `number` counts rows as `engine.lists` says."""

    due: Callable[[Any, Ints], float]  # when the next row arrives; infinity: none is to come
    finish: Callable[[Any, Ints, float], None]  # complete what is done by now
    arrive: Callable[[Any, Ints, float, float], None]  # let in what has come by now, within the load limit
    decide: Callable[[Any, Ints, LoopClock, float], int]  # rank what runs and what waits, and walk through it; an `Outcome`
    wake: Callable[[Any, Ints, LoopClock, float], float]  # when the order changes by itself
    has_room: Callable[[Any, Ints, LoopClock], bool]  # in the log, for one more instant
    has_ended: Callable[[Any, int], bool]  # a row
    next_end: Callable[[Any, Ints], float]  # when the next gang is done


def loop_over(verbs: Verbs, name: str, module: str) -> Callable[[Any, Ints, LoopClock], int]:
    """The six steps over one kind of store, as a kernel of that name.

    It runs until everything has ended or a bound is reached, and comes back early for what compiled code does not have.
    """
    due, finish, arrive, decide, wake, has_room, has_ended, next_end = verbs

    def six_steps(store: Any, number: Ints, clock: LoopClock) -> int:
        time, count = clock.time, clock.number
        while True:
            if count[LoopCount.READY] == Stage.BEFORE:
                count[LoopCount.INSTANTS] += 1
                if not has_room(store, number, clock):
                    return Outcome.NEED_LOG
                # 1. the next instant
                soonest = min(time[LoopTime.WAKE], due(store, number))
                if soonest == np.inf:
                    return Outcome.DONE
                at = next_instant(
                    soonest, time[LoopTime.NOW], time[LoopTime.ROUND], count[LoopCount.LOOKED] == 1, time[LoopTime.STEP_ALL] == 1.0
                )
                if at > time[LoopTime.UNTIL]:
                    return Outcome.CUT
                time[LoopTime.NOW] = at
                count[LoopCount.LOOKED] = 1
                # 2. what has finished, 3. what has arrived
                finish(store, number, at)
                arrive(store, number, at, time[LoopTime.LOAD_LIMIT])
                if number[RowCount.FINISHED] > 0 and count[LoopCount.TRACK_HIGH] >= 0:
                    row = count[LoopCount.TRACK_LOW]
                    while row < count[LoopCount.TRACK_HIGH] and has_ended(store, row):
                        row += 1
                    count[LoopCount.TRACK_LOW] = row  # those before it are not looked at again
                    if row >= count[LoopCount.TRACK_HIGH]:
                        return Outcome.DONE
            # 4. order, 5. walk
            now, moved = time[LoopTime.NOW], count[LoopCount.STARTED] + count[LoopCount.STOPPED]
            code = decide(store, number, clock, now)
            if code != Outcome.GO_ON:
                return code
            count[LoopCount.READY] = Stage.BEFORE
            # 6. when to look again
            soonest = next_end(store, number)
            changed = (
                number[RowCount.FINISHED] + number[RowCount.ADMITTED] > 0 or count[LoopCount.STARTED] + count[LoopCount.STOPPED] > moved
            )
            count[LoopCount.IDLE] = 0 if changed else count[LoopCount.IDLE] + 1
            if count[LoopCount.IDLE] > STALL and soonest == np.inf and due(store, number) == np.inf:
                return Outcome.STALLED
            soonest = min(soonest, wake(store, number, clock, now))
            if number[RowCount.HELD] < number[RowCount.NEXT] and number[RowCount.ADMITTED] > 0 and time[LoopTime.ROUND] > 0.0:
                soonest = min(soonest, now + time[LoopTime.ROUND])  # more may be let in at the next boundary
            time[LoopTime.WAKE] = soonest

    six_steps.__name__ = six_steps.__qualname__ = name
    six_steps.__module__ = module
    return kernel(six_steps)


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
