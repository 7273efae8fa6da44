"""What is known of gangs when their speeds are asked for: what their options say, what they share with which, and what models are shown.

Grants are shown as the columns in which plans are compared with them; only shares of the time are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, NamedTuple, overload

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Device, Job, Node, Option, moving
from gantline.core.grant import Grant, Granted
from gantline.core.jit import kernel
from gantline.core.phases import RUNNING, STARTING
from gantline.core.plan import ASSIGNMENT_DEFAULTS, Mode
from gantline.core.tables import Matrices
from gantline.engine.commit.request import LINES, GrantedColumns
from gantline.engine.holdings import Holdings
from gantline.engine.shared_devices import GANG_FIRST, STAKE_DEVICE, SharedDevices, count_beside, crowd_of, list_beside
from gantline.engine.state import State
from gantline.models.gangs import DeviceSharers, SharingColumns
from gantline.models.model import Gangs

_MODE: Final = LINES["mode"]
_FRACTION: Final = LINES["fraction"]
_SHARE: Final = LINES["share"]
_SPACE: Final = int(Mode.SPACE)
_TIME: Final = int(Mode.TIME)


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

    def holding(self, rows: Ints) -> Ints:
        """Those of the rows that hold something."""
        phase = self.state.tables.I[Job.PHASE][rows]
        return np.asarray(rows[(phase == RUNNING) | (phase == STARTING)])

    def around(self, rows: Ints) -> Ints:
        """Those that hold something of the rows and the others of their groups or on their devices, in rising order."""
        granted, team = self.state.tables.granted, self.granted.columns.team
        if not granted:
            return self.holding(rows)
        found = [self.holdings.beside_any(rows)]
        if self._fluid_in_use():
            mates = (mate for row in rows.tolist() if row in granted for members in granted[row].members for mate in members)
            found.append(np.array([mate for mate in mates if mate in granted], dtype=np.int64))
        if self.state.tables.performance is not None:  # members of groups are shown together although some may share no device
            groups, everyone = team[rows[granted.has(rows)]], granted.rows()
            found.append(everyone[(team[everyone] != 0) & np.isin(team[everyone], groups)])
        return self.holding(np.unique(np.concatenate(found)))

    def pieces(self, rows: Ints) -> HeldPieces:
        """What these rows hold."""
        t, granted = self.state.tables, self.state.tables.granted
        option, (alone, divided) = t.I[Job.OPTION][rows], np.zeros((2, len(rows)))
        special, number = granted.here(t.F.shape[1]), self.granted.columns.number
        read_speeds(self.state.matrices, self.holdings.shared_devices(), special, number, rows, alone, divided)
        grants = MadeWhenRead(granted, rows)
        if self._fluid_in_use() and any(grant is not None and grant.fluid for grant in grants):
            return self._by_type(rows, option, alone, divided, list(grants))
        return HeldPieces(None, option, alone, divided, grants, GrantedTo(self, rows))

    def _by_type(self, rows: Ints, option: Ints, alone: Floats, divided: Floats, grants: list[Grant | None]) -> HeldPieces:
        """Some rows have shares of the time: one gang per type, the further ones after all rows."""
        granted, rates = self.state.tables.granted, self.state.tables.options.F[Option.RATE]
        found = list(zip(range(len(rows)), option.tolist(), alone.tolist(), divided.tolist(), grants))
        for at, grant in enumerate(grants):
            if grant is None or not grant.fluid:
                continue
            for number, (item, members, given) in enumerate(zip(grant.items, grant.members, grant.fluid)):
                piece, rate = replace(grant, items=(item,), members=(members,), fluid=(given,)), float(rates[given[0]])
                asked = [item.fraction, *(granted[mate].assignment.fraction for mate in self.mates(int(rows[at]), piece))]
                speed = rate * item.fraction / (max(1.0, asked[0] + sum(asked[1:])) if item.mode == Mode.SPACE else 1.0)
                if number == 0:
                    found[at] = (at, given[0], rate, speed, piece)
                else:
                    found.append((at, given[0], rate, speed, piece))
        owner, options, whole, speeds, pieces = (list(column) for column in zip(*found))
        columns = GrantedTo(self, rows[owner], pieces)
        return HeldPieces(np.array(owner), np.array(options), np.array(whole), np.array(speeds), pieces, columns)

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


class GrantedTo(SharingColumns):
    """What some rows were granted, from the columns that plans are compared with; where they have shares of the time, from the pieces."""

    def __init__(self, gangs: ShownGangs, rows: Ints, pieces: Sequence[Grant | None] | None = None) -> None:
        self._gangs, self._rows, self._pieces = gangs, rows, pieces
        self.special = gangs.state.tables.granted.has(rows)
        self.shared = gangs.holdings.sharing(rows)

    def asked(self, name: str) -> Floats:
        default = ASSIGNMENT_DEFAULTS[name]
        if self._pieces is not None:
            return np.array([default if piece is None else getattr(piece.assignment, name) for piece in self._pieces], dtype=np.float64)
        return np.where(self.special, self.asked_by(name, self._rows), np.full(len(self._rows), default))

    def asked_by(self, name: str, rows: Ints) -> Floats:
        return np.asarray(self._gangs.granted.columns.number[LINES[name]][rows])

    @cached_property
    def group(self) -> Ints:
        numbers: dict[object, int] = {}
        team = np.where(self.special, self._gangs.granted.columns.team[self._rows], 0).tolist()
        if self._pieces is not None:
            team = [None if piece is None else piece.members[0] for piece in self._pieces]
        return np.array([numbers.setdefault(each, len(numbers)) if each else -1 for each in team], dtype=np.int64)

    @cached_property
    def sharers(self) -> DeviceSharers:
        shared, sizes = self._gangs.holdings.shared_devices(), np.zeros(2, dtype=np.int64)
        count_beside(shared, self._rows, sizes)
        places, entries = np.zeros((2, sizes[0]), dtype=np.int64), np.zeros((2, sizes[1]), dtype=np.int64)
        list_beside(shared, self._rows, places, entries)
        return DeviceSharers(*places, *entries)

    def mates(self, at: int) -> list[int]:
        row, granted = int(self._rows[at]), self._gangs.state.tables.granted
        if self.shared[at]:
            return sorted(self._gangs.holdings.beside(row))
        grant = granted.get(row) if self._pieces is None else self._pieces[at]
        return [] if grant is None else self._gangs.mates(row, grant)


# How fast gangs go where no model says: by their options and their parts of the devices. Compiled.


@kernel
def read_speeds(t: Matrices, shared: SharedDevices, special: Bools, number: Floats, rows: Ints, alone: Floats, divided: Floats) -> None:
    """Work per second of these rows by their options, and by their parts of what they share; nothing is set."""
    for k in range(rows.shape[0]):
        alone[k], divided[k] = _alone(t, shared, rows[k]), _divided(t, shared, special, number, rows[k])


@kernel
def _divided(t: Matrices, shared: SharedDevices, special: Bools, number: Floats, row: int) -> float:
    """Work per second by its part of what it shares: in space by fractions, in time by shares; stages do not collide."""
    alone = _alone(t, shared, row)
    if not special[row]:
        return alone
    mode = number[_MODE, row]
    asked = number[_SHARE] if mode == _TIME else number[_FRACTION]
    crowd = max(1.0, crowd_of(shared, row, asked)) if mode == _TIME or mode == _SPACE else 1.0
    return float(alone * asked[row] / crowd)


@kernel
def _alone(t: Matrices, shared: SharedDevices, row: int) -> float:
    """Work per second by its option, by whether it sits on as few nodes as it can."""
    option, spread = t.I[Job.OPTION, row], t.I[Job.SPREAD, row]
    if spread > 1:
        stake = shared.gang[GANG_FIRST, row]
        first = shared.stake[STAKE_DEVICE, stake] if stake >= 0 else t.I[Job.HEAD, row]
        size = t.NI[Node.GPUS, t.D[Device.NODE, first]]
        if spread > (t.I[Job.HELD, row] + size - 1) // size:
            return float(t.OF[Option.RATE_SPREAD, option])
    return float(t.OF[Option.RATE, option])
