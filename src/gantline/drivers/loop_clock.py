"""Clock and counters of the compiled loops, and what they come back with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gantline.core.arrays import Floats, Ints

if TYPE_CHECKING:
    from gantline.drivers.virtual import Simulation

# T: the clock
T_NOW, T_ROUND, T_QUANTUM, T_LOAD_LIMIT, T_UNTIL, T_WAKE, T_LAST_DECISION, T_STEP_ALL, T_COUNT = range(9)
# C: counters
C_DECISIONS, C_ROUNDS, C_STARTED, C_STOPPED, C_TRACK_LOW, C_TRACK_HIGH, C_TRACKED_LEFT, C_MAX_ACTIVE, C_COUNT = range(9)

DONE, NEED_LOG, CUT = 0, 1, 2  # everything has ended, the log is full, the bound in time is reached


def clock(simulation: Simulation) -> tuple[Floats, Ints]:
    """The loop's clock with its bounds, and its counters."""
    regime = simulation.state.regime
    T = np.zeros(T_COUNT)
    T[T_ROUND], T[T_QUANTUM], T[T_UNTIL] = regime.round, regime.quantum, simulation.until
    T[T_LOAD_LIMIT] = simulation.admission.load_limit * simulation.state.tables.cluster.gpus
    T[T_WAKE], T[T_LAST_DECISION], T[T_STEP_ALL] = np.inf, -1.0, float(simulation.step_all)
    C = np.zeros(C_COUNT, dtype=np.int64)
    C[C_TRACK_LOW], C[C_TRACK_HIGH] = simulation.track or (0, -1)
    return T, C
