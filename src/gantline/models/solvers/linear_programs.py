"""Linear programs on HiGHS: built once, solved from a cold start, so that an answer depends on the program alone.

Three ways. *simplex* ends in a vertex; a stated second objective settles ties, what is still tied after that is settled
by the fixed pivoting rule. *interior* stops inside the optimal face (no crossover), as the solver of Gavel's artifact does.
*mip* is branch and bound. Threads and seed are fixed; budgets are counts, never seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import highspy
import numpy as np
from scipy import sparse

from gantline.core.arrays import Floats

Method = Literal["simplex", "interior", "mip"]
Status = Literal["optimal", "infeasible", "unbounded", "budget", "failed"]

TIE_SLACK = 1e-9  # how much of the first objective (relatively) the second may give away


@dataclass(frozen=True, slots=True)
class LinearProgram:
    """Maximise ``gain . x`` subject to ``lower <= matrix x <= upper`` and ``low <= x <= high``."""

    gain: Floats
    matrix: sparse.csc_array
    lower: Floats
    upper: Floats
    low: Floats
    high: Floats
    whole: Floats | None = None  # 1 where a column must be an integer


@dataclass(frozen=True, slots=True)
class Solution:
    """What the solver found; ``x`` is empty unless the status is optimal or budget."""

    status: Status
    x: Floats
    objective: float
    iterations: int


def solve(
    program: LinearProgram,
    method: Method = "simplex",
    *,
    second: Floats | None = None,
    budget: int = 1_000_000,
    gap: float = 0.0,
    nodes: int | None = None,
    jump: bool = True,
) -> Solution:
    """Solve from scratch; with ``second`` maximise that among the optimal answers.

    *mip* may stop within ``gap`` of the optimum, and gives up after so many ``nodes``. Without ``jump`` it does not begin with a search for
    any answer at all (feasibility jump), which is lost time where the relaxed program leads to a good one at once.
    """
    solver = _load(program, method, budget, gap)
    if not jump:
        solver.setOptionValue("mip_heuristic_run_feasibility_jump", False)  # versions that do not know it have no such search
    if nodes is not None:
        solver.setOptionValue("mip_max_nodes", nodes)
    found = _run(solver, method)
    if second is None or found.status != "optimal":
        return found
    slack = TIE_SLACK * max(1.0, abs(found.objective))
    used = np.flatnonzero(program.gain)
    solver.addRow(found.objective - slack, highspy.kHighsInf, len(used), used.astype(np.int32), program.gain[used])
    solver.changeColsCost(len(second), np.arange(len(second), dtype=np.int32), second)
    solver.clearSolver()
    better = _run(solver, method)
    if better.status != "optimal":
        return found
    return Solution("optimal", better.x, float(program.gain @ better.x), found.iterations + better.iterations)


def _load(program: LinearProgram, method: Method, budget: int, gap: float) -> highspy.Highs:
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    options = solver.getOptions()
    options.threads = 1
    options.random_seed = 0
    options.parallel = "off"
    options.simplex_iteration_limit = budget
    options.ipm_iteration_limit = budget
    options.mip_max_nodes = budget
    if method == "interior":
        options.solver = "ipm"
        options.run_crossover = "off"
        options.presolve = "off"  # presolve would fix columns that the centre of the optimal face keeps open
    elif method == "simplex":
        options.solver = "simplex"
    elif gap:
        options.mip_rel_gap = gap
    solver.passOptions(options)
    model = highspy.HighsLp()
    model.num_col_ = len(program.gain)
    model.num_row_ = len(program.lower)
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = program.gain
    model.col_lower_, model.col_upper_ = program.low, program.high
    model.row_lower_, model.row_upper_ = program.lower, program.upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = program.matrix.indptr
    model.a_matrix_.index_ = program.matrix.indices
    model.a_matrix_.value_ = program.matrix.data
    if program.whole is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[int(flag)] for flag in program.whole]
    solver.passModel(model)
    return solver


def _run(solver: highspy.Highs, method: Method) -> Solution:
    solver.run()
    info = solver.getInfo()
    counts = {"simplex": info.simplex_iteration_count, "interior": info.ipm_iteration_count, "mip": info.mip_node_count}
    status = _status(solver.getModelStatus())
    has_answer = status in ("optimal", "budget")
    x = np.array(solver.getSolution().col_value) if has_answer else np.zeros(0)
    return Solution(status, x, float(info.objective_function_value), max(int(counts[method]), 0))


def _status(status: highspy.HighsModelStatus) -> Status:
    known = highspy.HighsModelStatus
    if status == known.kOptimal:
        return "optimal"
    if status == known.kInfeasible:
        return "infeasible"
    if status in (known.kUnbounded, known.kUnboundedOrInfeasible):
        return "unbounded"
    if status in (known.kIterationLimit, known.kSolutionLimit):
        return "budget"
    return "failed"
