"""Running the loop of a key that was read, and holding it against the policy now and then."""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core import columns as c
from gantline.drivers import loop_clock as lc
from gantline.drivers.declared import take_order
from gantline.drivers.python_keys import loop
from gantline.drivers.python_keys.tape import Written
from gantline.engine import lists as ls
from gantline.engine.blocked import name_blocked
from gantline.engine.engine import Engine


def run_written(engine: Engine, written: Written, bounds: lc.LoopBounds) -> int:
    """Run to the end, or until the policy itself must be asked; how it ended comes back (see `loop_clock` and `loop`).

    At the first decision, the second, the fourth and so on the policy is asked what the keys are. Should it say anything else, it is asked
    from there on.
    """
    state = engine.state
    take_order(state, engine.policy)
    clock, log, devices = lc.clock(state.regime, bounds), state.log, state.tables.D.shape[1]
    how = np.zeros(loop.PLACES, dtype=np.int64)
    how[loop.MOVES], how[loop.AGES], how[loop.UNTIL_CHECK] = int(written.moves), int(written.ages), 1
    fresh, checked, code = np.zeros(state.tables.F.shape[1], dtype=np.int64), 1, lc.NEED_LOG
    while code in (lc.NEED_LOG, loop.CHECK):
        log.reserve(4 * devices + 2 * int(state.lists.number[ls.ACTIVE]) + 65536, 16 * devices + 65536)
        code = loop.run_tape(
            state.matrices, state.lists, state.rules, log.columns, state.scratch, state.out, written.tape, how, fresh, clock
        )
        state.now = float(clock.time[lc.NOW])
        if code == loop.CHECK:
            how[loop.UNTIL_CHECK], checked = checked, 2 * checked
            code = loop.CHECK if _as_the_policy_says(engine) else loop.ASK
        if bounds.on_progress is not None:
            bounds.on_progress(state.now, int(state.lists.number[ls.NEXT]), int(state.lists.number[ls.ACTIVE]))
    state.decision += int(clock.number[lc.DECISIONS])
    engine.decisions += int(clock.number[lc.DECISIONS])
    engine.started += int(clock.number[lc.STARTED])
    engine.stopped += int(clock.number[lc.STOPPED])
    if code != loop.ASK:
        name_blocked(state)
    return code


def _as_the_policy_says(engine: Engine) -> bool:
    """Whether the keys of this instant are those that the policy itself would give."""
    state, policy = engine.state, engine.policy
    asked: Any = policy
    try:
        said = np.asarray(asked.key(state.snapshot()), dtype=np.float64)
    except (Exception, SystemExit):  # its mistake is told when it is asked
        return False
    return np.array_equal(said, state.tables.F[c.KEY][state.rows])
