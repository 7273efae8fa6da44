"""How often gangs changed their size or their place in a run, what that cost, and which jobs spanned nodes and racks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gantline.core.columns import Device, Job, Node
from gantline.core.phases import COMPLETED, FUTURE
from gantline.core.reasons import Reason
from gantline.engine.log import Interval, LogSize
from gantline.models.model import overrides

if TYPE_CHECKING:
    from gantline.engine.drivers.simulation import Simulation


def changes_of(simulation: Simulation) -> dict[str, object]:
    """Resizes, migrations, jobs that ever spanned nodes, and seconds that gangs held devices without working (None: unknown).

    Seconds are those of `Costs`: of a first start, and after each stop, resize and move, as far as the gang ran long enough to pay them.
    """
    state, engine = simulation.state, simulation.engine
    log, n = state.log, state.log.intervals
    row, reason, count = (log.LI[column, :n] for column in (Interval.ROW, Interval.REASON, Interval.COUNT))
    found: dict[str, object] = {
        "resizes": int(np.count_nonzero(reason == Reason.RESIZED)),
        "migrations": int(np.count_nonzero(reason == Reason.MOVED)),
        "cross_node_jobs": state.spanned if state.spanned is not None else spanning(simulation, np.arange(state.tables.NI.shape[1])),
    }
    if len(state.tables.cluster.racks) > 1:
        found["cross_rack_jobs"] = spanning(simulation, state.tables.NI[Node.RACK])
    if (met := _deadlines_met(simulation)) is not None:
        found["deadline_satisfaction"] = met
    told_elsewhere = overrides(state.tables.performance, "cost") or engine.grants.used_sharing or engine.grants.fluid.device_seconds
    found["time_lost"] = (
        None if told_elsewhere else _paid(simulation, row, reason, count, log.LF[Interval.START, :n], log.LF[Interval.END, :n])
    )
    return found


def _deadlines_met(simulation: Simulation) -> float | None:
    """The share of deadlines that were met, of those met or missed by the end of the run; None: there are none."""
    state = simulation.state
    F, phase = state.tables.F, state.tables.I[Job.PHASE]
    due, ended = F[Job.DEADLINE], phase == COMPLETED
    if np.isnan(due).all():
        return None
    met = ended & (F[Job.FINISH] <= due)
    there = ~np.isnan(due) & (phase != FUTURE)
    missed = there & ~met & (ended | (phase > COMPLETED) | (due < max(state.now, np.nanmax(F[Job.FINISH], initial=0.0))))
    judged = int((there & met).sum() + missed.sum())
    return float((there & met).sum() / judged) if judged else None


def spanning(simulation: Simulation, place: Any) -> int:
    """Jobs that ever held devices in several places, by the place of each node (itself, or its rack).

    Devices are numbered node by node, so where they rise within an interval, and places with them, its two ends are enough.
    """
    log, node = simulation.state.log, place[simulation.state.tables.D[Device.NODE]]
    row, first, count = (log.LI[column, : log.intervals] for column in (Interval.ROW, Interval.OFFSET, Interval.COUNT))
    wide = np.flatnonzero(count > 1)
    if not len(wide):
        return 0
    held, begins, size = log.LD[: log.LN[LogSize.DEVICES]], first[wide], count[wide]
    spans = node[held[begins]] != node[held[begins + size - 1]]
    jobs = np.zeros(simulation.state.tables.F.shape[1], dtype=bool)
    jobs[row[wide[spans]]] = True
    open_ = wide[~spans & (size > 2) & ~jobs[row[wide]]]  # others are known: a job that spans once, and two devices, which are the ends
    if int(count[open_].sum()) < len(held) // 8:
        owner = np.repeat(np.arange(len(open_)), count[open_])
        at = np.arange(len(owner)) + np.repeat(first[open_] - (np.cumsum(count[open_]) - count[open_]), count[open_])
        jobs[row[open_[owner[node[held[at]] != node[held[first[open_[owner]]]]]]]] = True
        return int(np.count_nonzero(jobs))
    falls = np.zeros(len(held), dtype=bool)
    np.less(held[1:], held[:-1], out=falls[1:])
    falls[first[count > 0]] = False  # that is another interval
    disorderly = np.searchsorted(begins, np.flatnonzero(falls), side="right") - 1
    disorderly = disorderly[np.diff(disorderly, prepend=-2) > 0]  # each once
    if (node[1:] < node[:-1]).any():
        disorderly = np.arange(len(wide))
    for at in disorderly[~spans[disorderly]].tolist():
        where = node[held[begins[at] : begins[at] + size[at]]]
        jobs[row[wide[at]]] |= bool((where != where[0]).any())
    return int(np.count_nonzero(jobs))


def _paid(simulation: Simulation, row: Any, reason: Any, count: Any, start: Any, end: Any) -> float:
    costs = simulation.state.costs
    if not (costs.start or costs.resume or costs.resize or costs.move):
        return 0.0
    order = np.lexsort((start, row))
    again = np.concatenate(([False], row[order][1:] == row[order][:-1])) if len(order) else np.zeros(0, dtype=bool)
    before = np.concatenate(([0], reason[order][:-1])) if len(order) else reason
    price = np.full(len(order), costs.resume)
    price[before == Reason.RESIZED] = costs.resize
    price[before == Reason.MOVED] = costs.move
    price[~again] = costs.start
    price = np.where(price > 0.0, price + costs.doubling * np.log2(np.maximum(count[order], 1)), 0.0)
    return float(np.minimum(price, np.maximum(end[order] - start[order], 0.0)).sum())
