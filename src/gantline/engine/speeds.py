"""How fast gangs go: by their options, by how their kind of grant divides devices, and by the performance model, which overrides both.

Speeds are due one by one: a row is asked about when it starts, when its grant or its group changes, and when its own speed
expires (`SPEED_UNTIL`). A gang that keeps what it has costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.gather import moving
from gantline.core.grant import Grant
from gantline.core.phases import RUNNING, STARTING
from gantline.core.plan import Mode
from gantline.engine.checkpoints import note_saves
from gantline.engine.gang import set_due, set_speeds
from gantline.engine.holdings import Holdings
from gantline.engine.in_force import InForce
from gantline.engine.kinds.speed import SPEEDS
from gantline.engine.shared_gang import crowds
from gantline.engine.state import State
from gantline.performance.model import Act, Gangs, check_model, overrides

_BLINK = 1e-3  # a model is not asked again sooner, so that rounding cannot make time stand still


def asks_about_gangs(model: Any) -> bool:
    """Whether a performance model must be asked about unshared gangs: for speeds, costs, or to inspect them."""
    return model is not None and (model.about_gangs or model.about_everyone or overrides(model, "cost") or overrides(model, "observe"))


class _Pieces(NamedTuple):
    """What some rows hold, one entry per gang: a row with shares of the time on several types has one per type."""

    owner: Ints | None  # the place of its row among those asked about; None: as they stand
    option: Ints
    alone: Floats  # work per second by its option
    divided: Floats  # the same by its part of what it shares
    grants: list[Grant | None]


class Speeds:
    """Asks for speeds and costs, and enters them."""

    def __init__(self, state: State, books: Holdings, force: InForce) -> None:
        self.state, self.books, self.force = state, books, force
        self.fluid_in_use = any(grant.fluid for grant in state.tables.granted.values())  # some row may have a share of the time
        self._asked: Floats = np.zeros((2, 0))  # by row: its fraction, and its share of the time
        check_model(state.tables.performance)

    @property
    def model(self) -> Any:
        return self.state.tables.performance

    @property
    def about_gangs(self) -> bool:
        """Whether the model must be asked about unshared gangs, by whichever code they start: for speeds, costs, or to inspect them."""
        return asks_about_gangs(self.model)

    @property
    def about_costs(self) -> bool:
        """Whether the model says what starts, moves and changes of size cost."""
        return overrides(self.model, "cost")

    @property
    def about_everyone(self) -> bool:
        """Whether all speeds may change when any gang starts or leaves."""
        return self.model is not None and bool(self.model.about_everyone)

    # --- when to ask ------------------------------------------------------------------------------------------------
    def soonest(self) -> float:
        """When the next speed changes by itself."""
        if self.model is None:
            return math.inf
        until = self.state.tables.F[c.SPEED_UNTIL][self.state.running_rows]
        return float(until.min()) if len(until) else math.inf

    def refresh_due(self) -> None:
        """Ask about rows with an expired speed."""
        rows = self.state.running_rows
        due = rows[self.state.tables.F[c.SPEED_UNTIL][rows] <= self.state.now]
        if len(due):
            self.refresh(due)

    def refresh_around(self, rows: Iterable[int]) -> None:
        """After these rows started or left: ask about them and their mates, or about all rows if each depends on all others."""
        if self.about_everyone:
            self.refresh(self.state.rows)
        else:
            self.refresh(np.array(sorted(rows), dtype=np.int64))

    def begun(self, before: Ints) -> None:
        """Gangs have started at this instant by a ranking: what they pay and how fast they go; `before` are the rows that ran until now."""
        F, rows, now = self.state.tables.F, self.state.running_rows, self.state.now
        started = rows[F[c.LAST_START][rows] == now]
        if not len(started):
            return
        acts = np.where(F[c.FIRST_START][started] == now, int(Act.START), int(Act.RESUME))
        acts[np.isin(started, before)] = int(Act.MOVE)
        self.pay(started, acts)
        self.refresh(rows if self.about_everyone else started)

    # --- asking -----------------------------------------------------------------------------------------------------
    def pay(self, rows: Ints, acts: Ints) -> None:
        """Costs as the model says, for each job and size; where it gives none, those already entered stay."""
        if not len(rows) or not self.about_costs:
            return
        gangs, owner = self._gangs(rows)
        places = np.arange(len(rows)) if owner is None else owner
        cost = self.model.cost(replace(gangs, act=np.asarray(acts, dtype=np.int64)[places]))
        if cost is None:
            return
        F, now, seen = self.state.tables.F, self.state.now, set()
        for at, seconds in zip(places.tolist(), np.asarray(cost, dtype=np.float64).tolist()):
            if math.isnan(seconds) or at in seen:
                continue
            if not seconds >= 0.0:
                raise UsageError(f"a cost of {seconds} s", where="performance model", fix="seconds from zero on, or NaN")
            seen.add(at)
            F[c.SINCE, rows[at]] = now + seconds
            set_due(F, int(rows[at]))

    def refresh(self, rows: Ints) -> None:
        """Bring the speeds of rows and their mates up to date, and with them when they are due; only those that hold something are asked
        about. So a model that is asked about one member of a group is shown all of them, and can compute what they have in common once.
        """
        now, model = self.state.now, self.model
        if model is None and self._refresh_in_bulk(rows):
            return
        rows = self._with_mates(rows)
        rows = self._holding(rows)
        if not len(rows):
            return
        pieces = self._pieces(rows)
        owner, speeds, grants = pieces.owner, pieces.divided, pieces.grants
        if model is None:
            until = np.full(len(speeds), math.inf)
        else:
            gangs = self._shown(rows, pieces)
            rate, end = model.rates(gangs)
            speeds, until = np.asarray(rate, dtype=np.float64), np.asarray(end, dtype=np.float64)
            if not (speeds.shape == until.shape == gangs.divided.shape) or (speeds < 0.0).any():
                raise UsageError("its rates are not one per gang from zero on", where="performance model", fix="see rates()")
            speeds = np.where(speeds == speeds, speeds, gangs.divided)
            until = np.maximum(until, now + _BLINK)
        if owner is not None:
            speeds, until = self._summed(grants, owner, speeds, until, len(rows))
        self._set(rows, speeds, until)

    def _set(self, rows: Ints, speeds: Floats, until: Floats) -> None:
        F, I = self.state.tables.F, self.state.tables.I
        saving = F[c.CHECKPOINT][rows]
        for row in rows[(saving > 0.0) & (F[c.RATE][rows] != speeds)].tolist() if saving.any() else ():
            note_saves(self.state, row)
        changes = self.state.tables.rate_changes
        if changes is not None:
            changes[rows[(F[c.RATE][rows] != speeds) & (F[c.LAST_START][rows] < self.state.now)]] += 1
        set_speeds(F, I, rows, speeds, until, self.state.now)

    def _refresh_in_bulk(self, rows: Ints) -> bool:
        """The same without a model, as columns; False: a share of the time, parts, or a grant that came with the tables is among them."""
        t, force = self.state.tables, self.force
        shared = np.fromiter(t.granted, dtype=np.int64, count=len(t.granted))
        if self.books.with_parts or self.fluid_in_use or not force.describes(shared):
            return False
        rows = self._holding(self.books.with_those_beside(rows, shared))
        speeds = self.by_options(rows)
        if self._asked.shape[1] < t.F.shape[1]:
            self._asked = np.zeros((2, t.F.shape[1]))
        self._asked[:, shared] = force.values("fraction", shared), force.values("share", shared)
        granted = np.fromiter(map(t.granted.__contains__, rows.tolist()), np.bool_, len(rows))
        mode, most = force.values("mode", rows), np.zeros(len(rows))
        in_time = mode == int(Mode.TIME)
        crowds(self.books.seats(), rows, in_time, self._asked, most)
        part = np.where(granted, self._asked[in_time.astype(np.int64), rows], 1.0)
        divides = granted & (in_time | (mode == int(Mode.SPACE)))
        speeds = speeds * part / np.where(divides, np.maximum(1.0, most), 1.0)
        self._set(rows, speeds, np.full(len(rows), math.inf))
        return True

    def _holding(self, rows: Ints) -> Ints:
        """Those of the rows that hold something."""
        phase = self.state.tables.I[c.PHASE][rows]
        return np.asarray(rows[(phase == RUNNING) | (phase == STARTING)])

    def _with_mates(self, rows: Ints) -> Ints:
        """The rows and the others of their groups or on their devices, in rising order; just the rows where none shares."""
        granted = self.state.tables.granted
        grants = {row: granted[row] for row in rows.tolist() if row in granted} if granted else {}
        groups = {members for grant in grants.values() for members in grant.members if members}
        mates = {mate for members in groups for mate in members if mate in granted}
        mates.update(mate for row, grant in grants.items() if grant.shares_openly for mate in self.books.beside(row))
        mates.difference_update(rows.tolist())
        return np.sort(np.concatenate([rows, np.array(sorted(mates), dtype=np.int64)])) if mates else rows

    @staticmethod
    def _summed(grants: list[Grant | None], owner: Ints, speeds: Floats, until: Floats, rows: int) -> tuple[Floats, Floats]:
        """One speed per row: shares of the time add up."""
        share = np.array([grant.items[0].share if grant is not None and grant.fluid else 1.0 for grant in grants])
        soonest = np.full(rows, math.inf)
        np.minimum.at(soonest, owner, until)
        return np.bincount(owner, weights=share * speeds, minlength=rows).astype(np.float64), soonest

    def gangs(self, rows: Ints) -> Gangs:
        """What a model is shown of some rows."""
        return self._gangs(rows)[0]

    def _gangs(self, rows: Ints) -> tuple[Gangs, Ints | None]:
        """Gangs as columns; where a row has shares of the time also the place in `rows` that each belongs to."""
        pieces = self._pieces(rows)
        return self._shown(rows, pieces), pieces.owner

    def _pieces(self, rows: Ints) -> _Pieces:
        t, granted = self.state.tables, self.state.tables.granted
        option, alone = t.I[c.OPTION][rows], self.by_options(rows)
        if not granted:
            return _Pieces(None, option, alone, alone.copy(), [None] * len(rows))
        grants, divided, shares = [granted.get(row) for row in rows.tolist()], alone.copy(), []
        for at, grant in enumerate(grants):
            if grant is not None and grant.fluid:
                shares.append(at)
            elif grant is not None:
                divided[at] = SPEEDS[grant.kind](grant, self.mates(int(rows[at]), grant), float(alone[at]))
        found = _Pieces(None, option, alone, divided, grants)
        return self._by_type(rows, shares, found) if shares else found

    def _shown(self, rows: Ints, pieces: _Pieces) -> Gangs:
        state, t, option = self.state, self.state.tables, pieces.option
        owners = rows if pieces.owner is None else rows[pieces.owner]
        held = (t.options.I[c.O_TYPE][option], t.options.I[c.O_GPUS][option], t.I[c.SPREAD][owners])
        moves = (moving(t.F, t.I, owners, state.now, c.DONE), np.maximum(t.F[c.SINCE][owners], state.now))
        ask: dict[str, Any] = {"_metric": t.lent.metric, "_name": self._name, "_mates": self.mates, "_devices": t.lent.devices}
        ask["_everyone"] = lambda: self.gangs(self._holding(state.rows))
        speeds = (pieces.alone, pieces.divided)
        return Gangs(state.now, state.learned, t.cluster, owners, *held, *moves, *speeds, tuple(pieces.grants), **ask)

    def _by_type(self, rows: Ints, shares: list[int], pieces: _Pieces) -> _Pieces:
        """The rows at `shares` have shares of the time: one gang per type, the further ones after all rows."""
        owners, options, grants = list(range(len(rows))), pieces.option.tolist(), pieces.grants
        whole, speeds = pieces.alone.tolist(), pieces.divided.tolist()
        for at in shares:
            grant, row = grants[at], int(rows[at])
            assert grant is not None
            for number, (item, members, given) in enumerate(zip(grant.items, grant.members, grant.fluid)):
                piece = replace(grant, items=(item,), members=(members,), fluid=(given,))
                alone = float(self.state.tables.options.F[c.O_RATE, given[0]])
                speed = SPEEDS[piece.kind](piece, self.mates(row, piece), alone)
                if number == 0:
                    grants[at], whole[at], speeds[at], options[at] = piece, alone, speed, given[0]
                else:
                    grants.append(piece)
                    whole.append(alone)
                    speeds.append(speed)
                    options.append(given[0])
                    owners.append(at)
        return _Pieces(np.array(owners), np.array(options), np.array(whole), np.array(speeds), grants)

    def _name(self, row: int) -> tuple[str, str]:
        t = self.state.tables
        return t.ids[row], t.models[t.I[c.MODEL, row]]

    def mates(self, row: int, grant: Grant) -> Mapping[int, Grant]:
        """The gangs on a device of its own; where it shares none but is in a group, the others of the group."""
        granted, near = self.state.tables.granted, self.books.beside(row) if grant.shared else grant.members[0]
        return {mate: granted[mate] for mate in sorted(near) if mate != row and mate in granted}

    def by_options(self, rows: Ints) -> Floats:
        """Work per second of the options in use, by whether gangs sit on as few nodes as they can."""
        t = self.state.tables
        option, spread = t.I[c.OPTION][rows], t.I[c.SPREAD][rows]
        rate: Floats = t.options.F[c.O_RATE][option]
        for at in np.flatnonzero(spread > 1).tolist():
            size = int(t.NI[c.N_GPUS, t.D[c.D_NODE, self.books.first_device(int(rows[at]))]])
            if spread[at] > -(-int(t.I[c.HELD, rows[at]]) // size):
                rate[at] = t.options.F[c.O_RATE_SPREAD, option[at]]
        return rate
