"""Running the loop of a policy whose key is declared: its numbers packed for the kernel, which does the rest."""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats
from gantline.core.policy import LinearKey, OrderPolicy, Policy
from gantline.drivers import loop_clock as lc
from gantline.drivers.dense import fits_dense, run_on_records
from gantline.drivers.standstill import Standstill
from gantline.engine import declared_key as k
from gantline.engine import lists as ls
from gantline.engine import settings as s
from gantline.engine.blocked import name_blocked
from gantline.engine.engine import Engine
from gantline.engine.state import State


def take_order(state: State, policy: Policy) -> None:
    """Whether the order stops gangs, and who may pass one that does not fit."""
    assert isinstance(policy, OrderPolicy)
    state.SI[s.S_PREEMPT] = int(policy.preempt or state.regime.strict)
    state.SI[s.S_MISFIT] = 1 if state.regime.strict else int(policy.misfit)


def run_declared(engine: Engine, key: LinearKey, bounds: lc.LoopBounds) -> bool:
    """Run to the end without calling back, but to make room in the log; whether the bound in time cut it short."""
    state = engine.state
    take_order(state, engine.policy)
    if fits_dense(state):
        cut = run_on_records(engine, key, bounds)
    else:
        cut = _run_on_tables(engine, key, bounds)
    name_blocked(state)
    return cut


def run_read(engine: Engine, key: LinearKey, numbers: Floats, bounds: lc.LoopBounds) -> bool:
    """The same for a key that was read from Python, with these numbers in place of the priorities."""
    F = engine.state.tables.F
    given = F[c.PRIORITY].copy()
    F[c.PRIORITY] = numbers
    try:
        return run_declared(engine, key, bounds)
    finally:
        F[c.PRIORITY] = given


def run_from_here(engine: Engine, key: LinearKey, bounds: lc.LoopBounds) -> bool:
    """The same from the middle of a run: some have devices, others wait, and the first decision is due now."""
    take_order(engine.state, engine.policy)
    return _run_on_tables(engine, key, bounds, from_here=True)


def _run_on_tables(engine: Engine, key: LinearKey, bounds: lc.LoopBounds, from_here: bool = False) -> bool:
    """Everything that records cannot say."""
    from gantline.drivers.linear_loop import Declared, rank_waiting, run_linear  # most runs do without

    state = engine.state
    clock = lc.clock(state.regime, bounds)
    declared = Declared(k.coefficients(key), np.array(key.thresholds, dtype=np.float64))
    if from_here:
        clock.time[lc.NOW] = clock.time[lc.WAKE] = state.now
        rank_waiting(state.tables.F, state.tables.I, state.lists, state.now, declared)
    devices = state.tables.D.shape[1]
    log = state.log
    code = lc.NEED_LOG
    standstill = Standstill(engine)
    while code == lc.NEED_LOG and not standstill.is_here(float(clock.time[lc.NOW])):
        log.reserve(4 * devices + 2 * int(state.lists.number[ls.ACTIVE]) + 65536, 16 * devices + 65536)
        code = run_linear(state.matrices, state.lists, state.rules, log.columns, state.scratch, state.out, declared, clock)
        if bounds.on_progress is not None:
            bounds.on_progress(float(clock.time[lc.NOW]), int(state.lists.number[ls.NEXT]), int(state.lists.number[ls.ACTIVE]))
    state.now = float(clock.time[lc.NOW])
    engine.decisions += int(clock.number[lc.DECISIONS])
    engine.started += int(clock.number[lc.STARTED])
    engine.stopped += int(clock.number[lc.STOPPED])
    return code == lc.CUT
