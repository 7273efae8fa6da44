"""Running the loop of a policy whose key is declared: its numbers packed for the kernel, which does the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.policy import LinearKey, OrderPolicy
from gantline.drivers import linear_loop as ll
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
    T, C = _clock(simulation)
    coefficients, thresholds = _coefficients(key), np.array(key.thresholds, dtype=np.float64)
    devices = state.tables.D.shape[1]
    log = state.log
    code = ll.NEED_LOG
    while code == ll.NEED_LOG:
        log.reserve(4 * devices + 2 * int(state.B[B_ACTIVE]) + 65536, 16 * devices + 65536)
        code = ll.run_linear(
            *state.kernel_tables(), state.active, state.running, state.waiting, state.B, state.hist, state.SI, state.SF,
            log.LI, log.LF, log.LD, log.LN, state.scratch, state.out, coefficients, thresholds, T, C,
        )  # fmt: skip
        if simulation.on_progress is not None:
            simulation.on_progress(float(T[ll.T_NOW]), int(state.B[B_NEXT]), int(state.B[B_ACTIVE]))
    state.now = float(T[ll.T_NOW])
    engine.decisions += int(C[ll.C_DECISIONS])
    engine.started += int(C[ll.C_STARTED])
    engine.stopped += int(C[ll.C_STOPPED])
    return code == ll.CUT


def _coefficients(key: LinearKey) -> Floats:
    sums = [key.arrival, key.attained, key.attained_gpu, key.remaining, key.remaining_gpu, key.estimate, key.gpus, key.priority]
    return np.array([*sums, key.first_start, float(key.level_by == "attained_gpu"), float(key.moves)])


def _clock(simulation: Simulation) -> tuple[Floats, Ints]:
    """The loop's clock with its bounds, and its counters."""
    regime = simulation.state.regime
    T = np.zeros(ll.T_COUNT)
    T[ll.T_ROUND], T[ll.T_QUANTUM], T[ll.T_UNTIL] = regime.round, regime.quantum, simulation.until
    T[ll.T_LOAD_LIMIT] = simulation.admission.load_limit * simulation.state.tables.cluster.gpus
    T[ll.T_WAKE], T[ll.T_LAST_DECISION], T[ll.T_STEP_ALL] = np.inf, -1.0, float(simulation.step_all)
    C = np.zeros(ll.C_COUNT, dtype=np.int64)
    C[ll.C_TRACK_LOW], C[ll.C_TRACK_HIGH] = simulation.track or (0, -1)
    return T, C
