"""A request for another size acts at once, whatever the policy: a gang outside its new bounds changes in place, or stops and waits anew.

A policy that remembers the old size, and plans with it, gets the nearest one within the new bounds instead (`within_bounds`).

A gang that is too large gives devices up. One that is too small gets more, if they are free and its queue may hold them; else it is stopped
(its work is saved first, where it can save) and waits for its new size like any other job. How a program gets from one size to the other is
the executor's: in place where it can, by a restart where it cannot.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import Job, Node
from gantline.core.columns import Option as OptionColumn
from gantline.core.errors import UsageError
from gantline.core.inputs import JobRequest
from gantline.core.options import Option
from gantline.core.phases import RESIZING, RUNNING, STARTING
from gantline.core.plan import Assignment, Assignments
from gantline.core.reasons import Reason
from gantline.core.tables import Tables
from gantline.engine.commit.commit import commit_assignments
from gantline.engine.grants import Grants
from gantline.engine.option_rows import sizes_in_steps
from gantline.engine.quota_gate import QuotaGate
from gantline.engine.sized_assignments import larger_way, size_of, smaller_way
from gantline.engine.submissions import RejectedError


def fit_to_bounds(grants: Grants, quotas: QuotaGate, row: int) -> bool:
    """Bring a gang within its bounds; False: not now, because a change of it is under way or it is locked."""
    state, t = grants.state, grants.state.tables
    I = t.I
    if int(I[Job.PHASE, row]) not in (STARTING, RUNNING, RESIZING) or _fits(grants, row):
        return True
    if I[Job.PHASE, row] == RESIZING or I[Job.LOCKED, row] != 0:
        return False
    held, kind = int(I[Job.HELD, row]), int(t.options.I[OptionColumn.TYPE, I[Job.OPTION, row]])
    size = _nearest(grants, row, held, kind)
    free = int(t.NI[Node.FREE][t.NI[Node.TYPE] == kind].sum())
    if size and row not in grants.by_row and (size < held or (size - held <= free and quotas.may_grow(row, size - held))):
        state.log.reserve(8, 4 * t.D.shape[1] + 8)
        others = state.rows[state.rows != row].copy()
        table = Assignments([0], gpus=[size], type=[kind])

        commit_assignments(grants, np.array([row], dtype=np.int64), table, keeps=others)
    if not _fits(grants, row):
        state.log.reserve(8, 4 * t.D.shape[1] + 8)
        grants.stop(row, Reason.RESIZED)
        I[Job.PREEMPTIONS, row] -= 1  # its owner wanted it
        grants.refresh()
        state.rebuild()
    return True


def sizes_and_options(t: Tables, quotas: QuotaGate, row: int, value: JobRequest) -> tuple[int, int, list[Option]]:
    """The least and the most that a job would take if it were resized so, and the options it would then have."""
    least, most = value.min_gpus or value.gpus, value.max_gpus or value.gpus
    if not 0 < least <= value.gpus <= most:
        raise UsageError(f"{least} to {most} GPUs around {value.gpus}", where="resize", fix="give 1 <= min <= gpus <= max")
    old = [t.options[k] for k in range(int(t.I[Job.OPTION_FIRST, row]), int(t.I[Job.OPTION_FIRST, row] + t.I[Job.OPTION_COUNT, row]))]
    was, rest = int(t.I[Job.GPUS, row]), [option for option in old if option.gpus == 0]
    kinds = list(dict.fromkeys(option.type for option in old if option.gpus > 0))
    sizes = sizes_in_steps({option.gpus for option in old if option.gpus > 0}, least, value.gpus, most)

    def resized(kind: int, size: int) -> Option:
        like = next(option for option in old if option.type == kind and option.gpus > 0)
        rate = like.rate * (size / max(was, 1) if t.performance is None else 1.0)
        return Option(kind, size, rate, rate, like.cpus, like.memory, int(like.nodes == 1), like.storage)

    options = [*(resized(kind, size) for kind in kinds for size in sizes), *rest]
    least, most = (min(sizes), max(sizes)) if len(sizes) > 1 else (least, most)
    if not any(option.gpus <= t.cluster.gpus_of(t.cluster.types[option.type]) for option in options):
        raise RejectedError(Reason.TOO_LARGE, value.job, "ask for less, or let nodes join first")
    quotas.check_size(value.job, t.queues[int(t.I[Job.QUEUE, row])], 0 if rest else least)
    return least, most, options


def within_bounds(t: Tables, rows: Ints, table: Assignments, resized: Set[int]) -> Assignments:
    """The plan with sizes within their bounds for jobs that were resized."""
    places = [place for place, row in enumerate(rows[table.job].tolist()) if row in resized]
    other: dict[int, Assignment] = {}
    for place in places:
        row, item = int(rows[table.job[place]]), table[place]
        size, least, most = size_of(t, row, item), int(t.I[Job.MIN_GPUS, row]), int(t.I[Job.MAX_GPUS, row])
        found = smaller_way(t, row, item, most) if size > most else larger_way(t, row, item, least) if 0 < size < least else None
        if found is not None:
            other[place] = found
    return Assignments.of([other.get(place, item) for place, item in enumerate(table)]) if other else table


def _fits(grants: Grants, row: int) -> bool:
    I = grants.state.tables.I
    if I[Job.HELD, row] == 0:  # it runs without devices
        return bool(I[Job.SMALLEST, row] == 0)
    return bool(I[Job.MIN_GPUS, row] <= I[Job.HELD, row] <= I[Job.MAX_GPUS, row])


def _nearest(grants: Grants, row: int, held: int, kind: int) -> int:
    """The size within the bounds that changes least; of a job with sizes of its own on this type, one of those. Zero: none."""
    t = grants.state.tables
    first, count = int(t.I[Job.OPTION_FIRST, row]), int(t.I[Job.OPTION_COUNT, row])
    own = {option.gpus for option in (t.options[k] for k in range(first, first + count)) if option.type == kind and option.gpus > 0}
    least, most = int(t.I[Job.MIN_GPUS, row]), int(t.I[Job.MAX_GPUS, row])
    if len(own) <= 1:
        return min(max(held, least), most) if own else 0
    return min((size for size in own if least <= size <= most), key=lambda size: (abs(size - held), size), default=0)
