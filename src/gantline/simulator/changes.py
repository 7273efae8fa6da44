"""How often gangs changed their size or their place in a run, what that cost, and which jobs spanned nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gantline.core import columns as c
from gantline.core.reasons import Reason
from gantline.engine import log as g
from gantline.performance.model import overrides

if TYPE_CHECKING:
    from gantline.drivers.virtual import Simulation


def changes_of(simulation: Simulation) -> dict[str, Any]:
    """Resizes, migrations, jobs that ever spanned nodes, and seconds that gangs held devices without working (None: nobody can say).

    Seconds are those of `Costs`: of a first start, and after each stop, resize and move, as far as the gang lived to pay them.
    """
    state, engine = simulation.state, simulation.engine
    log, n = state.log, state.log.intervals
    LI, LF = log.LI[:, :n], log.LF[:, :n]
    row, reason, count = (LI[column].astype(np.int64) for column in (g.L_ROW, g.L_REASON, g.L_COUNT))
    found: dict[str, Any] = {
        "resizes": int((reason == Reason.RESIZED).sum()),
        "migrations": int((reason == Reason.MOVED).sum()),
        "cross_node_jobs": _spanning(simulation, row, count),
    }
    told_elsewhere = overrides(state.tables.performance, "cost") or engine.grants.used_sharing or engine.grants.fluid.device_seconds
    found["time_lost"] = None if told_elsewhere else _paid(simulation, row, reason, count, LF[g.L_START], LF[g.L_END])
    return found


def _spanning(simulation: Simulation, row: Any, count: Any) -> int:
    log, node = simulation.state.log, simulation.state.tables.D[c.D_NODE]
    first = log.LI[g.L_OFFSET, : len(row)].astype(np.int64)
    wide = np.flatnonzero(count > 1)
    if not len(wide):
        return 0
    size = count[wide]
    begins = np.cumsum(size) - size
    at = np.repeat(first[wide] - begins, size) + np.arange(int(size.sum()))
    where = node[log.LD[at]]
    spans = np.minimum.reduceat(where, begins) != np.maximum.reduceat(where, begins)
    return len(np.unique(row[wide][spans]))


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
