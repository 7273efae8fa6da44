"""How fast gangs go: by their options, by how their kind of grant divides devices, and by the performance model, which overrides both.

Speeds are due one by one: a row is asked about when it starts, when its grant or its group changes, and when its own speed
expires (`SPEED_UNTIL`). A gang that keeps what it has costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.errors import UsageError
from gantline.core.grant import Grant
from gantline.core.phases import RUNNING, STARTING
from gantline.engine.advance import soonest
from gantline.engine.commit.request import GrantedColumns
from gantline.engine.commit.shown_gangs import ShownGangs
from gantline.engine.gang import set_due, set_speeds
from gantline.engine.holdings import Holdings
from gantline.engine.lists import RowCount
from gantline.engine.runs import note_saves
from gantline.engine.state import State
from gantline.models.model import Act, check_model, overrides

_BLINK = 1e-3  # a model is not asked again sooner, so that rounding cannot make time stand still


def asks_about_gangs(model: Any) -> bool:
    """Whether a performance model must be asked about unshared gangs: for speeds, costs, or to inspect them."""
    return model is not None and (model.about_gangs or model.about_everyone or overrides(model, "cost") or overrides(model, "observe"))


class SpeedsBefore:
    """The speeds of all active rows before a commit: whichever way a row takes in it, a change counts once."""

    def __init__(self, state: State) -> None:
        self.tables, self.rows, self.now = state.tables, state.rows.copy(), state.now
        self.rate, counted = self.tables.F[Job.RATE][self.rows], self.tables.rate_changes
        self.counted: Ints = np.zeros(len(self.rows), dtype=np.int64) if counted is None else counted[self.rows]

    def count_changes(self) -> None:
        """Count one for each row that goes on at another speed, once some gang has shared a device."""
        t, rows = self.tables, self.rows
        if t.rate_changes is not None:
            phase = t.I[Job.PHASE][rows]
            goes_on = ((phase == STARTING) | (phase == RUNNING)) & (t.F[Job.LAST_START][rows] < self.now)
            t.rate_changes[rows] = self.counted + (goes_on & (t.F[Job.RATE][rows] != self.rate))


class Speeds:
    """Asks for speeds and costs, and enters them."""

    def __init__(self, state: State, holdings: Holdings, granted: GrantedColumns) -> None:
        self.state, self._holdings, self._granted = state, holdings, granted
        self.fluid_in_use = any(grant.fluid for grant in state.tables.granted.values())  # some row may have a share of the time
        check_model(state.tables.performance)

    @cached_property
    def shown(self) -> ShownGangs:
        """What is known of gangs when their speeds are asked for."""
        return ShownGangs(self.state, self._holdings, self._granted, lambda: self.fluid_in_use)

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
        lists = self.state.lists
        return soonest(self.state.tables.F, lists.running, lists.number[RowCount.RUNNING], Job.SPEED_UNTIL)

    def refresh_due(self) -> None:
        """Ask about rows with an expired speed."""
        rows = self.state.running_rows
        due = rows[self.state.tables.F[Job.SPEED_UNTIL][rows] <= self.state.now]
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
        started = rows[F[Job.LAST_START][rows] == now]
        if not len(started):
            return
        acts = np.where(F[Job.FIRST_START][started] == now, int(Act.START), int(Act.RESUME))
        acts[np.isin(started, before)] = int(Act.MOVE)
        self.pay(started, acts)
        self.refresh(rows if self.about_everyone else started)

    # --- asking -----------------------------------------------------------------------------------------------------
    def pay(self, rows: Ints, acts: Ints) -> None:
        """Costs as the model says, for each job and size; where it gives none, those already entered stay."""
        if not len(rows) or not self.about_costs:
            return
        pieces = self.shown.pieces(rows)
        gangs, owner = self.shown.shown(rows, pieces), pieces.owner
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
            F[Job.SINCE, rows[at]] = now + seconds
            set_due(F, int(rows[at]))

    def refresh(self, rows: Ints) -> None:
        """Bring the speeds of rows and their mates up to date, and with them when they are due; only those that hold something are asked
        about. So a model that is asked about one member of a group is shown all of them, and can compute what they have in common once.
        """
        now, model = self.state.now, self.model
        rows = self.shown.around(rows)
        if not len(rows):
            return
        pieces = self.shown.pieces(rows)
        owner, speeds, grants = pieces.owner, pieces.divided, pieces.grants
        if model is None:
            until = np.full(len(speeds), math.inf)
        else:
            gangs = self.shown.shown(rows, pieces)
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
        saving = F[Job.CHECKPOINT][rows]
        for row in rows[(saving > 0.0) & (F[Job.RATE][rows] != speeds)].tolist() if saving.any() else ():
            note_saves(self.state, row)
        changes = self.state.tables.rate_changes
        if changes is not None:
            changes[rows[(F[Job.RATE][rows] != speeds) & (F[Job.LAST_START][rows] < self.state.now)]] += 1
        set_speeds(F, I, rows, speeds, until, self.state.now)

    @staticmethod
    def _summed(grants: Sequence[Grant | None], owner: Ints, speeds: Floats, until: Floats, rows: int) -> tuple[Floats, Floats]:
        """One speed per row: shares of the time add up."""
        share = np.array([grant.items[0].share if grant is not None and grant.fluid else 1.0 for grant in grants])
        soonest = np.full(rows, math.inf)
        np.minimum.at(soonest, owner, until)
        return np.bincount(owner, weights=share * speeds, minlength=rows).astype(np.float64), soonest
