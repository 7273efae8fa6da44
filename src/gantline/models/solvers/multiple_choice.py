"""At most one column per job within what there is of each resource, for the greatest saving: exact, and quick for
hundreds of jobs.

Where no job chooses between resources (one device type), a dynamic program per resource is exact and quick
(`counted_choices`). Otherwise branch and bound. On the whole program it takes seconds for hundreds of jobs, although
its relaxation is nearly whole: few jobs are split. So the relaxation comes first (HiGHS' simplex, some ms). Its
prices say how much each column loses at least against the best of its job; what loses more than the distance between
the relaxation and a known whole answer is in no better answer and is left out. HiGHS' branch and bound sees the rest
only: first what loses least, which gives a better known answer, then all that is left after that. It has no bound of
its own that can be counted on: where many savings are equal it takes minutes. So a search over states
(`choice_states`) is tried before it: where few states matter, that is exact within a millisecond. A caller that needs
answers in bounded time gives a number of states, and learns how far from the best the answer may be.
"""

from __future__ import annotations

from typing import NamedTuple

import highspy
import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel
from gantline.models.solvers.choice_states import search_states, states_can_tell

_SMALL = 1e-7
_FIRST = 240  # columns beyond each job's best that branch and bound begins with
_STEPS = 40  # towards prices, from which the relaxation begins
_COLUMNS = 4  # columns per job with which it begins
_FEW = 4000  # states per job that are tried before branch and bound
_PASSES = (16, 1, 1)  # searches over states, the first over few of them: each begins with the better answer of the one before


class Chosen(NamedTuple):
    """Positions of the chosen columns, and by how much a better answer could save more at most; 0: there is none."""

    columns: Ints
    gap: float = 0.0


class _Relaxed(NamedTuple):
    """What the relaxation says: the most that can be saved, and how much less at least each column, a job without one, an idle device."""

    bound: float
    loss: Floats
    none: Floats
    idle: Floats


def solve_choices(job: Ints, use: Floats, saving: Floats, free: Floats, jobs: int, slack: float = 0.0, most_states: int = 0) -> Chosen:
    """The best answer, or one that saves up to ``slack`` less; ``use`` is columns x resources.

    With ``most_states`` no more than so many states are looked at per job, and the answer is the best of those; else branch and bound
    goes on to the end.
    """
    best = _best_of_each(job, saving, jobs)
    if np.all(use[best].sum(axis=0) <= free):
        return Chosen(best)
    resource = separate_counts(job, use, free, jobs)
    if resource is not None:
        return Chosen(_each_by_count(resource[job], job, use, saving, free))
    bounded = most_states > 0 and states_can_tell(use)
    share, relaxed = _relax(job, use, saving, free, jobs, _promising(job, use, saving, free, jobs) if bounded else np.arange(len(job)))
    if is_whole(share):
        return Chosen(np.flatnonzero(share > 0.5))
    known = round_choices(job, use, saving, share, free, jobs)
    if bounded:
        return _over_states(job, use, saving, free, relaxed, known, slack, most_states)
    return _by_branching(job, use, saving, free, relaxed, known, slack)


def is_whole(share: Floats) -> bool:
    """Whether a relaxation takes every column whole or not at all."""
    return bool(np.all((share < _SMALL) | (share > 1 - _SMALL)))


def _relax(job: Ints, use: Floats, saving: Floats, free: Floats, jobs: int, part: Ints) -> tuple[Floats, _Relaxed]:
    """The share of each column in the relaxation, solved over a part of them that grows by those that its prices make worth having."""
    while True:
        program = choice_program(job[part], use[part], saving[part], free, jobs, whole=False, slack=0.0)
        program.run()
        found = program.getSolution()
        price = np.array(found.row_dual)[jobs:]  # prices are negative: costs are minimised
        worth = saving + use @ price
        top, of_part = np.zeros(jobs), np.zeros(jobs)
        raise_to_best(top, job, worth)
        raise_to_best(of_part, job[part], worth[part])
        bound = -program.getInfo().objective_function_value
        more = np.flatnonzero(worth > of_part[job] + _tolerance(bound))
        if not len(more):
            share = np.zeros(len(job))
            share[part] = found.col_value
            return share, _Relaxed(bound, top[job] - worth, top, -price)
        part = np.union1d(part, more)


