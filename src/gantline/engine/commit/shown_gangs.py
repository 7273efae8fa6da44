"""What is known of gangs when their speeds are asked for: what their options say, what they share with which, and what models are shown.

Grants that were committed as columns are shown as columns. Where some row has parts or shares of the time, all grants are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Device, Job, Node, Option, moving
from gantline.core.grant import Grant, Granted
from gantline.core.phases import RUNNING, STARTING
from gantline.core.plan import ASSIGNMENT_DEFAULTS
from gantline.engine.commit.divided_speeds import SPEEDS, WhatDivides, list_around, read_divided_speeds, set_divided_speeds
from gantline.engine.commit.granted import GrantedColumns
from gantline.engine.holdings import Holdings
from gantline.engine.shared_devices import GANG_FIRST, count_company, list_company
from gantline.engine.state import State
from gantline.models.gangs import DeviceSharers, SharingColumns
from gantline.models.model import Gangs

_NOT_COUNTED: Ints = np.zeros(0, dtype=np.int64)


class HeldPieces(NamedTuple):
    """What some rows hold, one entry per gang: a row with shares of the time on several types has one per type."""

    owner: Ints | None  # the place of its row among those asked about; None: as they stand
    option: Ints
    alone: Floats  # work per second by its option
    divided: Floats  # the same by its part of what it shares
    grants: Sequence[Grant | None]
    columns: SharingColumns


class ShownGangs:
    """Reads gangs from the tables and holdings."""

    def __init__(self, state: State, holdings: Holdings, granted: GrantedColumns, fluid_in_use: Callable[[], bool]) -> None:
        self.state, self.holdings, self.granted, self._fluid_in_use = state, holdings, granted, fluid_in_use
        self._divides: WhatDivides | None = None
        self._slots: Ints = np.zeros(0, dtype=np.int64)  # room for groups

    def as_columns(self) -> bool:
        """Whether columns say everything about all grants: none has parts, a share of the time, or came with the tables."""
        if self.holdings.with_parts or self._fluid_in_use():
            return False
        return self.granted.describes(self.state.tables.granted.rows())

    def holding(self, rows: Ints) -> Ints:
        """Those of the rows that hold something."""
        phase = self.state.tables.I[Job.PHASE][rows]
        return np.asarray(rows[(phase == RUNNING) | (phase == STARTING)])

    def around(self, rows: Ints) -> Ints:
        """Those that hold something of the rows and the others of their groups or on their devices, in rising order."""
        granted = self.state.tables.granted
        if not granted:
            return self.holding(rows)
        if not self.as_columns():
            return self.holding(self._with_mates(rows))
        room, by = 1 << (2 * len(rows) + 1).bit_length(), self._what_divides()
        if len(self._slots) < room:
            self._slots = np.zeros(room, dtype=np.int64)
        among = granted.rows() if self.state.tables.performance is not None else granted.rows()[:0]
        count = list_around(self.state.matrices, self.holdings.seats(), by, self.granted.columns.team, rows, among, self._slots)
        return by.near[:count].copy()

    def _with_mates(self, rows: Ints) -> Ints:
        """The rows and the others of their groups or on their devices, in rising order; just the rows where none shares."""
        granted = self.state.tables.granted
        grants = {row: granted[row] for row in rows.tolist() if row in granted}
        groups = {members for grant in grants.values() for members in grant.members if members}
        mates = {mate for members in groups for mate in members if mate in granted}
        mates.update(mate for row, grant in grants.items() if grant.shares_openly for mate in self.holdings.beside(row))
        mates.difference_update(rows.tolist())
        return np.sort(np.concatenate([rows, np.array(sorted(mates), dtype=np.int64)])) if mates else rows

    def set_divided(self, rows: Ints) -> bool:
        """Set the speeds of these rows and of those beside them, where no model is asked; False: this is to be done one by one."""
        if self.holdings.with_parts or self._fluid_in_use():
            return False
        return set_divided_speeds(self.state.matrices, self.holdings.seats(), self._what_divides(), rows, self.state.now)

    def _what_divides(self) -> WhatDivides:
        """What was granted, as kernels take it."""
        t, by = self.state.tables, self._divides
        special, known = t.granted.here(t.F.shape[1]), self.granted.columns
        changes = _NOT_COUNTED if t.rate_changes is None else t.rate_changes
        if (
            by is None
            or by.special is not special
            or by.number is not known.number
            or by.noted is not known.noted
            or by.changes is not changes
        ):
            marks, near = np.zeros((2, t.F.shape[1]), dtype=np.int64)
            by = self._divides = WhatDivides(special, known.number, known.noted, changes, marks, near)
        return by

    def pieces(self, rows: Ints) -> HeldPieces:
        """What these rows hold."""
        t, granted = self.state.tables, self.state.tables.granted
        option = t.I[Job.OPTION][rows]
        if self.as_columns():
            alone, divided = np.zeros((2, len(rows)))
            read_divided_speeds(self.state.matrices, self.holdings.seats(), self._what_divides(), rows, alone, divided)
            return HeldPieces(None, option, alone, divided, MadeWhenRead(granted, rows), ColumnsOfPlans(self, rows))
        alone = self.by_options(rows)
        grants, divided, shares = [granted.get(row) for row in rows.tolist()], alone.copy(), []
        for at, grant in enumerate(grants):
            if grant is not None and grant.fluid:
                shares.append(at)
            elif grant is not None:
                divided[at] = self._divided(int(rows[at]), grant, float(alone[at]))
        if shares:
            return self._by_type(rows, shares, option, alone, divided, grants)
        return HeldPieces(None, option, alone, divided, grants, ColumnsOfGrants(self, rows, grants))

    def _divided(self, row: int, grant: Grant, alone: float) -> float:
        return SPEEDS[grant.kind](grant, {mate: self.state.tables.granted[mate] for mate in self.mates(row, grant)}, alone)

    def _by_type(
        self, rows: Ints, shares: list[int], option: Ints, alone: Floats, divided: Floats, grants: list[Grant | None]
    ) -> HeldPieces:
        """The rows at `shares` have shares of the time: one gang per type, the further ones after all rows."""
        owners, options, whole, speeds = list(range(len(rows))), option.tolist(), alone.tolist(), divided.tolist()
        for at in shares:
            grant, row = grants[at], int(rows[at])
            assert grant is not None
            for number, (item, members, given) in enumerate(zip(grant.items, grant.members, grant.fluid)):
                piece = replace(grant, items=(item,), members=(members,), fluid=(given,))
                rate = float(self.state.tables.options.F[Option.RATE, given[0]])
                speed = self._divided(row, piece, rate)
                if number == 0:
                    grants[at], whole[at], speeds[at], options[at] = piece, rate, speed, given[0]
                else:
                    grants.append(piece)
                    whole.append(rate)
                    speeds.append(speed)
                    options.append(given[0])
                    owners.append(at)
        owner = np.array(owners)
        columns = ColumnsOfGrants(self, rows[owner], grants)
        return HeldPieces(owner, np.array(options), np.array(whole), np.array(speeds), grants, columns)

    def shown(self, rows: Ints, pieces: HeldPieces) -> Gangs:
        """What a model is shown of these rows."""
        state, t, option = self.state, self.state.tables, pieces.option
        owners = rows if pieces.owner is None else rows[pieces.owner]
        held = (t.options.I[Option.TYPE][option], t.options.I[Option.GPUS][option], t.I[Job.SPREAD][owners])
        moves = (moving(t.F, t.I, owners, state.now, Job.DONE), np.maximum(t.F[Job.SINCE][owners], state.now))
        return Gangs(
            *(state.now, state.learned, t.cluster, owners, *held, *moves, pieces.alone, pieces.divided, pieces.grants),
            _columns=pieces.columns,
            _metric=t.lent.metric,
            _name=self._name,
            _grant=t.granted.get,
            _devices=t.lent.devices,
            _everyone=lambda: self.gangs(self.holding(state.rows)),
        )

    def gangs(self, rows: Ints) -> Gangs:
        """The same, of whatever they hold."""
        return self.shown(rows, self.pieces(rows))

    def _name(self, row: int) -> tuple[str, str]:
        t = self.state.tables
        return t.ids[row], t.models[t.I[Job.MODEL, row]]

    def mates(self, row: int, grant: Grant) -> list[int]:
        """The gangs on a device of its own; where it shares none but is in a group, the others of the group."""
        granted, near = self.state.tables.granted, self.holdings.beside(row) if grant.shared else grant.members[0]
        return [mate for mate in sorted(near) if mate != row and mate in granted]

    def by_options(self, rows: Ints) -> Floats:
        """Work per second of the options in use, by whether gangs sit on as few nodes as they can."""
        t = self.state.tables
        option, spread = t.I[Job.OPTION][rows], t.I[Job.SPREAD][rows]
        rate: Floats = t.options.F[Option.RATE][option]
        for at in np.flatnonzero(spread > 1).tolist():
            size = int(t.NI[Node.GPUS, t.D[Device.NODE, self.holdings.first_device(int(rows[at]))]])
            if spread[at] > -(-int(t.I[Job.HELD, rows[at]]) // size):
                rate[at] = t.options.F[Option.RATE_SPREAD, option[at]]
        return rate


class MadeWhenRead(Sequence[Grant | None]):
    """The grants of some rows."""

    def __init__(self, granted: Granted, rows: Ints) -> None:
        self._granted, self._rows = granted, rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Grant | None: ...
    @overload
    def __getitem__(self, at: slice) -> list[Grant | None]: ...
    def __getitem__(self, at: int | slice) -> Grant | list[Grant | None] | None:
        found = self._rows[at]
        return [self._granted.get(row) for row in found.tolist()] if isinstance(at, slice) else self._granted.get(int(found))

    def __iter__(self) -> Iterator[Grant | None]:
        return map(self._granted.get, self._rows.tolist())


class ColumnsOfPlans(SharingColumns):
    """What some rows were granted, from the columns that plans are compared with."""

    def __init__(self, gangs: ShownGangs, rows: Ints) -> None:
        self._gangs, self._rows = gangs, rows
        self.special = gangs.state.tables.granted.has(rows)
        self.shared = gangs.holdings.seats().gang[GANG_FIRST][rows] >= 0

    def asked(self, name: str) -> Floats:
        found = self._gangs.granted.values(name, self._rows)
        return np.where(self.special, found, np.full(len(found), ASSIGNMENT_DEFAULTS[name]))

    def asked_by(self, name: str, rows: Ints) -> Floats:
        return np.asarray(self._gangs.granted.values(name, rows), dtype=np.float64)

    @cached_property
    def group(self) -> Ints:
        team, numbers = np.where(self.special, self._gangs.granted.values("team", self._rows), 0), dict[int, int]()
        return np.array([numbers.setdefault(each, len(numbers)) if each else -1 for each in team.tolist()], dtype=np.int64)

    @cached_property
    def sharers(self) -> DeviceSharers:
        seats, sizes = self._gangs.holdings.seats(), np.zeros(2, dtype=np.int64)
        count_company(seats, self._rows, sizes)
        places, entries = np.zeros((2, sizes[0]), dtype=np.int64), np.zeros((2, sizes[1]), dtype=np.int64)
        list_company(seats, self._rows, places, entries)
        return DeviceSharers(*places, *entries)

    @cached_property
    def _entries(self) -> tuple[Ints, list[int]]:
        """Where the entries of each gang begin, and the rows of all."""
        sharers = self.sharers
        return np.searchsorted(sharers.crowded, np.arange(len(self._rows) + 1)), sharers.row.tolist()

    def mates(self, at: int) -> list[int]:
        if not self.shared[at]:
            row = int(self._rows[at])
            return self._gangs.mates(row, self._gangs.state.tables.granted[row])
        first, rows = self._entries
        return sorted(set(rows[first[at] : first[at + 1]]))


class ColumnsOfGrants(SharingColumns):
    """The same, read from the grants one by one."""

    def __init__(self, gangs: ShownGangs, rows: Ints, grants: Sequence[Grant | None]) -> None:
        self._gangs, self._rows, self._grants = gangs, rows, grants
        self.special: Bools = np.array([grant is not None for grant in grants], dtype=np.bool_)
        self.shared: Bools = np.array([grant is not None and grant.shared for grant in grants], dtype=np.bool_)

    @cached_property
    def group(self) -> Ints:
        numbers: dict[frozenset[int], int] = {}
        named = (grant.members[0] if grant is not None else frozenset[int]() for grant in self._grants)
        return np.array([numbers.setdefault(each, len(numbers)) if each else -1 for each in named], dtype=np.int64)

    def asked(self, name: str) -> Floats:
        return _asked(name, self._grants)

    def asked_by(self, name: str, rows: Ints) -> Floats:
        return _asked(name, [self._gangs.state.tables.granted.get(row) for row in rows.tolist()])

    @cached_property
    def sharers(self) -> DeviceSharers:
        holdings, places, entries = self._gangs.holdings, list[tuple[int, int]](), list[tuple[int, int]]()
        for at in np.flatnonzero(self.shared).tolist():
            row = int(self._rows[at])
            for device in holdings.of(row).devices:
                entries += [(len(places), other) for other in sorted(holdings.tenants(device)) if other != row]
                places.append((at, device))
        return DeviceSharers(*np.array(places, dtype=np.int64).reshape(-1, 2).T, *np.array(entries, dtype=np.int64).reshape(-1, 2).T)

    def mates(self, at: int) -> list[int]:
        grant = self._grants[at]
        return [] if grant is None else self._gangs.mates(int(self._rows[at]), grant)


def _asked(name: str, grants: Sequence[Grant | None]) -> Floats:
    default = ASSIGNMENT_DEFAULTS[name]
    return np.array([default if grant is None else getattr(grant.assignment, name) for grant in grants], dtype=np.float64)
