"""Running the loop of a policy whose key is declared: its numbers packed for the kernel, which does the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gantline.core.policy import LinearKey, OrderPolicy
from gantline.drivers import loop_clock as lc
from gantline.drivers.dense import fits_dense, run_on_records
from gantline.drivers.linear_loop import run_linear
from gantline.engine import declared_key as k
from gantline.engine import settings as s
from gantline.engine.ranks import B_ACTIVE, B_NEXT

if TYPE_CHECKING:
    from gantline.drivers.virtual import Simulation


def run_declared(simulation: Simulation, key: LinearKey) -> bool:
    """Run to the end without calling back, but to make room in the log; whether the bound in time cut it short."""
    state, engine = simulation.state, simulation.engine
    policy = engine.policy
    assert isinstance(policy, OrderPolicy)
    state.SI[s.S_PREEMPT] = int(policy.preempt or state.regime.strict)
    state.SI[s.S_MISFIT] = 1 if state.regime.strict else int(policy.misfit)
    if fits_dense(state):
        return run_on_records(simulation, key)
    T, C = lc.clock(simulation)
    coefficients, thresholds = k.coefficients(key), np.array(key.thresholds, dtype=np.float64)
    devices = state.tables.D.shape[1]
    log = state.log
    code = lc.NEED_LOG
    while code == lc.NEED_LOG:
        log.reserve(4 * devices + 2 * int(state.B[B_ACTIVE]) + 65536, 16 * devices + 65536)
        code = run_linear(
            *state.kernel_tables(), state.active, state.running, state.waiting, state.B, state.hist, state.SI, state.SF,
            log.LI, log.LF, log.LD, log.LN, state.scratch, state.out, coefficients, thresholds, T, C,
        )  # fmt: skip
        if simulation.on_progress is not None:
            simulation.on_progress(float(T[lc.T_NOW]), int(state.B[B_NEXT]), int(state.B[B_ACTIVE]))
    state.now = float(T[lc.T_NOW])
    engine.decisions += int(C[lc.C_DECISIONS])
    engine.started += int(C[lc.C_STARTED])
    engine.stopped += int(C[lc.C_STOPPED])
    return code == lc.CUT