def _promising(job: Ints, use: Floats, saving: Floats, free: Floats, jobs: int) -> Ints:
    """Columns that lose least at prices at which about as much is wanted as there is."""
    found = PricedChoices.of(usual_price(use, saving), len(free), jobs)
    find_prices(job, ColumnUses.of(use), saving, free, found, -np.inf)
    loss = found.worth[job] - (saving - use @ found.price)
    return np.union1d(found.best[found.best >= 0], np.argsort(loss, kind="stable")[: _COLUMNS * jobs])


def usual_price(use: Floats, saving: Floats) -> float:
    """What a column saves per unit that it uses, in the middle: a price to begin with."""
    return float(np.median(saving / np.maximum(use.sum(axis=1), 1.0)))


class PricedChoices(NamedTuple):
    """PricedChoices of resources, and what jobs choose at them."""

    price: Floats
    wanted: Floats  # of each resource
    best: Ints  # the column that is worth most to each job; -1: none is worth its price
    worth: Floats

    @staticmethod
    def of(first: float, resources: int, jobs: int) -> PricedChoices:
        return PricedChoices(np.full(resources, first), np.empty(resources), np.empty(jobs, dtype=np.int64), np.empty(jobs))


@kernel
def find_prices(job: Ints, uses: ColumnUses, saving: Floats, free: Floats, at: PricedChoices, enough: float) -> float:
    """Raise the price of what is wanted too much and lower the others, by steps that become smaller.

    Whatever the prices are, no answer saves more than the jobs are worth at them and all that there is costs: the least such bound that
    was seen is returned, and one below ``enough`` ends the search.
    """
    first, resource, amount = uses.first, uses.resource, uses.amount
    price, wanted, best, worth = at.price, at.wanted, at.best, at.worth
    least = np.inf
    for step in range(_STEPS):
        best[:] = -1
        worth[:] = 0.0
        for k in range(job.size):
            value = saving[k]
            for e in range(first[k], first[k + 1]):
                value -= price[resource[e]] * amount[e]
            if value > worth[job[k]]:
                worth[job[k]], best[job[k]] = value, k
        bound = 0.0
        for each in worth:
            bound += each
        for r in range(price.size):
            bound += price[r] * free[r]
        least = min(least, bound)
        if least < enough or step + 1 == _STEPS:
            break
        wanted[:] = 0.0
        for k in best:
            if k >= 0:
                for e in range(first[k], first[k + 1]):
                    wanted[resource[e]] += amount[e]
        for r in range(price.size):
            price[r] *= min(max(wanted[r] / max(free[r], 1.0), 0.25), 4.0) ** (2.0 / (step + 2.0))
    return least


