"""Sia's integer program: one configuration or none for each job, within the GPUs of each type, at least cost (Sia, SOSP 2023, section 3.4).

**Ties** are settled by a stated rule: lower columns first (types as the cluster lists them, then GPUs), and between jobs the one that
comes later in the list gets the lower column. To that end costs carry a term that grows with the column and sums to less than 0.01, the
step to which costs are rounded, over all jobs. Where no job chooses between types a dynamic program finds that answer for any number of
jobs. Elsewhere a decision looks at `STATES` states per job at most, which nearly always finds that answer, too; where it may not, the
answer names the `gap` by which its cost may be above the least. An ``exact`` decision takes its time, as the imitation of Sia's simulator
needs it. In programs of more than `EXACT_TIES` jobs the sum of rounded costs is all that is asked for: answers of the same sum are not
searched through.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel
from gantline.models.solvers.multiple_choice import solve_choices
from gantline.systems.sia.policies.configurations import Configurations

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
