"""What a plan wants for each row that changes, read and checked before anything is touched."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import ASKED_TOGETHER, HOST_RESOURCE_NAMES, Device, Job, Node, Option
from gantline.core.host_resources import amounts_beside
from gantline.core.plan import Assignment, Assignments, Mode
from gantline.core.tables import Tables
from gantline.engine.option_rows import IMPOSSIBLE, OptionRows

#: levels that `within` may name
LEVELS = ("node", "rack", "pool")
_SHARING = (Mode.SPACE, Mode.TIME, Mode.INTERLEAVE)


@dataclass(frozen=True, slots=True)
class Requested:
    """One row's place in the plan. An option of -1 means that the plan asks for what cannot be."""

    row: int
    items: tuple[Assignment, ...]  # `job` is the row
    members: tuple[frozenset[int], ...]  # per item: rows of its group
    options: tuple[int, ...]  # per item
    kind: str  # see `gantline.engine.commit.kinds`
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
        if kind == "shared" and not items[0].parts and chosen[0] != IMPOSSIBLE and tables.options.I[Option.GPUS, chosen[0]] == 0:
            kind = "gang"  # it has no device that it could share, and takes the CPUs of a node
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


def divides_time(rows: Ints, table: Assignments) -> Bools:
    """Which assignments are shares of the time on no device in particular."""
    if not table.has("share"):
        return np.zeros(len(rows), dtype=np.bool_)
    mode = table.column("mode")
    part = (table.column("share") < 1.0) & ((mode == Mode.EXCLUSIVE) | (mode == Mode.SPACE))
    _, which, count = np.unique(rows, return_inverse=True, return_counts=True)
    return np.asarray(part | (count[which] > 1))


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


def exact_option(t: Tables, options: OptionRows, row: int, devices: Sequence[int], item: Assignment | None = None) -> int:
    """The option of a row that has just these devices, of one type, and what else the assignment says."""
    if not all(0 <= d < t.D.shape[1] for d in devices) or len(set(devices)) < len(devices):
        return IMPOSSIBLE
    there = {int(t.NI[Node.TYPE, t.D[Device.NODE, d]]) for d in devices}
    if len(there) > 1:
        return IMPOSSIBLE
    size, kind = len(devices), there.pop()
    spans = len({int(t.D[Device.NODE, d]) for d in devices})
    if item is None:
        found = options.find(row, -1, size, kind)
    elif item.type not in (-1, kind) or item.gpus not in (-1, size) or item.span not in (0, spans):
        return IMPOSSIBLE
    else:
        found = options.find(row, item.option, size, kind, amounts_beside(item))
    torn = found != IMPOSSIBLE and t.options.I[Option.NODES, found] == 1 < spans and t.I[Job.CONSOLIDATE, row] == ASKED_TOGETHER
    return IMPOSSIBLE if torn else found


def sound_numbers(table: Assignments) -> Bools:
    """Which assignments have numbers that can be meant at all, whatever the state."""
    good: Bools = np.ones(len(table), dtype=np.bool_)
    for name, least, open_end in (("fraction", 0.0, True), ("share", 0.0, True), ("limit", 0.0, True), ("memory_cap", 0.0, True),
                                  ("batch", 0, False), ("accumulation", 1, False), ("size", 0, False)):  # fmt: skip
        if table.has(name):
            column = table.column(name)
            good &= (column > least) if open_end else (column >= least)
    for name in ("fraction", "share"):
        if table.has(name):
            good &= table.column(name) <= 1.0
    for name in HOST_RESOURCE_NAMES:
        if table.has(name):
            good &= ~(table.column(name) < 0.0)
    if table.has("until"):
        good &= ~np.isnan(table.column("until"))
    return good & np.isfinite(table.column("offset")) if table.has("offset") else good


def _means_something(t: Tables, item: Assignment) -> bool:
    """The same for one, and whether it names places that exist."""
    nodes = range(t.NI.shape[1])
    numbers = 0.0 < item.fraction <= 1.0 and 0.0 < item.share <= 1.0 and item.limit > 0.0 and item.memory_cap > 0.0 and item.size >= 0
    times = not math.isnan(item.until) and math.isfinite(item.offset) and item.batch >= 0 and item.accumulation >= 1
    amounts = all(math.isnan(amount) or amount >= 0.0 for amount in amounts_beside(item))
    places = item.within in ("", *LEVELS) and all(node in nodes for node in item.nodes) and len(set(item.devices)) == len(item.devices)
    return numbers and times and amounts and places and _parts_mean_something(t, item)


def _parts_mean_something(t: Tables, item: Assignment) -> bool:
    if not item.parts:
        return True
    if item.devices or item.nodes or item.span or len({part.role for part in item.parts}) < len(item.parts):
        return False
    for part in item.parts:
        whole = part.count >= 0 and part.gpus >= 0 and min(amounts_beside(part)) >= 0.0
        known = 0 <= part.type < len(t.cluster.types) and all(0 <= node < t.NI.shape[1] for node in part.nodes)
        exact = len(part.devices) in (0, part.count * part.gpus) and all(0 <= d < t.D.shape[1] for d in part.devices)
        if not (whole and known and exact):
            return False
    return sum(part.count for part in item.parts) > 0


def _agree(items: Sequence[Assignment], kind: str) -> bool:
    """Whether a row's assignments go together: shares of time name no place and make one whole at most; a row with parts owns them."""
    if kind != "share of time":
        return not (kind == "shared" and items[0].parts)
    placed = any(item.devices or item.nodes or item.span or item.parts or item.within for item in items)
    divisible = all(item.mode in (Mode.EXCLUSIVE, Mode.SPACE) for item in items)
    return divisible and not placed and bool(np.sum([item.share for item in items]) <= 1.0 + 1e-6)
