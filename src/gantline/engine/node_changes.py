"""Nodes that fail, leave, return and join."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gantline.core.cluster import Cluster, Node
from gantline.core.columns import DOWN, FREE, Device, Job
from gantline.core.columns import Node as NodeColumn
from gantline.core.reasons import Reason
from gantline.core.tables import Tables
from gantline.engine.gang import close_interval, rest, settle
from gantline.engine.grants import Grants
from gantline.engine.runs import safe_work
from gantline.engine.state import State


def lose_node(grants: Grants, node: int) -> list[int]:
    """The node is gone: every gang with a stake in it falls back to its last checkpoint and waits. Returns their rows."""
    state, t = grants.state, grants.state.tables
    first, count = int(t.NI[NodeColumn.FIRST, node]), int(t.NI[NodeColumn.GPUS, node])
    hit = grants.holdings.rows_on(node)
    t.NI[NodeColumn.UP, node] = 0
    for row in sorted(hit):
        fail_gang(grants, row)
    idle = t.D[Device.HOLDER, first : first + count]
    idle[idle == FREE] = DOWN
    t.NI[NodeColumn.FREE, node] = 0
    grants.refresh()  # mates that ran beside them elsewhere go on alone
    state.rebuild()
    return sorted(hit)


def fail_gang(grants: Grants, row: int, reason: Reason = Reason.NODE_LOST, keep: float | None = None) -> None:
    """The gang stops at once; what it did since its last checkpoint is lost, or all but `keep`, where that is known."""
    state, t, log = grants.state, grants.state.tables, grants.state.log
    if keep is None:
        keep = safe_work(state, row)
    settle(t.F, t.I, row, state.now)
    t.F[Job.LOST, row] += max(0.0, float(t.F[Job.DONE, row]) - keep)
    t.F[Job.DONE, row] = keep
    grants.let_go(row)
    close_interval(t.I, row, state.now, int(reason), log.columns)
    rest(t.F, t.I, row, state.now)
    t.I[Job.REASON, row] = int(reason)


def drain_node(state: State, node: int) -> None:
    """No new gang may use the node; those on it run to their end."""
    t = state.tables
    first, count = int(t.NI[NodeColumn.FIRST, node]), int(t.NI[NodeColumn.GPUS, node])
    idle = t.D[Device.HOLDER, first : first + count]
    idle[idle == FREE] = DOWN
    t.NI[NodeColumn.UP, node] = 0
    t.NI[NodeColumn.FREE, node] = 0


def return_node(state: State, node: int) -> None:
    """The node is usable again, but for devices that were cordoned by themselves."""
    t = state.tables
    first, count = int(t.NI[NodeColumn.FIRST, node]), int(t.NI[NodeColumn.GPUS, node])
    devices, closed = t.D[Device.HOLDER, first : first + count], t.D[Device.CLOSED, first : first + count]
    devices[(devices == DOWN) & (closed == 0)] = FREE
    t.NI[NodeColumn.UP, node] = 1
    t.NI[NodeColumn.FREE, node] = int((devices == FREE).sum())


def join_node(state: State, node: Node) -> int:
    """A new node joins; its devices are numbered after all others. Returns its number.

    One that went down and is replaced by it gives its name up. It is found again if it comes back as it was.
    """
    old = state.tables
    known = list(old.cluster.nodes)
    names = {one.name: number for number, one in enumerate(known)}
    if (number := names.get(node.name)) is not None and old.NI[NodeColumn.UP, number] != 1:
        free = next(name for k in range(1, len(known) + 1) if (name := f"{node.name}~{k}") not in names)
        known[number] = replace(known[number], name=free)
    again = [number for number, one in enumerate(known) if one.name.startswith(f"{node.name}~") and replace(one, name=node.name) == node]
    if again and (number is None or old.NI[NodeColumn.UP, number] != 1):
        known[again[0]] = node
        old.cluster = Cluster(tuple(known), old.cluster.links, old.cluster.spec, old.cluster.bandwidths)
        return_node(state, again[0])
        return again[0]
    fresh = Tables.empty(Cluster((*known, node), old.cluster.links, old.cluster.spec, old.cluster.bandwidths))
    fresh.NI[:, :-1] = old.NI
    fresh.NF[:, :-1] = old.NF
    fresh.D[:, : old.D.shape[1]] = old.D
    old.cluster, old.nodes, old.devices = fresh.cluster, fresh.nodes, fresh.devices
    if max(old.NI.shape[1], old.D.shape[1]) >= state.scratch.shape[1]:
        state.scratch = np.zeros((state.scratch.shape[0], 2 * max(old.NI.shape[1], old.D.shape[1]) + 1), dtype=np.int64)
    return int(old.NI.shape[1]) - 1
