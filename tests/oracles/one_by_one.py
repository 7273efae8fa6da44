"""The changes of a plan done one row after the other, in the plainest way: what `PlanChanges` does is held against it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import ASKED_TOGETHER, DEVICE_MEMORY, FREE, HOST_RESOURCES, Device, Job, Node, Option
from gantline.core.grant import Grant, Worker
from gantline.core.host_resources import SLACK, amounts_beside
from gantline.core.phases import Phase
from gantline.core.plan import TRIAL, Assignment, Assignments, Mode, Part
from gantline.core.reasons import Reason
from gantline.core.tables import Tables
from gantline.engine.commit.diff import GRANTED, IN_PART, NOT_GRANTED, note_granted
from gantline.engine.commit.request import PlanRequest, divides_time
from gantline.engine.commit.turns import exact_option
from gantline.engine.gang import close_interval, halt, open_interval, rest, set_due, settle, start
from gantline.engine.grants import Grants
from gantline.engine.holdings import NOTHING, Beside, Holding, Holdings, Side, added
from gantline.engine.log import Interval
from gantline.engine.option_rows import IMPOSSIBLE, OptionRows
from gantline.engine.runs import is_trial, note_saves
from gantline.engine.state import State
from gantline.engine.time_shares import Fluid
from gantline.models.model import Act
from gantline.policies.placement import fit
from gantline.policies.placement.fit import NodeCounts, Supply, room, supply_for
from gantline.policies.placement.rules import Together

#: levels that `within` may name
LEVELS = ("node", "rack")
_SHARING = (Mode.SPACE, Mode.TIME, Mode.INTERLEAVE)


@dataclass(frozen=True, slots=True)
class Requested:
    """One row's place in the plan. An option of -1 means that the plan asks for what cannot be."""

    row: int
    items: tuple[Assignment, ...]  # `job` is the row
    members: tuple[frozenset[int], ...]  # per item: rows of its group
    options: tuple[int, ...]  # per item
    kind: str  # one of `KINDS`
    company: frozenset[int] = frozenset()  # rows that may be on its devices beside it, itself included

    @property
    def item(self) -> Assignment:
        return self.items[0]

    @property
    def option(self) -> int:
        return self.options[0]

    @property
    def sound(self) -> bool:
        return IMPOSSIBLE not in self.options

    @property
    def shares(self) -> bool:
        """Whether others may hold its devices too."""
        return self.kind == "shared"

    @property
    def fluid(self) -> bool:
        """Whether it is a share of the time, on no device in particular."""
        return self.kind == "share of time"

    @property
    def pooled(self) -> bool:
        """Whether the engine finds the devices that the group shares."""
        return self.shares and not self.item.devices


def read_entries(
    tables: Tables, options: OptionRows, rows: Ints, table: Assignments, at: Iterable[int], open_rows: frozenset[int] = frozenset()
) -> dict[int, Requested]:
    """What each row shall have by the assignments at these places of the plan, in the order in which the plan first names them.

    `open_rows` share without a group: in this plan, or by one that is still in force for them.
    """
    listed: dict[int, list[Assignment]] = {}
    by_row = copy(table)
    by_row.job = rows
    for place in at:
        item = by_row[place]
        listed.setdefault(item.job, []).append(item)
    groups = _members(rows, table)
    claims: dict[tuple[int, int], int] = {}  # (group, device) -> how many members name it
    for items in listed.values():
        for item in items:
            if item.group >= 0:
                for device in item.devices:
                    claims[item.group, device] = claims.get((item.group, device), 0) + 1
    found = {}
    for row, items in listed.items():
        members = tuple(groups.get(item.group, frozenset()) for item in items)
        chosen = tuple(_option(tables, options, row, item) for item in items)
        kind = _kind(items, claims)
        company = (members[0] if items[0].group >= 0 else open_rows) if kind == "shared" else frozenset()
        if not all(_means_something(tables, item) for item in items) or not _agree(items, kind):
            chosen = (IMPOSSIBLE,) * len(items)
        found[row] = Requested(row, tuple(items), members, chosen, kind, company)
    return found


def _members(rows: Ints, table: Assignments) -> dict[int, frozenset[int]]:
    """The rows of each group, those that keep what they have included."""
    if not table.has("group"):
        return {}
    found: dict[int, set[int]] = {}
    for row, group in zip(rows.tolist(), table.column("group").tolist()):
        if group >= 0:
            found.setdefault(group, set()).add(row)
    return {group: frozenset(members) for group, members in found.items()}


def shares_openly(rows: Ints, table: Assignments) -> Bools:
    """Which assignments share the devices that they name with all others that do the same, without a group."""
    if not (table.has("devices") and table.has("mode")):
        return np.zeros(len(rows), dtype=np.bool_)
    named = np.fromiter(map(bool, table.entries("devices")), dtype=np.bool_, count=len(table))
    return np.asarray(named & (table.column("mode") == int(Mode.SPACE)) & (table.column("group") < 0) & ~divides_time(rows, table))


