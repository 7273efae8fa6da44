"""Choosing devices for one gang: by the placement rule within what its assignment allows, for workers of several roles, and for
members of a group; and what they take of device memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import DEVICE_MEMORY, FREE, HOST_RESOURCES, Device, Job, Node, Option
from gantline.core.grant import Worker
from gantline.core.host_resources import SLACK, amounts_beside
from gantline.core.plan import Assignment, Part
from gantline.core.tables import Tables
from gantline.engine.commit.requested import Requested
from gantline.engine.holdings import NOTHING, Beside, Holdings, Side, added
from gantline.engine.state import State
from gantline.policies.placement import fit
from gantline.policies.placement.fit import NodeCounts, Supply, room, supply_for
from gantline.policies.placement.rules import Together


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
    """The books of one commit; `planned` is what rows shall have by its plan, where that is not what they have."""

    def __init__(self, tables: Tables, tenants: Callable[[int], list[int]], planned: Mapping[int, Assignment]) -> None:
        self.tables, self.tenants, self.planned = tables, tenants, planned
        self.counts = any(tables.cluster.device_memory)

    def lacking(self, row: int, devices: Iterable[int]) -> str:
        """Why the row cannot have what it shall on these devices beside the gangs that are there; empty: it can."""
        wanted = self.amount(row) if self.counts else 0.0
        if wanted == 0.0:
            return ""
        for device in devices:
            has, taken = self._of(device), self._taken(device, row)
            if has > 0.0 and wanted + taken > has + _SLACK:
                node = self.tables.cluster.nodes[int(self.tables.D[Device.NODE, device])].name
                place = f"{node}:{device - int(self.tables.NI[Node.FIRST, self.tables.D[Device.NODE, device]])}"
                left = f", of which {taken:g} GB are taken" if taken else ""
                return f"job '{self.tables.ids[row]}' needs {wanted:g} GB of device memory, and {place} has {has:g} GB{left}"
        return ""

    def amount(self, row: int) -> float:
        """GB that the row takes of each of its devices."""
        grant = self.tables.granted.get(row)
        item = self.planned.get(row) or (None if grant is None else grant.assignment)
        if item is not None and item.memory_cap < math.inf:
            return item.memory_cap
        known = self.tables.metrics.get(DEVICE_MEMORY)
        need = math.nan if known is None else float(known[row])
        return need if need > 0.0 else 0.0

    def _of(self, device: int) -> float:
        return self.tables.cluster.device_memory[int(self.tables.NI[Node.TYPE, self.tables.D[Device.NODE, device]])]

    def _taken(self, device: int, row: int) -> float:
        return sum(self.amount(other) for other in self.tenants(device) if other != row)


# Gangs that share devices: rows that are together stay, the others join, and only missing devices are taken anew.


class Claims:
    """Which row stays on which shared device in one commit. Two may stay together only if the plan allows it to both of them."""

    def __init__(self, holdings: Holdings, changing: set[int]) -> None:
        self._stay: dict[int, dict[int, frozenset[int] | None]] = {}
        for device in {device for row in changing if holdings.shares(row) for device in holdings.of(row).devices}:
            self._stay[device] = {
                row: None for row in holdings.tenants(device) if row not in changing
            }  # they stay with any gang that is there

    def claim(self, w: Requested, devices: tuple[int, ...]) -> bool:
        """The row stays on these devices, if each row that stays there may share with it."""
        company = w.company if w.shares else frozenset({w.row})
        for device in devices:
            for other, theirs in self._stay.get(device, {}).items():
                if other not in company or (theirs is not None and w.row not in theirs):
                    return False
        for device in devices:
            self._stay.setdefault(device, {})[w.row] = company
        return True


class Pools:
    """Per group of one plan: the devices that its members share so far."""

    def __init__(self, state: State, holdings: Holdings, memory: DeviceMemory) -> None:
        self.state, self.holdings, self.memory = state, holdings, memory
        self._pools: dict[frozenset[int], list[int]] = {}

    def settle_in(self, wanted: Mapping[int, Requested], holding: set[int], claims: Claims) -> set[int]:
        """Members that may stay where they are, the widest gang first: each lies within what the others have, or around it."""
        OI = self.state.tables.options.I
        runners = [w for w in wanted.values() if w.pooled and w.sound and w.row in holding]
        staying: set[int] = set()
        for w in sorted(runners, key=lambda w: -int(OI[Option.GPUS, w.option])):
            held = self.holdings.of(w.row)
            same_type = bool(OI[Option.TYPE, held.option] == OI[Option.TYPE, w.option])
            pool = self._pools.setdefault(w.company, [])
            both = set(held.devices) | set(pool)
            inside = len(both) in (len(pool), len(held.devices)) or len(both) <= w.item.size
            if same_type and len(held.devices) == OI[Option.GPUS, w.option] and inside and claims.claim(w, held.devices):
                staying.add(w.row)
                self.add(w, held.devices)
        return staying

    def of(self, w: Requested) -> list[int]:
        """The devices of its group so far."""
        return list(self._pools.get(w.company, ()))

    def restore(self, w: Requested, devices: list[int]) -> None:
        """Its group has these devices again."""
        self._pools[w.company] = devices

    def add(self, w: Requested, devices: tuple[int, ...]) -> None:
        """These devices are the group's from now on."""
        pool = self._pools.setdefault(w.company, [])
        pool += [device for device in devices if device not in pool]

    def find(self, w: Requested) -> list[int] | None:
        """Devices for a member: the least crowded ones of the group, and free ones where it has too few."""
        t = self.state.tables
        need, kind = int(t.options.I[Option.GPUS, w.option]), int(t.options.I[Option.TYPE, w.option])
        mine = [d for d in self._pools.get(w.company, ()) if t.NI[Node.TYPE, t.D[Device.NODE, d]] == kind]
        usable = [d for d in mine if self.holdings.is_open(d) and not self.memory.lacking(w.row, (d,))]
        if w.item.nodes:
            usable = [d for d in usable if int(t.D[Device.NODE, d]) in w.item.nodes]
        if w.item.size > len(usable):
            wider = self._widen(w, usable, need)
            if wider is not None:
                return wider
        if len(usable) >= need:
            quiet = sorted(usable, key=lambda d: len(self.holdings.tenants(d)))[:need]
            return [d for d in usable if d in quiet]
        if not usable:
            return choose_devices(self.state, w.row, w.option, w.item)
        return self._more(w, usable, need)

    def _widen(self, w: Requested, usable: list[int], need: int) -> list[int] | None:
        """The group has not all the devices yet that it is to share: idle ones of its own first, then free ones, before members stack."""
        idle = [d for d in usable if not self.holdings.tenants(d)][:need]
        fresh = min(need - len(idle), w.item.size - len(usable))
        if fresh + len(idle) < need:
            return None
        if not idle:
            return choose_devices(self.state, w.row, w.option, w.item) if fresh else None
        return idle if fresh == 0 else self._more(w, idle, need)

    def _more(self, w: Requested, devices: list[int], need: int) -> list[int] | None:
        return extend(self.state, w.row, w.option, devices, need, w.item)
