"""At most one column per job within what there is of each resource, for the greatest saving: exact, and quick for hundreds of jobs.

Where no job chooses between resources (one device type), a dynamic program per resource is exact and quick (`counted_choices`). Otherwise
branch and bound. On the whole program it takes seconds for hundreds of jobs, although its relaxation is nearly whole: few jobs are split.
So the relaxation comes first (HiGHS' simplex, some ms). Its prices say how much each column loses at least against the best of its job;
what loses more than the distance between the relaxation and a known whole answer is in no better answer and is left out. HiGHS' branch
and bound sees the rest only: first what loses least, which gives a better known answer, then all that is left after that.
"""

from __future__ import annotations

import highspy
import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel
from gantline.solvers.counted_choices import choose_by_count, separate_counts

_SMALL = 1e-7
_FIRST = 240  # columns beyond each job's best that branch and bound begins with


def solve_choices(job: Ints, use: Floats, saving: Floats, free: Floats, jobs: int, slack: float = 0.0) -> Ints:
    """Positions of the chosen columns; ``use`` is columns x resources. The answer may save up to ``slack`` less than the best one."""
    best = _best_of_each(job, saving, jobs)
    if np.all(use[best].sum(axis=0) <= free):
        return best
    resource = separate_counts(job, use, free, jobs)
    if resource is not None:
        return _each_by_count(resource[job], job, use, saving, free)
    relaxed = _model(job, use, saving, free, jobs, whole=False, slack=0.0)
    relaxed.run()
    found = relaxed.getSolution()
    share, price = np.array(found.col_value), np.array(found.row_dual)[jobs:]  # prices are negative: costs are minimised
    if np.all((share < _SMALL) | (share > 1 - _SMALL)):
        return np.flatnonzero(share > 0.5)
    bound = -relaxed.getInfo().objective_function_value
    worth = saving + use @ price
    top = np.zeros(jobs)
    np.maximum.at(top, job, worth)
    loss = top[job] - worth
    known = _round(job, use, saving, share, free, jobs)
    tolerance, spread, beyond = 1e-7 * max(1.0, abs(bound)), _FIRST, np.sort(loss[loss > _SMALL])
    while True:
        distance = bound - saving[known].sum() + tolerance
        reach = distance if spread >= len(beyond) else min(distance, beyond[spread])
        core = np.union1d(np.flatnonzero(loss <= reach), known)
        known = _search(core, job, use, saving, free, top > reach, known, slack)
        if reach == distance or bound - saving[known].sum() <= slack:
            return known
        spread *= 4


def _each_by_count(resource: Ints, job: Ints, use: Floats, saving: Floats, free: Floats) -> Ints:
    """A dynamic program per resource."""
    found = []
    for one in np.unique(resource).tolist():
        mine = np.flatnonzero(resource == one)
        found.append(mine[choose_by_count(job[mine], use[mine, one].astype(np.int64), saving[mine], int(free[one]))])
    return np.sort(np.concatenate(found))


def _best_of_each(job: Ints, saving: Floats, jobs: int) -> Ints:
    """The column that saves most of every job that has any."""
    best = np.zeros(jobs)
    np.maximum.at(best, job, saving)
    top = np.flatnonzero(saving == best[job])
    return top[np.unique(job[top], return_index=True)[1]]


def _round(job: Ints, use: Floats, saving: Floats, share: Floats, free: Floats, jobs: int) -> Ints:
    """A whole answer near the relaxed one: what is whole there, then what fits, by saving; then each job may still do better."""
    left, has = free.copy(), np.full(jobs, -1, dtype=np.int64)
    _fill(np.lexsort((-saving, -share)), job, use, saving, left, has, False)
    _fill(np.argsort(-saving, kind="stable"), job, use, saving, left, has, True)
    return np.sort(has[has >= 0])


@kernel
def _fill(order: Ints, job: Ints, use: Floats, saving: Floats, left: Floats, has: Ints, swap: bool) -> None:
    """Walk the columns in that order; a job takes the first that fits or, with ``swap``, any that fits and saves more than its own."""
    for k in order:
        old = has[job[k]]
        if old >= 0 and (not swap or saving[k] <= saving[old]):
            continue
        fits = True
        for r in range(left.size):
            back = use[old, r] if old >= 0 else 0.0
            fits = fits and use[k, r] <= left[r] + back
        if fits:
            for r in range(left.size):
                left[r] -= use[k, r] - (use[old, r] if old >= 0 else 0.0)
            has[job[k]] = k


def _search(core: Ints, job: Ints, use: Floats, saving: Floats, free: Floats, must: Bools, known: Ints, slack: float) -> Ints:
    """The best answer within the columns of ``core``; jobs that ``must`` have one and have one only are settled beforehand."""
    alone = must & (np.bincount(job[core], minlength=len(must)) == 1)
    settled, open_ = core[alone[job[core]]], core[~alone[job[core]]]
    if not len(open_):
        return np.asarray(settled)
    names, number = np.unique(job[open_], return_inverse=True)
    solver = _model(number, use[open_], saving[open_], free - use[settled].sum(axis=0), len(names), whole=True, slack=slack)
    begin = highspy.HighsSolution()
    begin.col_value = np.isin(open_, known).astype(np.float64).tolist()
    solver.setSolution(begin)
    solver.run()
    picked = open_[np.array(solver.getSolution().col_value) > 0.5]
    return np.sort(np.concatenate([settled, picked]))


def _model(job: Ints, use: Floats, saving: Floats, free: Floats, jobs: int, *, whole: bool, slack: float) -> highspy.Highs:
    """One row per job (at most one column) and one per resource (no more than there is)."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    for name, value in (("threads", 1), ("random_seed", 0), ("parallel", "off"), ("mip_rel_gap", 0.0), ("mip_abs_gap", slack)):
        solver.setOptionValue(name, value)
    n, resources = use.shape
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = n, jobs + resources
    program.col_cost_, program.col_lower_, program.col_upper_ = -saving, np.zeros(n), np.ones(n)
    program.row_lower_ = np.full(jobs + resources, -highspy.kHighsInf)
    program.row_upper_ = np.concatenate([np.ones(jobs), free])
    amount = np.concatenate([np.ones((n, 1)), use], axis=1)
    row = np.concatenate([job[:, None], np.broadcast_to(jobs + np.arange(resources), (n, resources))], axis=1)
    there = amount > 0.0
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    program.a_matrix_.index_ = row[there].astype(np.int32)
    program.a_matrix_.value_ = amount[there]
    if whole:
        program.integrality_ = [highspy.HighsVarType.kInteger] * n
    solver.passModel(program)
    return solver