def _kind(items: Sequence[Assignment], claims: dict[tuple[int, int], int]) -> str:
    first = items[0]
    if len(items) > 1 or (first.share < 1.0 and first.mode in (Mode.EXCLUSIVE, Mode.SPACE)):
        return "share of time"
    if _shares_devices(first, claims):
        return "shared"
    if first.parts:
        return "parts"
    return "exact" if first.devices else "gang"


def _shares_devices(item: Assignment, claims: dict[tuple[int, int], int]) -> bool:
    """SPACE and TIME share by nature. An INTERLEAVE group may share links only: its members share the devices that several of them name."""
    if item.group < 0:
        return item.mode == Mode.SPACE and bool(item.devices)
    if item.mode not in _SHARING:
        return False
    if item.mode != Mode.INTERLEAVE or not item.devices:
        return True
    return any(claims[item.group, device] > 1 for device in item.devices)


def _option(t: Tables, options: OptionRows, row: int, item: Assignment) -> int:
    if item.parts:
        kinds = [part.type for part in item.parts if part.gpus and part.count] or [part.type for part in item.parts]
        return options.bare(row, item.option, kinds[0], sum(part.count * part.gpus for part in item.parts))
    if item.devices:
        return exact_option(t, options, row, item.devices, item)
    return options.find(row, item.option, item.gpus, item.type, amounts_beside(item), item.span)


def _means_something(t: Tables, item: Assignment) -> bool:
    """The same for one, and whether it names places that exist."""
    nodes = range(t.NI.shape[1])
    numbers = 0.0 < item.fraction <= 1.0 and 0.0 < item.share <= 1.0 and item.limit > 0.0 and item.memory_cap > 0.0 and item.size >= 0
    times = not math.isnan(item.until) and math.isfinite(item.offset) and item.batch >= 0 and item.accumulation >= 1
    amounts = all(math.isnan(amount) or amount >= 0.0 for amount in amounts_beside(item))
    places = item.within in ("", *LEVELS) and all(node in nodes for node in item.nodes) and len(set(item.devices)) == len(item.devices)
    return numbers and times and amounts and places


def _agree(items: Sequence[Assignment], kind: str) -> bool:
    """Whether a row's assignments go together: shares of time name no place and make one whole at most; a row with parts owns them."""
    if kind != "share of time":
        return not (kind == "shared" and items[0].parts)
    placed = any(item.devices or item.nodes or item.span or item.parts or item.within for item in items)
    divisible = all(item.mode in (Mode.EXCLUSIVE, Mode.SPACE) for item in items)
    return divisible and not placed and bool(np.sum([item.share for item in items]) <= 1.0 + 1e-6)


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
    """The node table with all other nodes masked, the tightest rack first."""
    allowed = _only(state.tables.NI, item.nodes)
    if item.within == "rack":
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
    """A number per node: its own or its rack's."""
    NI = state.tables.NI
    if name == "rack":
        racks: Ints = NI[Node.RACK]
        return racks
    return np.arange(NI.shape[1], dtype=np.int64)


# Grants with several roles (parameter servers and workers, base and extra workers): each worker is placed, or none.

Kept = dict[tuple[str, int], Worker]  # by role and number within the role


def kept_workers(before: Sequence[Worker], parts: Sequence[Part]) -> Kept:
    """Workers that stay in place when a grant changes: the first ones of each role."""
    kept: Kept = {}
    for part in parts:
        alike = [w for w in before if (w.role, len(w.devices), *amounts_beside(w)) == (part.role, part.gpus, *amounts_beside(part))]
        for number, worker in enumerate(alike[: part.count]):
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
                worker = _place(t, part, free, left)
                if worker is None:
                    return None
                free -= set(worker.devices)
                left[:, worker.node] -= amounts_beside(part)
            placed[part.role, number] = worker
    return tuple(placed[part.role, number] for part in parts for number in range(part.count))


def _place(t: Tables, part: Part, free: set[int], left: Floats) -> Worker | None:
    """One worker, on the first node with room."""
    for node in range(t.NI.shape[1]):
        if t.NI[Node.UP, node] == 0 or t.NI[Node.TYPE, node] != part.type:
            continue
        first, size = int(t.NI[Node.FIRST, node]), int(t.NI[Node.GPUS, node])
        mine = tuple(d for d in range(first, first + size) if d in free)[: part.gpus]
        if len(mine) == part.gpus and (left[:, node] + SLACK >= amounts_beside(part)).all():
            return Worker(part.role, node, mine, *amounts_beside(part))
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
# A gang takes what its job is known to need on each device (the metric `device_memory`). Nothing is counted where a cluster
# does not state the memory of its devices, or nothing is known of a job.

_SLACK = 1e-9


