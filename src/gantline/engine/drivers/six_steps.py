"""The six steps of a run in compiled code, written once.

    1. the next instant     2. what has finished     3. what has arrived     4. order     5. walk     6. when to look again

What a step does depends on where the jobs are: on records (`dense_verbs`) or in the tables (`table_loop`). Each of these has
verbs of its own, and `loop_over` compiles the steps with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.agenda import next_instant
from gantline.engine.drivers.loop_clock import STALL, LoopClock, LoopCount, LoopTime, Outcome, Stage
from gantline.engine.lists import RowCount


class Verbs(NamedTuple):
    """What the steps do on one kind of store, and what they ask of it; `number` counts rows as `engine.lists` says."""

    due: Callable[[Any, Ints], float]  # when the next row arrives; infinity: none is to come
    finish: Callable[[Any, Ints, float], None]  # complete what is done by now
    arrive: Callable[[Any, Ints, float, float], None]  # let in what has come by now, within the load limit
    decide: Callable[[Any, Ints, LoopClock, float], int]  # rank what runs and what waits, and walk through it; a code of `loop_clock`
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
