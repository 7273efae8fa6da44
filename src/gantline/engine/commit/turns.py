"""What a plan wants for each row that changes, read and checked before anything is touched: turns, in the order of the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import ASKED_TOGETHER, HOST_RESOURCE_NAMES, Device, Job, Node, Option
from gantline.core.grant import Worker
from gantline.core.host_resources import amounts_beside
from gantline.core.phases import PENDING
from gantline.core.plan import TRIAL, Assignment, Assignments, Mode
from gantline.core.tables import Tables
from gantline.engine.commit.request import MODE, RAW, TOGETHER, PlanRequest, divides_time, filled
from gantline.engine.holdings import HOLDS_NOTHING, Holding
from gantline.engine.option_rows import IMPOSSIBLE, OptionRows

#: levels that `within` may name
LEVELS = ("node", "rack", "pool")


class GrantForm(Enum):
    """Forms of grants."""

    PLACED = auto()  # devices of its own that the engine chooses
    NAMED = auto()  # devices that the plan names
    JOINS = auto()  # devices of its group that the engine chooses
    PARTS = auto()  # workers of several roles
    TIME = auto()  # so much of the time on each of several types, and no device in particular


class Course(Enum):
    """What becomes of what a row holds."""

    WAITS = auto()  # it holds nothing
    STAYS = auto()  # it keeps its devices
    KEEPS = auto()  # it keeps some of its devices in place
    LEAVES = auto()  # it gives up all of them
    BOUND = auto()  # it would have to leave within its minimum run, or the plan asks for what cannot be: it stays as it was


@dataclass(slots=True, eq=False)
class GangTurn:
    """One row's turn."""

    row: int
    place: int  # in the plan
    option: int  # below zero: the plan asks for what cannot be
    form: GrantForm
    course: Course
    shares: bool  # whether others may hold its devices too
    partners: frozenset[int]  # rows that may be on its devices beside it, itself included
    whole: int  # the group with which it starts whole or not at all; below zero: none
    trial: bool
    plain: bool  # whether it says nothing beyond an option and a lease
    named: tuple[int, ...]  # devices
    items: tuple[Assignment, ...] = ()  # where its places are restricted, it has parts, or shares of time on several types
    options: tuple[int, ...] = ()  # of each
    members: tuple[frozenset[int], ...] = ()  # rows of the group of each
    had: Holding = HOLDS_NOTHING  # before anything changes
    kept: Holding | None = None  # what it holds on to until its turn comes
    workers: tuple[Worker, ...] = ()  # of a grant with parts: those that it gets
    done: bool = False  # its turn came with that of its group

    @property
    def item(self) -> Assignment | None:
        """What restricts its places, if anything does."""
        return self.items[0] if self.items else None


def read_turns(
    tables: Tables, options: OptionRows, rows: Ints, table: Assignments, asked: PlanRequest, places: Ints, open_rows: Iterable[int]
) -> list[GangTurn]:
    """The turns of the assignments at these places; `open_rows` share without a group by a plan that is still in force for them."""
    t, at, by_row = tables, places.tolist(), copy(table)
    by_row.job = rows
    listed: dict[int, list[int]] = {}
    for n, row in enumerate(rows[places].tolist()):
        listed.setdefault(row, []).append(n)
    option, sound = asked.option[places].tolist(), sound_numbers(table)[places].tolist()
    group, mode = asked.group[places].tolist(), asked.number[MODE, places].tolist()
    share, whole = table.column("share")[places].tolist(), asked.number[TOGETHER, places].tolist()
    waits, needs = (t.I[Job.PHASE][rows[places]] == PENDING).tolist(), t.options.I[Option.GPUS][asked.option[places]].tolist()
    plain = asked.plain[places].tolist()
    named, parts, purpose = (_entries(table, name, at) for name in ("devices", "parts", "purpose"))
    elsewhere, sized = filled(table, "nodes", "within")[places].tolist(), np.zeros(len(table), dtype=np.bool_)
    for name in ("size", "span"):
        sized |= table.column(name) > 0
    sized, says_more = sized[places].tolist(), any(map(table.has, RAW))
    claims = Counter((group[n], device) for n, devices in enumerate(named) for device in devices if group[n] >= 0)
    groups, everyone = _members(rows, table), frozenset(rows[_shares_openly(rows, table)].tolist()).union(open_rows)
    turns = []
    for row, mine in listed.items():
        n = mine[0]
        grouped, devices = group[n] >= 0, named[n]
        if grouped:
            on_links = mode[n] == Mode.INTERLEAVE and bool(devices) and all(claims[group[n], device] == 1 for device in devices)
            shares = mode[n] != Mode.EXCLUSIVE and not on_links
        else:
            shares = mode[n] == Mode.SPACE and bool(devices)
        turn = GangTurn(
            row,
            at[n],
            option[n] if sound[n] else IMPOSSIBLE,
            GrantForm.PLACED,
            Course.WAITS if waits[n] else Course.BOUND,
            shares,
            frozenset(),
            group[n] if grouped and whole[n] == 1.0 else -1,
            purpose[n] == TRIAL,
            plain[n],
            devices,
        )
        if parts[n] or elsewhere[n] or sized[n] or len(mine) > 1:
            turn.items = tuple(by_row[at[k]] for k in mine)
        if len(mine) > 1 or (share[n] < 1.0 and mode[n] in (Mode.EXCLUSIVE, Mode.SPACE)):
            turn.form, turn.shares, turn.whole = GrantForm.TIME, False, -1
            turn.items = tuple(by_row[at[k]] for k in mine)
            turn.options = tuple(option[k] if sound[k] else IMPOSSIBLE for k in mine)
            if IMPOSSIBLE in turn.options or not _divide_time(turn.items):
                turn.option = IMPOSSIBLE
        elif parts[n]:
            turn.form = GrantForm.PARTS
            turn.option = _option_of_parts(t, options, row, turn.items[0]) if sound[n] and not shares else IMPOSSIBLE
        elif devices:
            turn.form = GrantForm.NAMED
            if sound[n]:
                turn.option = exact_option(t, options, row, devices, by_row[at[n]] if says_more else None)
        elif shares and not (turn.option >= 0 and needs[n] == 0):
            turn.form = GrantForm.JOINS
        else:
            turn.shares = False  # it has no device that it could share
        if turn.items:
            turn.members = tuple(groups.get(item.group, frozenset()) for item in turn.items)
            if elsewhere[n] and not _places_exist(t, turn.items[0]):
                turn.option = IMPOSSIBLE
        if turn.shares:
            turn.partners = groups[group[n]] if grouped else everyone
        turns.append(turn)
    return turns