class DeviceMemory:
    """The books of one commit."""

    def __init__(self, tables: Tables, tenants: Callable[[int], list[int]]) -> None:
        self.tables, self.tenants = tables, tenants
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
            inside = len(both) in (len(pool), len(held.devices))
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
        if len(usable) >= need:
            quiet = sorted(usable, key=lambda d: len(self.holdings.tenants(d)))[:need]
            return [d for d in usable if d in quiet]
        if not usable:
            return choose_devices(self.state, w.row, w.option, w.item)
        return extend(self.state, w.row, w.option, usable, need, w.item)


class Transitions:
    """Acts on one row at a time; what it held before has been given back already."""

    def __init__(self, state: State, holdings: Holdings) -> None:
        self.state, self.holdings = state, holdings
        self.acts: dict[int, Act] = {}  # what each row paid for
        self.turns: set[int] = set()  # rows that have their turn again in a rotation

    def start(self, row: int, target: Holding) -> None:
        """A row that waits takes its place and begins; it pays for a start or a resume."""
        state, t, log = self.state, self.state.tables, self.state.log
        self.acts[row] = Act.START if math.isnan(t.F[Job.FIRST_START, row]) else Act.RESUME
        self.holdings.take(row, target)
        log.reserve(8, t.D.shape[1] + 8)
        start(state.matrices, row, state.now, state.rules, log.columns)
        log_shared(self.state, row, target)
        if row in self.turns and self.acts[row] is Act.RESUME:
            self.acts[row] = Act.SWITCH
            t.F[Job.SINCE, row] = state.now + state.costs.scaled(state.costs.of_switch, len(target.devices))
            set_due(t.F, row)

    def start_elsewhere(self, row: int, old: Holding, target: Holding) -> None:
        """All its devices change at once: it saves, and starts again over there. A restart, but no preemption."""
        t, log = self.state.tables, self.state.log
        close_interval(t.I, row, self.state.now, int(_why(old, target)), log.columns)
        rest(t.F, t.I, row, self.state.now)
        self.start(row, target)
        t.F[Job.SINCE, row] = self.state.now + self._price(row, old, target)
        set_due(t.F, row)

    def go_on(self, row: int, old: Holding, target: Holding) -> None:
        """Some of its workers stay where they are: it saves, pauses and goes on. Nothing counts as a restart."""
        t, log = self.state.tables, self.state.log
        close_interval(t.I, row, self.state.now, int(_why(old, target)), log.columns)
        self.holdings.take(row, target)
        t.I[Job.EPOCH, row] += 1
        t.F[Job.SAFE, row] = t.F[Job.DONE, row]
        t.F[Job.SINCE, row] = self.state.now + self._price(row, old, target)
        set_due(t.F, row)
        log.reserve(8, t.D.shape[1] + 8)
        open_interval(t.I, t.D, row, self.state.now, log.columns)
        log_shared(self.state, row, target)

    def _price(self, row: int, old: Holding, new: Holding) -> float:
        """Seconds at rate zero: a change of size on one type is a resize, anything else a move."""
        OI = self.state.tables.options.I
        resized = len(old.devices) != len(new.devices) and OI[Option.TYPE, old.option] == OI[Option.TYPE, new.option]
        costs = self.state.costs
        self.acts[row] = Act.RESIZE if resized else Act.MOVE
        return costs.scaled(costs.resize if resized else costs.move, len(new.devices))


def log_shared(state: State, row: int, held: Holding) -> None:
    """Shared devices are in no chain that the kernels' log could follow: enter them here, in rank order."""
    log, at = state.log, int(state.tables.I[Job.INTERVAL, row])
    if held.shared and at >= 0:
        log.reserve(8, len(held.devices) + 8)
        log.LD[log.LN[1] : log.LN[1] + len(held.devices)] = held.devices
        log.LN[1] += len(held.devices)
        log.LI[Interval.COUNT, at] = len(held.devices)


def _why(old: Holding, new: Holding) -> Reason:
    return Reason.MOVED if len(old.devices) == len(new.devices) else Reason.RESIZED


class Manner(Enum):
    """How much of what it holds a gang gives up."""

    STAYS = "keeps its devices"
    KEEPS = "keeps some of its devices in place"
    LEAVES = "gives up all of them"


@dataclass(frozen=True, slots=True)
class Change:
    """A gang's part in a commit, before its turn comes."""

    manner: Manner
    keep: Holding | None = None  # what it holds on to meanwhile
    workers: Kept | None = None  # the workers that stay, of a grant with parts


STAYS, LEAVES = Change(Manner.STAYS), Change(Manner.LEAVES)


# The interface of every kind of grant.


