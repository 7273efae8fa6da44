"""Sia's integer program: the configurations, what each costs, and the choice of one or none for each job (SOSP 2023, sections 3.3 and
3.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel
from gantline.models.solvers.multiple_choice import solve_choices
from gantline.policies.node_classes import NodeClass

# Sia's configurations: powers of two within a node, whole nodes beyond it (Sia, SOSP 2023, section 3.3), for any size of node.
#
# Nodes of one GPU type and size are a *class*. A class of N nodes with R GPUs offers 1, 2, 4, ... below R on one node,
# then 1 to N whole nodes. So any set of configurations that fits in number also fits on nodes, without splitting one:
# sizes divide each other. Where R is no power of two this needs one more bound per power s: configurations of s or more
# GPUs on a node find room for R // s * s GPUs of each node only (the paper's virtual nodes, of which a node of 6 is one
# of 4 and one of 2).


@dataclass(frozen=True, slots=True)
class Configurations:
    """All configurations of a cluster as columns, in the order that settles ties; what each uses of every bound, and the bounds."""

    classes: tuple[NodeClass, ...]
    group: Ints  # class of each column
    nodes: Ints
    gpus: Ints
    regular: Bools  # whether any job may have it; the others are of sizes that rigid or reserved jobs ask for
    use: Floats  # columns x bounds
    bound: Floats

    @staticmethod
    def of(classes: Sequence[NodeClass], sizes: Iterable[int] = ()) -> Configurations:
        """The configurations of the classes, and beside them columns of further sizes."""
        rows, asked = [], set(sizes)
        for k, one in enumerate(classes):
            widths = {r: (k, n, r, 1) for n, r in one.widths()}
            widths |= {r: (k, -(-r // one.size), r, 0) for r in asked - widths.keys() if 0 < r <= one.gpus}
            rows += [widths[r] for r in sorted(widths)]
        group, nodes, gpus, regular = np.array(rows, dtype=np.int64).reshape(-1, 4).T.copy()
        use, bound = _bounds(classes, group, nodes, gpus)
        return Configurations(tuple(classes), group, nodes, gpus, regular == 1, use, bound)

    def __len__(self) -> int:
        return len(self.gpus)

    def find(self, group: int, gpus: int) -> int:
        """The column of so many GPUs of that class; -1 if there is none."""
        found = np.flatnonzero((self.group == group) & (self.gpus == gpus))
        return int(found[0]) if len(found) else -1

    def shape(self, column: int) -> tuple[int, ...]:
        """GPUs on each node, on as few as possible."""
        size, gpus = self.classes[int(self.group[column])].size, int(self.gpus[column])
        whole, rest = divmod(gpus, size)
        return (size,) * whole + ((rest,) if rest else ())


def _bounds(classes: Sequence[NodeClass], group: Ints, nodes: Ints, gpus: Ints) -> tuple[Floats, Floats]:
    """GPUs of each class and, where its nodes are no power of two, the room for each power above the lowest that divides them."""
    uses, bounds = [], []
    for k, one in enumerate(classes):
        mine, power = group == k, 1
        while power <= one.size:
            room = one.size // power * power
            whole = gpus == nodes * one.size
            used = np.where(whole, nodes * room, np.where(gpus >= power, gpus, 0))
            if power == 1 or room < one.size:
                uses.append(np.where(mine, used, 0).astype(np.float64))
                bounds.append(float(room * len(one.nodes)))
            power *= 2
    return np.stack(uses, axis=1) if uses else np.zeros((len(group), 0)), np.array(bounds)


# From goodputs to the costs of Sia's program: rows in GPU equivalents, discounted for a restart, to the power p (section 3.4).

_DECIMALS = 2
_HIGHEST = 3000.0


def restart_factor(age: Floats, restarts: Ints, cost: Floats) -> Floats:
    """The share of its age that a job has really run, were it restarted once more; 1 while it is younger than one restart."""
    return np.where(age < cost, 1.0, np.maximum(age - restarts * cost, 0.0) / np.maximum(age + cost, 1e-9))


def normalised(goodput: Floats, unit: Floats) -> Floats:
    """Rows divided by their least goodput, times the GPUs of one replica in that column; what is not above zero stays out (NaN)."""
    valid = np.where((goodput > 0.0) & np.isfinite(goodput), goodput, np.inf)
    jobs = np.arange(len(goodput))
    least = np.argmin(valid, axis=1) if goodput.shape[1] else np.zeros(0, dtype=np.int64)
    with np.errstate(invalid="ignore"):  # rows in which nothing is valid
        worth = valid / valid[jobs, least][:, None] * unit[jobs, least][:, None]
    return np.where(np.isfinite(valid), worth, np.nan)


def costs(worth: Floats, factor: Floats, held: Ints, weight: Floats, p: float) -> Floats:
    """What each column costs (to be minimised); infinite where a job cannot have it.

    The factor is for every column but the one that a job holds, and only for jobs that hold one. For p above 0 the powers are gains;
    for p = 0, where all powers are 1, logarithms take their place, as the power mean becomes the geometric one.
    """
    has = held >= 0
    scale = np.where(has, factor, 1.0)[:, None] * np.ones_like(worth)
    scale[np.flatnonzero(has), held[has]] = 1.0
    discounted = np.where(np.isnan(worth), 1.0, worth * scale)
    with np.errstate(divide="ignore"):
        raised = np.log(discounted) if p == 0.0 else discounted**p
    raised = np.clip(np.round(raised, _DECIMALS), -_HIGHEST, _HIGHEST)
    cost = (raised if p < 0.0 else -raised) * weight[:, None]
    return np.where(np.isnan(worth), np.inf, cost)


# Sia's integer program: one configuration or none for each job, within the GPUs of each type, at least cost (Sia, SOSP
# 2023, section 3.4).
#
# **Ties** are settled by a stated rule: lower columns first (types as the cluster lists them, then GPUs), and between
# jobs the one that comes later in the list gets the lower column. To that end costs carry a term that grows with the
# column and sums to less than 0.01, the step to which costs are rounded, over all jobs. Where no job chooses between
# types a dynamic program finds that answer for any number of jobs. Elsewhere a decision looks at `STATES` states per
# job at most, which nearly always finds that answer, too; where it may not, the answer names the `gap` by which its
# cost may be above the least. An ``exact`` decision takes its time, as the imitation of Sia's simulator needs it. In
# programs of more than `EXACT_TIES` jobs the sum of rounded costs is all that is asked for: answers of the same sum are
# not searched through.

TIE = 1e-3  # what all ties together may add, about; far below the 0.01 to which costs are rounded
EXACT_TIES = 100
STATES = 4096
_STEP = 0.01
_SCALE = 1e4  # makes ties of that size larger than the solver's tolerances


@dataclass(frozen=True, slots=True)
class Choice:
    """The answer: a column per job (-1: none), what it costs without the terms that settle ties, and how much less another may cost."""

    column: Ints
    cost: float
    gap: float = 0.0  # ties included; 0: nothing costs less

    @property
    def note(self) -> str:
        """The note on an answer that may not be the cheapest; empty where the rounding of costs is as large as the gap."""
        return (
            f"sia: configurations cost {self.cost:.2f} together, and others at least {self.cost - self.gap:.2f}" if self.gap > _STEP else ""
        )


def choose_configurations(
    cost: Floats, columns: Configurations, idle: float | Floats, forced: Ints | None = None, *, exact: bool = False
) -> Choice:
    """Minimise the sum of ``cost`` over chosen columns plus ``idle`` (one number, or each job's own) for every job without one.

    ``cost`` is jobs x columns, infinite where a job cannot have that column. A job with a ``forced`` column has it; where not even
    the forced ones fit together, the later of them have none. Unless it must be ``exact``, the work is bounded.
    """
    jobs = len(cost)
    without = np.broadcast_to(np.asarray(idle, dtype=np.float64), jobs)
    forced = np.full(jobs, -1, dtype=np.int64) if forced is None else forced
    answer = np.full(jobs, -1, dtype=np.int64)
    free = columns.bound.copy()
    for job in np.flatnonzero(forced >= 0).tolist():
        if np.all(columns.use[forced[job]] <= free):
            answer[job] = forced[job]
            free -= columns.use[forced[job]]
    open_ = np.isfinite(cost) & (forced < 0)[:, None] & np.all(columns.use <= free, axis=1)
    of_job, column = np.nonzero(open_)
    rise = TIE / max(jobs, 1) * (column + 1.0) / max(len(columns), 1) * (1.0 + of_job / max(jobs, 1))
    saving = without[of_job] - cost[of_job, column] - rise  # against having none
    kept = _staircase(of_job, columns.group[column], columns.gpus[column], saving)
    of_job, column, saving = of_job[kept], column[kept], saving[kept]
    slack = 0.0 if jobs <= EXACT_TIES else 0.5 * _STEP * _SCALE
    picked, gap = solve_choices(of_job, columns.use[column], saving * _SCALE, free, jobs, slack, 0 if exact else STATES)
    answer[of_job[picked]] = column[picked]
    has = np.flatnonzero(answer >= 0)
    paid = cost[has, answer[has]]
    return Choice(answer, float(paid[np.isfinite(paid)].sum() + without[answer < 0].sum()), gap / _SCALE)


def _staircase(job: Ints, kind: Ints, gpus: Ints, saving: Floats) -> Ints:
    """Without columns that save no more than one of the same job and type with fewer GPUs, or than having none."""
    kept = np.zeros(len(job), dtype=np.bool_)
    _climb(np.lexsort((gpus, kind, job)), job, kind, saving, kept)
    return np.flatnonzero(kept)


@kernel
def _climb(order: Ints, job: Ints, kind: Ints, saving: Floats, kept: Bools) -> None:
    best, last = 0.0, -1
    for k in order:
        if last < 0 or job[k] != job[last] or kind[k] != kind[last]:
            best = 0.0
        last = k
        if saving[k] > best:
            best, kept[k] = saving[k], True