def _entries(table: Assignments, name: str, at: list[int]) -> list[Any]:
    if not table.has(name):
        return [()] * len(at)
    entries = table.entries(name)
    return [entries[k] for k in at]


def _members(rows: Ints, table: Assignments) -> dict[int, frozenset[int]]:
    """The rows of each group, those that keep what they have included."""
    if not table.has("group"):
        return {}
    found: dict[int, set[int]] = {}
    for row, group in zip(rows.tolist(), table.column("group").tolist()):
        if group >= 0:
            found.setdefault(group, set()).add(row)
    return {group: frozenset(members) for group, members in found.items()}


def _shares_openly(rows: Ints, table: Assignments) -> Bools:
    """Which assignments share the devices that they name with all others that do the same, without a group."""
    if not (table.has("devices") and table.has("mode")):
        return np.zeros(len(rows), dtype=np.bool_)
    apart = (table.column("mode") == int(Mode.SPACE)) & (table.column("group") < 0) & ~divides_time(rows, table)
    return np.asarray(filled(table, "devices") & apart)


def exact_option(t: Tables, options: OptionRows, row: int, devices: Sequence[int], item: Assignment | None = None) -> int:
    """The option of a row that has just these devices, of one type, and what else the assignment says."""
    if not all(0 <= d < t.D.shape[1] for d in devices) or len(set(devices)) < len(devices):
        return IMPOSSIBLE
    nodes = t.D[Device.NODE][list(devices)].tolist()
    there = {int(t.NI[Node.TYPE, node]) for node in dict.fromkeys(nodes)}
    if len(there) > 1:
        return IMPOSSIBLE
    size, kind, spans = len(devices), there.pop(), len(set(nodes))
    if item is None:
        found = options.find(row, -1, size, kind)
    elif item.type not in (-1, kind) or item.gpus not in (-1, size) or item.span not in (0, spans):
        return IMPOSSIBLE
    else:
        found = options.find(row, item.option, size, kind, amounts_beside(item))
    torn = found != IMPOSSIBLE and t.options.I[Option.NODES, found] == 1 < spans and t.I[Job.CONSOLIDATE, row] == ASKED_TOGETHER
    return IMPOSSIBLE if torn else found


def _option_of_parts(t: Tables, options: OptionRows, row: int, item: Assignment) -> int:
    """The option of a row whose parts mean something: they say what it takes beside its devices."""
    if item.devices or item.nodes or item.span or len({part.role for part in item.parts}) < len(item.parts):
        return IMPOSSIBLE
    for part in item.parts:
        whole = part.count >= 0 and part.gpus >= 0 and min(amounts_beside(part)) >= 0.0
        known = 0 <= part.type < len(t.cluster.types) and all(0 <= node < t.NI.shape[1] for node in part.nodes)
        exact = len(part.devices) in (0, part.count * part.gpus) and all(0 <= d < t.D.shape[1] for d in part.devices)
        if not (whole and known and exact):
            return IMPOSSIBLE
    if sum(part.count for part in item.parts) == 0:
        return IMPOSSIBLE
    kinds = [part.type for part in item.parts if part.gpus and part.count] or [part.type for part in item.parts]
    return options.bare(row, item.option, kinds[0], sum(part.count * part.gpus for part in item.parts))


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


def _places_exist(t: Tables, item: Assignment) -> bool:
    return item.within in ("", *LEVELS) and all(0 <= node < t.NI.shape[1] for node in item.nodes)


def _divide_time(items: Sequence[Assignment]) -> bool:
    """Whether a row's shares of time go together: they name no place, and make one whole at most."""
    placed = any(item.devices or item.nodes or item.span or item.parts or item.within for item in items)
    divisible = all(item.mode in (Mode.EXCLUSIVE, Mode.SPACE) for item in items)
    return divisible and not placed and bool(np.sum([item.share for item in items]) <= 1.0 + 1e-6)