def _over_states(
    job: Ints, use: Floats, saving: Floats, free: Floats, relaxed: _Relaxed, known: Ints, slack: float, most: int
) -> Chosen:  # fmt: skip
    """Search over states, again while that finds something better."""
    for part in _PASSES:
        found = _search_core(job, use, saving, free, relaxed, known, max(most // part, 1))
        better = saving[found.columns].sum() > saving[known].sum()
        known = found.columns
        if found.gap <= slack or (part == 1 and not better):
            break
    return Chosen(known, found.gap)


def _search_core(
    job: Ints, use: Floats, saving: Floats, free: Floats, relaxed: _Relaxed, known: Ints, most: int, only_exact: bool = False
) -> Chosen:  # fmt: skip
    """Search the states of the columns that may be in a better answer than the known one."""
    within = relaxed.bound - saving[known].sum() + _tolerance(relaxed.bound)
    core = np.flatnonzero(relaxed.loss <= within)
    found = search_states(job[core], use[core], relaxed.loss[core], relaxed.none, relaxed.idle, free, most, within, only_exact)
    picked = np.sort(core[found.column[found.column >= 0]])
    best = picked if saving[picked].sum() > saving[known].sum() else known
    return Chosen(best, 0.0 if found.exact else relaxed.bound - saving[best].sum())


def _tolerance(bound: float) -> float:
    return 1e-7 * max(1.0, abs(bound))


def _by_branching(job: Ints, use: Floats, saving: Floats, free: Floats, relaxed: _Relaxed, known: Ints, slack: float) -> Chosen:
    """Branch and bound on what may be in a better answer than the known one."""
    bound, loss = relaxed.bound, relaxed.loss
    if states_can_tell(use):
        found = _search_core(job, use, saving, free, relaxed, known, _FEW, only_exact=True)
        if found.gap == 0.0:
            return found
    spread, beyond = _FIRST, np.sort(loss[loss > _SMALL])
    while True:
        distance = bound - saving[known].sum() + _tolerance(bound)
        reach = distance if spread >= len(beyond) else min(distance, beyond[spread])
        core = np.union1d(np.flatnonzero(loss <= reach), known)
        known = _search(core, job, use, saving, free, relaxed.none > reach, known, slack)
        if reach == distance or bound - saving[known].sum() <= slack:
            return Chosen(known, min(bound - saving[known].sum(), slack))
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
    raise_to_best(best, job, saving)
    top = np.flatnonzero(saving == best[job])
    return top[np.unique(job[top], return_index=True)[1]]


@kernel
def raise_to_best(best: Floats, job: Ints, worth: Floats) -> None:
    """Raise the ``best`` of each job to what its columns are worth."""
    for k in range(job.size):
        best[job[k]] = max(best[job[k]], worth[k])


def round_choices(job: Ints, use: Floats, saving: Floats, share: Floats, free: Floats, jobs: int) -> Ints:
    """A whole answer near the relaxed one: what is whole there, then what fits, by saving; then each job may still do better."""
    left, has, uses = free.copy(), np.full(jobs, -1, dtype=np.int64), ColumnUses.of(use)
    fill_in_order(np.lexsort((-saving, -share)), job, uses, saving, left, has, False)
    fill_in_order(np.argsort(-saving, kind="stable"), job, uses, saving, left, has, True)
    return np.sort(has[has >= 0])


@kernel
def fill_in_order(order: Ints, job: Ints, uses: ColumnUses, saving: Floats, left: Floats, has: Ints, swap: bool) -> None:
    """Walk the columns in that order; a job takes the first that fits or, with ``swap``, any that fits and saves more than its own."""
    for k in order:
        old = has[job[k]]
        if old >= 0 and (not swap or saving[k] <= saving[old]):
            continue
        if old >= 0:
            take(uses, old, left, -1.0)
        fits = True
        for e in range(uses.first[k], uses.first[k + 1]):
            fits = fits and uses.amount[e] <= left[uses.resource[e]]
        if fits:
            has[job[k]] = k
        if has[job[k]] >= 0:
            take(uses, has[job[k]], left, 1.0)


@kernel
def take(uses: ColumnUses, k: int, left: Floats, times: float) -> None:
    """Take what column k uses out of what is left; -1 times: give it back."""
    for e in range(uses.first[k], uses.first[k + 1]):
        left[uses.resource[e]] -= times * uses.amount[e]


def _search(core: Ints, job: Ints, use: Floats, saving: Floats, free: Floats, must: Bools, known: Ints, slack: float) -> Ints:
    """The best answer within the columns of ``core``; jobs that ``must`` have one and have one only are settled beforehand."""
    alone = must & (np.bincount(job[core], minlength=len(must)) == 1)
    settled, open_ = core[alone[job[core]]], core[~alone[job[core]]]
    if not len(open_):
        return np.asarray(settled)
    names, number = np.unique(job[open_], return_inverse=True)
    solver = choice_program(number, use[open_], saving[open_], free - use[settled].sum(axis=0), len(names), whole=True, slack=slack)
    begin = highspy.HighsSolution()
    begin.col_value = np.isin(open_, known).astype(np.float64).tolist()
    solver.setSolution(begin)
    solver.run()
    picked = open_[np.array(solver.getSolution().col_value) > 0.5]
    return np.sort(np.concatenate([settled, picked]))


def choice_program(job: Ints, use: Floats, saving: Floats, free: Floats, jobs: int, *, whole: bool, slack: float) -> highspy.Highs:
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
    first, resource, amount = ColumnUses.of(use)
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = (first + np.arange(n + 1)).astype(np.int32)  # the row of its job comes before those of resources
    program.a_matrix_.index_ = np.insert(jobs + resource, first[:-1], job).astype(np.int32)
    program.a_matrix_.value_ = np.insert(amount, first[:-1], 1.0)
    if whole:
        program.integrality_ = [highspy.HighsVarType.kInteger] * n
    solver.passModel(program)
    return solver


# At most one column per job within one count of devices, for the greatest saving: exact, by a dynamic program over
# the count.
#
# Row by row, the best saving of the jobs so far is known for every number of devices; a job adds its columns to the
# row before. The cost is jobs x devices x columns per job, an addition each, whatever the savings are: unlike branch
# and bound there are no hard instances.

LARGEST = 20_000_000  # cells of jobs x devices; beyond it the table of choices is too large to be quick


def separate_counts(job: Ints, use: Floats, free: Floats, jobs: int) -> Ints | None:
    """The one resource of each job's columns (-1: it has none); None where jobs choose between resources, or programs are too large."""
    needs = use > 0.0
    if not len(job) or np.any(needs.sum(axis=1) != 1) or np.any(use != np.floor(use)):
        return None
    resource = needs.argmax(axis=1)
    of_job = np.full(jobs, -1, dtype=np.int64)
    of_job[job] = resource
    if np.any(of_job[job] != resource) or jobs * (float(free.max()) + 1.0) > LARGEST:
        return None
    return of_job


def choose_by_count(job: Ints, count: Ints, saving: Floats, capacity: int) -> Ints:
    """Positions of the chosen columns, ascending. Of answers that save the same, later jobs get fewer devices or none."""
    order = np.lexsort((count, job))
    names, first = np.unique(job[order], return_index=True)
    ends = np.append(first[1:], len(order)).astype(np.int64)
    sizes = count[order].astype(np.int64)
    room = int(min(capacity, np.maximum.reduceat(sizes, first).sum()))
    before, now = np.zeros(room + 1), np.zeros(room + 1)
    taken = np.zeros((len(names), room + 1), dtype=np.int16)
    chosen = np.full(len(names), -1, dtype=np.int64)
    _choose(first.astype(np.int64), ends, sizes, saving[order], before, now, taken, chosen)
    return np.sort(order[chosen[chosen >= 0]])


@kernel
def _choose(
    first: Ints, ends: Ints, size: Ints, saving: Floats, before: Floats, now: Floats, taken: NDArray[np.int16], chosen: Ints
) -> None:
    """``taken[j, k]``: which of its columns job j takes, counted from one, when the jobs up to it share k devices; 0: none."""
    room = before.size - 1
    for j in range(first.size):
        for k in range(room + 1):
            now[k] = before[k]
        for at in range(first[j], ends[j]):
            need, gain, mark = size[at], saving[at], np.int16(at - first[j] + 1)
            for k in range(need, room + 1):
                other = before[k - need] + gain
                better = other > now[k]
                now[k] = other if better else now[k]
                taken[j, k] = mark if better else taken[j, k]
        for k in range(room + 1):
            before[k] = now[k]
    left = room
    for j in range(first.size - 1, -1, -1):
        which = int(taken[j, left])
        if which > 0:
            chosen[j] = first[j] + which - 1
            left -= size[chosen[j]]


# What each column of a program takes of which resources: a bundle names a few machines of hundreds, so the others are
# left out.


class ColumnUses(NamedTuple):
    """What column k takes are entries [first[k], first[k + 1]), by rising resource."""

    first: Ints
    resource: Ints
    amount: Floats

    @staticmethod
    def of(use: Floats) -> ColumnUses:
        """The entries of columns x resources that are not zero."""
        column, resource = np.nonzero(use)
        first = np.searchsorted(column, np.arange(len(use) + 1))
        return ColumnUses(first, resource, use[column, resource])
