"""Choosing devices for one gang: by the placement rule, within the nodes, rack or pool that its assignment allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import FREE, Device, Job, Node, Option
from gantline.core.plan import Assignment
from gantline.engine.state import State
from gantline.policies.placement import fit
from gantline.policies.placement.few_nodes import NodeCounts, Supply, room, supply_for
from gantline.policies.placement.rule import Together

#: levels that `within` may name
LEVELS = ("node", "rack", "pool")


def choose_devices(state: State, row: int, option: int, item: Assignment) -> list[int] | None:
    """Devices for a whole gang; None: it does not fit as it must."""
    t = state.tables
    need, spread = int(t.options.I[Option.GPUS, option]), int(t.options.I[Option.NODES, option])
    for view in _views(state, item):
        found = _choose(state, row, option, need, spread, item, t.NF, view)
        if found is not None:
            return found
    return None


def choose_node(state: State, row: int, option: int, item: Assignment) -> int:
    """A node for a grant without devices; -1: none has room."""
    t = state.tables
    seats = NodeCounts(state.scratch[0], state.scratch[1])
    supply = _supply(state, option, t.NF, _only(t.NI, item.nodes))
    return int(seats.nodes[0]) if fit.choose(supply, 0, 0, fit.Picking(fit.FIRST_FREE, False, False, 0), seats) else -1


def extend(state: State, row: int, option: int, devices: Sequence[int], need: int, item: Assignment) -> list[int] | None:
    """`need` devices that begin with the given ones: more from their own nodes first, the rest by the rule."""
    t = state.tables
    home = list(dict.fromkeys(int(t.D[Device.NODE, d]) for d in devices))
    NF, NI = t.NF.copy(), _only(t.NI, item.nodes)
    if item.within and item.required and home:
        level = _level(state, item.within)
        NI = _only(NI, np.flatnonzero(level == level[home[0]]).tolist())
    more: list[int] = []
    for node in home:
        count = min(int(room(_supply(state, option, NF, NI), node)), need - len(devices) - len(more))
        if count > 0:
            more += pick(state, node, count)
            NI = NI.copy()
            NI[Node.FREE, node] = 0  # what is left there is not enough, or not needed
    left = need - len(devices) - len(more)
    if left > 0:
        if t.options.I[Option.NODES, option] == 1:
            return None
        rest = _choose(state, row, option, left, 0, item, NF, NI)
        if rest is None:
            return None
        more += rest
    return [*devices, *more]


def pick(state: State, node: int, count: int) -> list[int]:
    """The first free devices of a node."""
    t = state.tables
    first, size = int(t.NI[Node.FIRST, node]), int(t.NI[Node.GPUS, node])
    free = np.flatnonzero(t.D[Device.HOLDER, first : first + size] == FREE)[:count]
    return [first + int(k) for k in free]


def likes_together(state: State, row: int, item: Assignment) -> bool:
    """Whether a gang is better off on few nodes, by its assignment or by the rule."""
    likes, sensitive = state.rule.together, bool(state.tables.I[Job.CONSOLIDATE, row] > 0)
    return item.within == "node" or likes is Together.ALWAYS or (likes is Together.SENSITIVE and sensitive)


def keeps_within(state: State, nodes: Sequence[int], item: Assignment) -> bool:
    """Whether a gang on these nodes is where its assignment requires it to be."""
    if item.nodes and not set(nodes) <= set(item.nodes):
        return False
    if not (item.within and item.required):
        return True
    level = _level(state, item.within)
    return len({int(level[node]) for node in nodes}) <= 1


def _choose(state: State, row: int, option: int, need: int, spread: int, item: Assignment, NF: Floats, NI: Ints) -> list[int] | None:
    """One question to the placement rule."""
    t = state.tables
    rule = state.rule.code
    if item.within == "node":
        rule = fit.CONSOLIDATED if item.required else fit.PREFERRED
    seats = NodeCounts(state.scratch[0], state.scratch[1])
    seed = int(fit.mix(state.seed * 1000003 + int(t.I[Job.EPOCH, row]) * 8191 + row))
    manner = fit.Picking(rule, state.rule.whole, bool(t.I[Job.CONSOLIDATE, row] > 0), seed)
    used = fit.choose(_supply(state, option, NF, NI), need, spread, manner, seats)
    if used == 0 or (item.within == "node" and item.required and used > 1):
        return None
    return [device for node, count in zip(seats.nodes[:used].tolist(), seats.counts[:used].tolist()) for device in pick(state, node, count)]


def _supply(state: State, option: int, NF: Floats, NI: Ints) -> Supply:
    """What these nodes have free for a gang with that option."""
    OI, OF = state.tables.options.I, state.tables.options.F
    return supply_for.py_func(NF, NI, OF, OI, option, False)  # type: ignore[attr-defined,no-any-return]  # from Python a kernel returns numbers


def _views(state: State, item: Assignment) -> Iterator[Ints]:
    """The node table with all other nodes masked, the tightest rack or pool first."""
    allowed = _only(state.tables.NI, item.nodes)
    if item.within in ("rack", "pool"):
        level = _level(state, item.within)
        free = {int(k): int(allowed[Node.FREE, level == k].sum()) for k in np.unique(level)}
        for k in sorted(free, key=lambda k: (free[k], k)):
            yield _only(allowed, np.flatnonzero(level == k).tolist())
        if item.required:
            return
    yield allowed


def _only(NI: Ints, nodes: Sequence[int]) -> Ints:
    """The node table in which only these nodes can be used (none named: all of them)."""
    if not len(nodes):
        return NI
    view = NI.copy()
    outside = np.ones(NI.shape[1], dtype=bool)
    outside[list(nodes)] = False
    view[Node.FREE, outside] = 0
    view[Node.UP, outside] = 0
    return view


def _level(state: State, name: str) -> Ints:
    """A number per node: its own, its rack's or its pool's."""
    NI = state.tables.NI
    if name == "rack":
        racks: Ints = NI[Node.RACK]
        return racks
    if name == "pool":
        names = [node.pool for node in state.tables.cluster.nodes]
        codes = {pool: code for code, pool in enumerate(dict.fromkeys(names))}
        return np.array([codes[pool] for pool in names], dtype=np.int64)
    return np.arange(NI.shape[1], dtype=np.int64)
