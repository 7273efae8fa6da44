"""Devices for one gang: by the placement rule within what its assignment allows, for workers of several roles, and for members of a group;
and what they take of device memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import DEVICE_MEMORY, FREE, HOST_RESOURCES, Device, Job, Node, Option
from gantline.core.grant import Worker
from gantline.core.host_resources import SLACK, amounts_beside
from gantline.core.plan import Assignment, Part
from gantline.core.tables import Tables
from gantline.engine.commit.turns import GangTurn, GrantForm
from gantline.engine.gang import find_devices
from gantline.engine.holdings import NOTHING, Beside, Holding, Holdings, Side, added
from gantline.engine.settings import EngineRules, Switch
from gantline.engine.state import State
from gantline.policies.placement import fit
from gantline.policies.placement.rules import Together


def choose_place(holdings: Holdings, row: int, option: int, item: Assignment | None, kept: Sequence[int] = ()) -> Holding | None:
    """A place for a whole gang, or for one that keeps some devices, which `item` may restrict; None: it does not fit as it must."""
    state, listed = holdings.state, holdings.listed(kept)
    t, rules = state.matrices, _rules(state, item)
    need, one_node = int(t.OI[Option.GPUS, option]), item is not None and item.within == "node" and bool(item.required)
    for view in (None,) if item is None else _views(state, item, need > 0, kept):
        tables = t if view is None or view is t.NI else t._replace(NI=view)
        if find_devices(tables, rules, row, option, len(kept), one_node, state.scratch, listed):
            found = listed[: max(need, 1)].tolist()
            return Holding(option, tuple(found)) if need else Holding(option, node=found[0])
    return None


def likes_together(state: State, row: int, item: Assignment | None) -> bool:
    """Whether a gang is better off on few nodes, by its assignment or by the rule."""
    likes, sensitive = state.rule.together, bool(state.tables.I[Job.CONSOLIDATE, row] > 0)
    within = item is not None and item.within == "node"
    return within or likes is Together.ALWAYS or (likes is Together.SENSITIVE and sensitive)


def keeps_within(state: State, nodes: Sequence[int], item: Assignment) -> bool:
    """Whether a gang on these nodes is where its assignment requires it to be."""
    if item.nodes and not set(nodes) <= set(item.nodes):
        return False
    if not (item.within and item.required):
        return True
    level = _level(state, item.within)
    return len({int(level[node]) for node in nodes}) <= 1


def _rules(state: State, item: Assignment | None) -> EngineRules:
    """The rule of the run, or what says instead how one node is sought."""
    if item is None or item.within != "node":
        return state.rules
    switch = state.SI.copy()
    switch[Switch.RULE] = fit.CONSOLIDATED if item.required else fit.PREFERRED
    return state.rules._replace(switch=switch)


def _views(state: State, item: Assignment, devices: bool, kept: Sequence[int]) -> Iterator[Ints]:
    """The node table with all other nodes masked; for a gang with devices the tightest rack or pool first, or where it is already."""
    NI = state.tables.NI
    allowed = _only(NI, item.nodes)
    if kept:
        level = _level(state, item.within) if item.within and item.required else None
        here = int(state.tables.D[Device.NODE, kept[0]])
        yield allowed if level is None else _only(allowed, np.flatnonzero(level == level[here]).tolist())
        return
    if devices and item.within in ("rack", "pool"):
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


# Grants with several roles (parameter servers and workers, base and extra workers): each worker is placed, or none.

Kept = dict[tuple[str, int], Worker]  # by role and number within the role


def kept_workers(before: Sequence[Worker], parts: Sequence[Part]) -> Kept:
    """Workers that stay in place when a grant changes: the first ones of each role, unless the plan puts them elsewhere."""
    kept: Kept = {}
    for part in parts:
        alike = [w for w in before if (w.role, len(w.devices), *amounts_beside(w)) == (part.role, part.gpus, *amounts_beside(part))]
        for number, worker in enumerate(alike[: part.count]):
            there = number >= len(part.nodes) or part.nodes[number] == worker.node
            if there and (not part.devices or worker.devices == _exact(part, number)):
                kept[part.role, number] = worker
    return kept


def place_parts(tables: Tables, parts: Sequence[Part], kept: Kept) -> tuple[Worker, ...] | None:
    """A place for every worker, the kept ones where they are; None: at least one worker has no place.

    What the kept ones hold is still in the tables; the others share out what is free.
    """
    t = tables
    left = t.NF[:HOST_RESOURCES].copy()
    free = {int(d) for d in np.flatnonzero(t.D[Device.HOLDER] == FREE)}
    placed: Kept = {}
    for part in sorted(parts, key=lambda part: part.gpus == 0):  # parts that need devices come first: the others fit in more places
        for number in range(part.count):
            worker = kept.get((part.role, number))
            if worker is None:
                worker = _place(t, part, number, free, left)
                if worker is None:
                    return None
                free -= set(worker.devices)
                left[:, worker.node] -= amounts_beside(part)
            placed[part.role, number] = worker
    return tuple(placed[part.role, number] for part in parts for number in range(part.count))


def _exact(part: Part, number: int) -> tuple[int, ...]:
    return tuple(part.devices[number * part.gpus : (number + 1) * part.gpus])


def _place(t: Tables, part: Part, number: int, free: set[int], left: Floats) -> Worker | None:
    """One worker: where the plan says, else on the first node with room."""
    exact = _exact(part, number)
    nodes = [part.nodes[number]] if number < len(part.nodes) else list(range(t.NI.shape[1]))
    for node in nodes:
        if t.NI[Node.UP, node] == 0 or t.NI[Node.TYPE, node] != part.type:
            continue
        first, size = int(t.NI[Node.FIRST, node]), int(t.NI[Node.GPUS, node])
        mine = exact if part.devices else tuple(d for d in range(first, first + size) if d in free)[: part.gpus]
        here = len(mine) == part.gpus and all(d in free and first <= d < first + size for d in mine)
        if here and (left[:, node] + SLACK >= amounts_beside(part)).all():
            return Worker(part.role, node, tuple(mine), *amounts_beside(part))
    return None


def side_of(workers: Sequence[Worker]) -> Side:
    """What the workers need per node beside devices."""
    found: dict[int, Beside] = {}
    for worker in workers:
        found[worker.node] = added(found.get(worker.node, NOTHING), amounts_beside(worker))
    return tuple((node, *amounts) for node, amounts in found.items())


# Device memory: what gangs may use of it on each device is booked, and a gang for which too little is left is refused
# with the amounts.
#
# A gang takes what the plan allows it (`memory_cap`), else what its job is known to need on each device (the metric
# `device_memory`). Nothing is counted where a cluster does not state the memory of its devices, or nothing is known of
# a job.

_SLACK = 1e-9


class DeviceMemory:
    """The books of one commit; `caps` are those of rows of its plan, where they are not what they were."""

    def __init__(self, holdings: Holdings, caps: Mapping[int, float]) -> None:
        self.tables, self.holdings, self.caps = holdings.state.tables, holdings, caps
        self.counts = any(self.tables.cluster.device_memory)

    def lacking(self, row: int, devices: Iterable[int]) -> str:
        """Why the row cannot have what it shall on these devices beside the gangs that are there; empty: it can."""
        wanted = self.amount(row) if self.counts else 0.0
        if wanted == 0.0:
            return ""
        for device in devices:
            number = int(self.tables.D[Device.NODE, device])
            has = self.tables.cluster.device_memory[int(self.tables.NI[Node.TYPE, number])]
            taken = sum(self.amount(other) for other in self.holdings.tenants(device) if other != row)
            if has > 0.0 and wanted + taken > has + _SLACK:
                place = f"{self.tables.cluster.nodes[number].name}:{device - int(self.tables.NI[Node.FIRST, number])}"
                left = f", of which {taken:g} GB are taken" if taken else ""
                return f"job '{self.tables.ids[row]}' needs {wanted:g} GB of device memory, and {place} has {has:g} GB{left}"
        return ""

    def amount(self, row: int) -> float:
        """GB that the row takes of each of its devices."""
        grant = self.tables.granted.get(row)
        cap = self.caps.get(row, math.inf if grant is None else grant.assignment.memory_cap)
        if cap < math.inf:
            return cap
        known = self.tables.metrics.get(DEVICE_MEMORY)
        need = math.nan if known is None else float(known[row])
        return need if need > 0.0 else 0.0


# Gangs that share devices: rows that are together stay, the others join, and only missing devices are taken anew.


class Claims:
    """Which row stays on which shared device in one commit. Two may stay together only if the plan allows it to both of them."""

    def __init__(self, holdings: Holdings, changing: Iterable[GangTurn]) -> None:
        self._stay: dict[int, dict[int, frozenset[int] | None]] = {}
        rows = {turn.row for turn in changing}
        for device in {device for turn in changing if turn.had.shared for device in turn.had.devices}:
            self._stay[device] = {row: None for row in holdings.tenants(device) if row not in rows}  # they stay with any gang that is there

    def claim(self, turn: GangTurn, devices: tuple[int, ...]) -> bool:
        """The row stays on these devices, if each row that stays there may share with it."""
        partners = turn.partners if turn.shares else frozenset({turn.row})
        for device in devices:
            for other, theirs in self._stay.get(device, {}).items():
                if other not in partners or (theirs is not None and turn.row not in theirs):
                    return False
        for device in devices:
            self._stay.setdefault(device, {})[turn.row] = partners
        return True


class Pools:
    """Per group of one plan: the devices that its members share so far."""

    def __init__(self, holdings: Holdings, memory: DeviceMemory) -> None:
        self.state, self.holdings, self.memory = holdings.state, holdings, memory
        self._pools: dict[frozenset[int], dict[int, None]] = {}  # in the order in which they became the group's

    def settle_in(self, holders: Iterable[GangTurn], claims: Claims) -> set[int]:
        """Members that may stay where they are, the widest gang first: each lies within what the others have, or around it."""
        OI, staying = self.state.tables.options.I, set[int]()
        for turn in sorted((turn for turn in holders if turn.form is GrantForm.JOINS), key=lambda turn: -int(OI[Option.GPUS, turn.option])):
            held, pool = turn.had, self._pools.get(turn.partners, {})
            same_type = bool(OI[Option.TYPE, held.option] == OI[Option.TYPE, turn.option])
            both = set(held.devices) | set(pool)
            inside = len(both) in (len(pool), len(held.devices)) or (turn.item is not None and len(both) <= turn.item.size)
            if same_type and len(held.devices) == OI[Option.GPUS, turn.option] and inside and claims.claim(turn, held.devices):
                staying.add(turn.row)
                self.add(turn, held.devices)
        return staying

    def of(self, turn: GangTurn) -> tuple[int, ...]:
        """The devices of its group so far."""
        return tuple(self._pools.get(turn.partners, ()))

    def restore(self, turn: GangTurn, devices: tuple[int, ...]) -> None:
        """Its group has these devices again."""
        self._pools[turn.partners] = dict.fromkeys(devices)

    def add(self, turn: GangTurn, devices: tuple[int, ...]) -> None:
        """These devices are the group's from now on."""
        self._pools.setdefault(turn.partners, {}).update(dict.fromkeys(devices))

    def find(self, turn: GangTurn) -> tuple[int, ...] | None:
        """Devices for a member: the least crowded ones of the group, and free ones where it has too few."""
        t, item = self.state.tables, turn.item
        need, kind = int(t.options.I[Option.GPUS, turn.option]), int(t.options.I[Option.TYPE, turn.option])
        size = 0 if item is None else item.size
        usable = [
            d
            for d in self._pools.get(turn.partners, ())
            if t.NI[Node.TYPE, t.D[Device.NODE, d]] == kind and self.holdings.is_open(d) and not self.memory.lacking(turn.row, (d,))
        ]
        if item is not None and item.nodes:
            usable = [d for d in usable if int(t.D[Device.NODE, d]) in item.nodes]
        if size > len(usable):  # not all the devices yet that they are to share: idle ones first, then free ones, before members stack
            idle = [d for d in usable if not self.holdings.tenants(d)][:need]
            fresh = need - len(idle)
            wider = tuple(idle) if fresh == 0 else self._more(turn, idle) if fresh <= size - len(usable) else None
            if wider is not None:
                return wider
        if len(usable) > need:
            quiet = sorted(usable, key=lambda d: len(self.holdings.tenants(d)))[:need]
            usable = [d for d in usable if d in quiet]
        return tuple(usable) if len(usable) == need else self._more(turn, usable)

    def _more(self, turn: GangTurn, devices: list[int]) -> tuple[int, ...] | None:
        found = choose_place(self.holdings, turn.row, turn.option, turn.item, devices)
        return None if found is None else found.devices