@dataclass(frozen=True)
class CommitContext:
    """What kinds of grants use while a plan is committed."""

    state: State
    holdings: Holdings
    fluid: Fluid
    pools: Pools
    staying: set[int]  # members of groups that are together already


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a gang would go."""

    holding: Holding
    workers: tuple[Worker, ...] = ()
    moved: bool = False  # all of it leaves where it was, although it might have kept something


class Kind(ABC):
    """One kind of grant; what is common to most."""

    def __init__(self, context: CommitContext) -> None:
        self.context, self.state, self.holdings = context, context.state, context.holdings

    def change(self, w: Requested, held: Holding, grant: Grant | None) -> Change:
        """What the plan means for a gang that holds something."""
        return LEAVES

    @abstractmethod
    def fits(self, w: Requested, change: Change | None) -> Placed | Reason:
        """Where the gang would go, or why it cannot."""

    def give_back(self, row: int, grant: Grant | None) -> Holding:
        """The row gives up everything. Returns what it held."""
        if grant is not None and grant.fluid:
            self.context.fluid.close(row)
        held = self.holdings.of(row)
        self.holdings.give_back(row)
        return held

    def why_not(self, w: Requested) -> Reason:
        """Why devices were not found: there are too few, or not where they should be."""
        OI = self.state.tables.options.I
        free = self.holdings.free_of(int(OI[Option.TYPE, w.option]))
        return Reason.FRAGMENTED if free >= int(OI[Option.GPUS, w.option]) else Reason.RESOURCES


# Devices of its own that the plan names, in rank order.


class ExactGang(Kind):
    """A row that holds some of the named devices keeps those in place."""

    def change(self, w: Requested, held: Holding, grant: Grant | None) -> Change:
        if grant is not None and (grant.workers or grant.fluid):
            return LEAVES
        if held.devices == tuple(w.item.devices):
            return STAYS
        common = tuple(device for device in held.devices if device in w.item.devices)
        return Change(Manner.KEEPS, Holding(held.option, common, shared=held.shared)) if common else LEAVES

    def fits(self, w: Requested, change: Change | None) -> Placed | Reason:
        return Placed(Holding(w.option, tuple(w.item.devices), shared=w.shares))


# Devices of its own that the engine chooses, within the nodes, rack or pool that the plan allows.
#
# The usual case, a gang without such requirements, is compiled (`take_turns`); this is the same for the others.


class PlacedGang(Kind):
    """It stays if it is of the right type, in the right place and of the right shape; if it grows, it may move as a whole."""

    def change(self, w: Requested, held: Holding, grant: Grant | None) -> Change:
        if grant is not None and (grant.workers or grant.fluid):
            return LEAVES
        OI, nodes = self.state.tables.options.I, self.holdings.nodes(held.devices) or [held.node]
        need, spread = int(OI[Option.GPUS, w.option]), int(OI[Option.NODES, w.option])
        same_kind = OI[Option.TYPE, held.option] == OI[Option.TYPE, w.option] and (need == 0) == (held.node >= 0)
        if not same_kind or not keeps_within(self.state, nodes, w.item) or (spread and spread != len(nodes)):
            return LEAVES
        if need == len(held.devices):
            return STAYS
        if spread and self.state.tables.I[Job.CONSOLIDATE, w.row] != ASKED_TOGETHER:
            return LEAVES
        return Change(Manner.KEEPS, Holding(held.option, held.devices[:need], shared=held.shared))

    def fits(self, w: Requested, change: Change | None) -> Placed | Reason:
        t, item = self.state.tables, w.item
        need = int(t.options.I[Option.GPUS, w.option])
        if need == 0:
            node = choose_node(self.state, w.row, w.option, item)
            return Placed(Holding(w.option, node=node)) if node >= 0 else Reason.RESOURCES
        if change is None or change.keep is None:
            chosen = choose_devices(self.state, w.row, w.option, item)
            return self.why_not(w) if chosen is None else self._at(w, chosen)
        chosen = extend(self.state, w.row, w.option, change.keep.devices, need, item)
        lacks = chosen is not None and not self._has_side(w, change.keep, chosen)
        if need > len(change.keep.devices) and (chosen is None or lacks or likes_together(self.state, w.row, item)):
            elsewhere = self._elsewhere(w, change.keep, None if lacks else chosen)
            if elsewhere is not None:
                return Placed(Holding(w.option, tuple(elsewhere), shared=False), moved=True)
        if chosen is None:
            return self.why_not(w)
        return Reason.RESOURCES if lacks else self._at(w, chosen)

    def _has_side(self, w: Requested, keep: Holding, chosen: list[int]) -> bool:
        """Whether the nodes have the CPUs and the memory too."""
        self.holdings.give_back(w.row)
        found = self.holdings.fits(Holding(w.option, tuple(chosen), shared=False), w.company, keep)
        self.holdings.take(w.row, keep)
        return found

    def _at(self, w: Requested, chosen: list[int]) -> Placed:
        return Placed(Holding(w.option, tuple(chosen), shared=False))

    def _elsewhere(self, w: Requested, keep: Holding, chosen: list[int] | None) -> list[int] | None:
        """A place for the whole gang on fewer nodes than growing where it is would need; None: there is none, or it may not move yet."""
        state = self.state
        if state.now < state.tables.F[Job.LAST_START, w.row] + state.min_run:
            return None
        spans = len(self.holdings.nodes(chosen)) if chosen is not None else len(state.tables.cluster.nodes) + 1
        if spans == 1:
            return None
        self.holdings.give_back(w.row)  # its own devices count as free
        found = choose_devices(state, w.row, w.option, w.item)
        self.holdings.take(w.row, keep)
        return found if found is not None and len(self.holdings.nodes(found)) < spans else None


# Devices that a group holds together: named by the plan, or found by the engine among those of the group.


class SharedGang(ExactGang):
    """A row that is already with its group stays; otherwise it joins the group."""

    def change(self, w: Requested, held: Holding, grant: Grant | None) -> Change:
        if grant is not None and (grant.workers or grant.fluid):
            return LEAVES
        if not w.pooled:
            return super().change(w, held, grant)
        return STAYS if w.row in self.context.staying else LEAVES

    def fits(self, w: Requested, change: Change | None) -> Placed | Reason:
        if not w.pooled:
            return super().fits(w, change)
        chosen = self.context.pools.find(w)
        return self.why_not(w) if chosen is None else Placed(Holding(w.option, tuple(chosen), shared=True))


# Workers of several roles (parameter servers and workers, base and extra workers): each is placed, or none.


class PartsGang(Kind):
    """Workers that are on a permitted node stay there."""

    def change(self, w: Requested, held: Holding, grant: Grant | None) -> Change:
        if grant is not None and grant.fluid:
            return LEAVES
        workers = grant.workers if grant is not None else ()
        kept = kept_workers(workers, w.item.parts)
        if len(kept) == len(workers) == sum(part.count for part in w.item.parts):
            return STAYS
        if not kept:
            return LEAVES
        devices = tuple(device for worker in kept.values() for device in worker.devices)
        return Change(Manner.KEEPS, held._replace(devices=devices, side=side_of(list(kept.values()))), kept)

    def fits(self, w: Requested, change: Change | None) -> Placed | Reason:
        workers = place_parts(self.state.tables, w.item.parts, (change.workers if change is not None else None) or {})
        if workers is None:
            return Reason.RESOURCES
        devices = tuple(device for worker in workers for device in worker.devices)
        return Placed(Holding(w.option, devices, -1 if devices else workers[0].node, side=side_of(workers)), workers)


# So much of the time on each of several types, on no device in particular (Gavel's ideal mechanism).


class TimeShare(Kind):
    """Shares are given out anew whenever one of them changes; there is nothing to keep in place."""

    def change(self, w: Requested, held: Holding, grant: Grant | None) -> Change:
        return STAYS if grant is not None and grant.fluid else LEAVES

    def fits(self, w: Requested, change: Change | None) -> Placed | Reason:
        return Placed(Holding(w.option))


KINDS: dict[str, type[Kind]] = {
    "gang": PlacedGang,
    "exact": ExactGang,
    "shared": SharedGang,
    "parts": PartsGang,
    "share of time": TimeShare,
}


def _open_rows(grants: Grants, rows: Ints, table: Assignments) -> frozenset[int]:
    """Rows that share without a group: by this plan, or by an earlier one if this plan does not name them."""
    before = grants.by_row.keys() - set(rows.tolist())
    openly = (row for row in before if grants.by_row[row].shared and grants.by_row[row].assignment.group < 0)
    return frozenset(rows[shares_openly(rows, table)].tolist()).union(openly)


def _teams(grants: Grants) -> dict[frozenset[int], list[int]]:
    """The rows that share by what is in force, per group; under the empty one those that share without a group."""
    found: dict[frozenset[int], list[int]] = {}
    for row, grant in grants.by_row.items():
        if grant.shared:
            found.setdefault(grant.members[0], []).append(row)
    return found


class OneByOne:
    """Stands in for `PlanChanges`; `granted` are the rows that got all that they were to have."""

    def __init__(self, grants: Grants, rows: Ints, table: Assignments, asked: PlanRequest, places: Ints) -> None:
        at, open_rows = places.tolist(), _open_rows(grants, rows, table) if len(places) else frozenset()
        self.grants, self.rows, self.table, self.asked, self.places = grants, rows, table, asked, places
        self.state, self.t, self.out = grants.state, grants.state.tables, grants.state.out
        self.holdings, self.fluid = grants.holdings, grants.fluid
        self.wanted = read_entries(self.t, grants.options, rows, table, at, open_rows) if at else {}
        self.teams = _teams(grants) if at else {}
        self.had_turn: set[int] = set()
        self.whole = _starting_whole(self.wanted)
        self.granted: set[int] = set()
        self.in_part: set[int] = set()  # rows that got all but other CPUs or the like
        self.touched: set[int] = set()
        self.changes: dict[int, Change] = {}  # of those that hold something and may be touched
        self.before: dict[int, tuple[Holding, Grant | None]] = {}  # of those that gave something up
        self.transitions = Transitions(self.state, self.holdings)
        if self.wanted:
            self.memory = DeviceMemory(self.t, self.holdings.tenants)
            self.pools = Pools(self.state, self.holdings, self.memory)
            context = CommitContext(self.state, self.holdings, self.fluid, self.pools, set())
            self.kinds = {name: kind(context) for name, kind in KINDS.items()}
            self.staying = context.staying
            if any(w.shares for w in self.wanted.values()):
                grants.note_sharing()

    def acts(self) -> tuple[Ints, Ints]:
        """Rows that pay for something, and what for."""
        acts = self.transitions.acts
        return np.array(list(acts), dtype=np.int64), np.array([int(act) for act in acts.values()], dtype=np.int64)

    def carry_out(self) -> set[int]:
        """Rows give up what the plan takes away, take their turns, and are granted what they got."""
        grants, t = self.grants, self.t
        self.give_up()
        for w in self.wanted.values():
            self.turn(w)
        mine = self.rows[self.places]
        grants.by_row.drop(mine[t.I[Job.PHASE][mine] == Phase.PENDING].tolist())  # they have been stopped
        end = [GRANTED if row in self.granted else IN_PART if row in self.in_part else NOT_GRANTED for row in mine.tolist()]
        note_granted(grants.granted, self.table, self.asked, self.places, np.array(end, dtype=np.int64))
        grants.speeds.pay(*self.acts())
        grants.touched |= self.touched
        return self.granted

    # --- what rows give up ----------------------------------------------------------------------------------------------
    def give_up(self) -> None:
        """All of this comes first, so that the order of the plan does not decide which row may use what others leave."""
        holders = {row for row in self.wanted if self._touchable(row)}
        if any(grant.fluid for grant in self.grants.by_row.values()):
            self._keep_shares(holders)
        if not self.wanted:
            return
        mine = {row for row in holders if self.wanted[row].sound}
        claims = Claims(self.holdings, mine)
        self.staying |= self.pools.settle_in(self.wanted, holders, claims)
        for w in self.wanted.values():
            if w.row not in mine:
                continue
            held, grant = self.holdings.of(w.row), self.grants.by_row.get(w.row)
            change = self.kinds[w.kind].change(w, held, grant)
            stays = (change.keep or held).devices if change.manner is not Manner.LEAVES else ()
            if held.shared and not w.pooled and not claims.claim(w, stays):
                change = LEAVES
            if is_trial(grant) != (w.item.purpose == TRIAL):
                change = LEAVES
            self._give_up_one(w, change)

    def _touchable(self, row: int) -> bool:
        """Whether a row holds something, and nothing about it is locked or in flight."""
        return int(self.t.I[Job.PHASE, row]) in (Phase.STARTING, Phase.RUNNING) and not self.t.I[Job.LOCKED, row]

    def _past_minimum(self, row: int) -> bool:
        return bool(self.state.now >= self.t.F[Job.LAST_START, row] + self.state.min_run)

    def _keep_shares(self, holders: set[int]) -> None:
        """Shares that are not divided anew stay valid, as far as there are still devices behind them."""
        shares = [row for row, grant in self.grants.by_row.items() if grant.fluid]
        anew = {row for row in shares if row in holders and self.wanted[row].sound and (self.wanted[row].fluid or self._past_minimum(row))}
        self.fluid.begin(anew)
        for row in reversed(shares):
            if row not in anew and self.fluid.overdrawn():
                self.grants.stop(row, Reason.NODE_LOST)
                self.out[1] += 1

    def _give_up_one(self, w: Requested, change: Change) -> None:
        if change.manner is Manner.LEAVES and not self._past_minimum(w.row):
            return
        self.changes[w.row] = change
        if change.manner is not Manner.STAYS:
            self._part_with(w, change)
        elif not w.fluid:
            if w.shares:
                self.holdings.share(w.row)
            self._restyle(w, only_less=True)

    def _part_with(self, w: Requested, change: Change) -> None:
        row = w.row
        note_saves(self.state, row)
        settle(self.t.F, self.t.I, row, self.state.now)  # while it still counts as holding everything
        grant = self.grants.by_row.get(row)
        if grant is not None:
            self.grants.left |= self.grants.mates(row, grant)
        self.before[row] = (self.kinds[w.kind].give_back(row, grant), grant)  # shares are settled by what was granted
        self.grants.by_row.pop(row, None)
        if change.keep is not None:
            self.holdings.take(row, change.keep)

    # --- turns ----------------------------------------------------------------------------------------------------------
    def turn(self, w: Requested) -> None:
        """One row's turn."""
        change = self.changes.get(w.row)
        if w.row in self.had_turn or (change is None and self.t.I[Job.PHASE, w.row] != Phase.PENDING):
            return  # with its group; or locked, in flight, within its minimum run, or meaningless: it stays as it was
        if w.row in self.whole:
            self._turn_together(self.whole[w.row])
        elif not w.sound:
            self._refuse(w, Reason.INFEASIBLE)
        elif w.fluid:
            self._turn_of_share(w)
        elif change is not None and change.manner is Manner.STAYS:
            self._adjust(w)
        else:
            self._place(w, change)

    def _place(self, w: Requested, change: Change | None) -> None:
        """Give the row its new place, or refuse it."""
        found = self._find(w, change)
        if isinstance(found, Reason):
            self._refuse(w, found)
        else:
            self._begin(w, found)

    def _find(self, w: Requested, change: Change | None) -> Placed | Reason:
        """Its new place, which is free; or why there is none."""
        found = self.kinds[w.kind].fits(w, change)
        if isinstance(found, Reason):
            return found
        home = self.before[w.row][0] if change is not None else None
        if change is not None and change.keep is not None:
            self.holdings.give_back(w.row)
            self.changes[w.row] = replace(change, keep=None)
        if not self._free(found.holding, w.company, home):
            return Reason.RESOURCES
        if short := self.memory.lacking(w.row, found.holding.devices):
            self.grants.short_of_memory[w.row] = short
            return Reason.DEVICE_MEMORY
        return found

    def _turn_together(self, members: list[Requested]) -> None:
        """Every member that is not in place yet gets one, or none of them does."""
        self.had_turn.update(w.row for w in members)
        staying = [w for w in members if w.row in self.changes and self.changes[w.row].manner is Manner.STAYS]
        joining = [w for w in members if w not in staying]
        found: list[Placed] = []
        why, pool = Reason.TOGETHER, self.pools.of(members[0])
        for w in joining:
            change = self.changes.get(w.row)
            bound = change is None and self.t.I[Job.PHASE, w.row] != Phase.PENDING
            place = Reason.TOGETHER if bound else self._find(w, change) if w.sound else Reason.INFEASIBLE
            if isinstance(place, Reason):
                why = place
                break
            self.holdings.take(w.row, place.holding)  # so that the next one finds another
            self.pools.add(w, place.holding.devices)
            found.append(place)
        for w, _ in zip(joining, found):
            self.holdings.give_back(w.row)
        for w in staying:
            self._adjust(w)
        if len(found) == len(joining):
            for w, place in zip(joining, found):
                self._begin(w, place)
            return
        self.pools.restore(members[0], pool)
        for number, w in enumerate(joining):
            if w.row in self.changes or self.t.I[Job.PHASE, w.row] == Phase.PENDING:
                self._refuse(w, why if number == len(found) else Reason.TOGETHER)

    def _begin(self, w: Requested, found: Placed) -> None:
        """The row takes a place that is free."""
        change = self.changes.get(w.row)
        home = self.before[w.row][0] if change is not None else None
        if w.item.rotation >= 0 and w.row in self.state.tables.waits_for_turn:
            self.transitions.turns.add(w.row)
            self.state.tables.waits_for_turn.discard(w.row)
        if change is None or home is None:
            self.transitions.start(w.row, found.holding)
            self.out[0] += 1
        elif change.manner is Manner.KEEPS and not found.moved:
            self.transitions.go_on(w.row, home, found.holding)
        else:
            self._start_elsewhere(w.row, found.holding)
        if w.shares:
            self.pools.add(w, found.holding.devices)
        self._record(w, found.holding, found.workers)

    def _free(self, target: Holding, company: frozenset[int], home: Holding | None) -> bool:
        """Whether a place is free, and is not promised to shares of the time."""
        if not self.fluid.used.any():
            return self.holdings.fits(target, company, home)
        fresh: dict[int, int] = {}
        for device in target.devices:
            if self.t.D[Device.HOLDER, device] == FREE:
                kind = int(self.t.NI[Node.TYPE, self.t.D[Device.NODE, device]])
                fresh[kind] = fresh.get(kind, 0) + 1
        return self.holdings.fits(target, company, home) and all(count <= self.fluid.room(kind) + 1e-6 for kind, count in fresh.items())

    def _start_elsewhere(self, row: int, target: Holding) -> None:
        self.transitions.start_elsewhere(row, self.before[row][0], target)
        self.out[0] += 1
        self.out[1] += 1

    def _turn_of_share(self, w: Requested) -> None:
        """A row that gets a share of the time on each of several types."""
        given, row, stays = self.fluid.give(w.row, w.items, w.members, w.options), w.row, w.row in self.changes and w.row not in self.before
        if given is None:
            self._refuse(w, Reason.RESOURCES)
            if stays:
                self.grants.stop(row, Reason.RESOURCES)
                self.out[1] += 1
            return
        if row in self.before:
            self._start_elsewhere(row, Holding(w.option))
        elif not stays:
            self.transitions.start(row, Holding(w.option))
            self.out[0] += 1
        self.t.I[Job.OPTION, row] = w.option
        self.grants.by_row[row] = Grant(w.items, w.members, fluid=given)
        self._done(w)
        if not stays:
            self.fluid.start(row)

    def _adjust(self, w: Requested) -> None:
        """Change in place what needs no restart: CPUs, batch, lease, fraction, offset, and whether it shares."""
        whole, shared = self._restyle(w, only_less=False), self.holdings.shares(w.row)
        if short := self.memory.lacking(w.row, self.holdings.of(w.row).devices):
            w, whole = self._keep_cap(w, short), False
        if not w.shares and shared:
            self.holdings.own(w.row)
        held, grant = self.holdings.of(w.row), self.grants.by_row.get(w.row)
        if not (whole or shared):
            return  # as if the plan had not named it
        self._record(w, held, grant.workers if grant is not None and w.item.parts else ())
        if not whole:
            self.granted.discard(w.row)
            self.in_part.add(w.row)

    def _keep_cap(self, w: Requested, short: str) -> Requested:
        """Its cap would exceed what is left on its devices: it goes on with the memory that it has."""
        grant = self.grants.by_row.get(w.row)
        self.grants.short_of_memory[w.row] = short
        self.t.I[Job.REASON, w.row] = int(Reason.DEVICE_MEMORY)
        return replace(w, items=(replace(w.item, memory_cap=math.inf if grant is None else grant.assignment.memory_cap),))

    def _restyle(self, w: Requested, only_less: bool) -> bool:
        """Another option on the same devices: CPUs and memory change without a restart, if every node has them (Synergy)."""
        if self.t.I[Job.OPTION, w.row] == w.option or w.item.parts:
            return True
        held = self.holdings.of(w.row)
        fresh = Holding(w.option, held.devices, shared=held.shared) if held.node < 0 else held._replace(option=w.option)
        now, then = self.holdings.demand(held), self.holdings.demand(fresh)
        less = all(amount <= now.get(node, NOTHING)[k] for node, pair in then.items() for k, amount in enumerate(pair))
        if only_less and not less:
            return True
        self.holdings.give_back(w.row)
        fits = self.holdings.fits(fresh, w.company, held)
        self.holdings.take(w.row, fresh if fits else held)
        if not fits:
            self.t.I[Job.REASON, w.row] = int(Reason.RESOURCES)
        return fits

    def _record(self, w: Requested, held: Holding, workers: tuple[Worker, ...]) -> None:
        """Keep what is special about the grant, for speeds, mates and policies."""
        old = self.grants.by_row.pop(w.row, None)
        if old is not None:
            self.grants.left |= self.grants.mates(w.row, old)
        if held.shared or held.side or workers or not is_plain(w.item):
            self.grants.by_row[w.row] = Grant(w.items, w.members, held.devices, held.shared, workers, self.holdings.side(held))
        self._done(w)

    def _done(self, w: Requested) -> None:
        end = float(self.t.F[Job.LAST_START, w.row]) + w.item.limit
        self.t.F[Job.LIMIT_END, w.row], self.t.F[Job.UNTIL, w.row] = end, min(w.item.until, end)
        self.touched.add(w.row)
        self.granted.add(w.row)

    # --- refusals -------------------------------------------------------------------------------------------------------
    def _refuse(self, w: Requested, reason: Reason) -> None:
        """The row gets nothing of this; what others gave up for it goes back to them if it is still free."""
        row, t = w.row, self.t
        t.I[Job.REASON, row] = int(reason)
        if row not in self.before:
            return
        if self.changes[row].keep is not None:
            self.holdings.give_back(row)
        old, grant = self.before[row]
        company = w.company | self._company_before(grant)
        if not (grant is not None and grant.fluid) and self._free(old, company, old):
            self.holdings.take(row, old)
            if grant is not None:
                self.grants.by_row[row] = grant
            self.touched.add(row)
            return
        halt(t.F, t.I, row, self.state.now, int(reason), self.state.log.columns)
        self.out[1] += 1

    def _company_before(self, grant: Grant | None) -> frozenset[int]:
        """The rows that could be on its devices by their last grants."""
        return frozenset(self.teams.get(grant.members[0], ())) if grant is not None and grant.shared else frozenset()


def _starting_whole(wanted: dict[int, Requested]) -> dict[int, list[Requested]]:
    """By row: the members of its group, where these start together or not at all."""
    groups: dict[int, list[Requested]] = {}
    for w in wanted.values():
        if w.item.together and w.item.group >= 0 and not w.fluid:
            groups.setdefault(w.item.group, []).append(w)
    return {w.row: members for members in groups.values() for w in members}


def is_plain(item: Assignment) -> bool:
    """Whether a grant says nothing beyond what the option in use and the lease say."""
    placed = item.devices or item.nodes or item.parts or item.within
    special = item.group >= 0 or item.mode or item.fraction != 1.0 or item.offset or item.batch or item.accumulation != 1
    shared = item.share != 1.0 or item.size or item.turns >= 0
    limited = item.memory_cap != math.inf or item.limit != math.inf or item.purpose != "train"
    return not (placed or special or shared or limited) and all(map(math.isnan, amounts_beside(item)))
