"""Makes the changes of a commit true in one compiled pass: rows give up what the plan takes away, take their turns, and what each was
granted is written down.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import DEVICE_MEMORY, Job
from gantline.core.grant import Grant
from gantline.core.jit import kernel
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.plan import TRIAL, Assignments
from gantline.core.tables import Matrices
from gantline.engine.commit.diff import renew
from gantline.engine.commit.give_up import decide_changes, give_up
from gantline.engine.commit.granted import RAW, GrantedByRow
from gantline.engine.commit.request import GROUPS, LINES_COUNT, PlanRequest, filled, team_of
from gantline.engine.commit.requested import exact_option, sound_numbers
from gantline.engine.commit.take_turns import take_turns
from gantline.engine.commit.turns import (
    SOUGHT,
    Ask,
    Course,
    End,
    EndedTurns,
    GangTurns,
    TurnRoom,
    Want,
    Work,
    find_first_options,
    meet,
    memory_suffices,
    read_turns,
)
from gantline.engine.grants import Grants
from gantline.engine.holdings import Holdings
from gantline.engine.option_rows import IMPOSSIBLE
from gantline.engine.runs import note_saves
from gantline.engine.shared_devices import BEFORE, COMPANY_LINES, GANG_FIRST, TOUCHED, Partners, SharedDevices

_NONE: Ints = np.zeros(0, dtype=np.int64)


class GrantsOfPlan:
    """The grants of many rows, as one plan gave them."""

    def __init__(self, holdings: Holdings, rows: Ints, table: Assignments, at: Ints) -> None:
        """The plan named these `rows`, and what it gave at these places is kept: it may write to its arrays again."""
        self.holdings, self.rows, self.group, self.table, self.owners = (
            holdings,
            rows,
            table.column("group").copy(),
            table.some(at),
            rows[at],
        )
        self._members: dict[int, frozenset[int]] = {}

    @cached_property
    def _place(self) -> dict[int, int]:
        return dict(zip(self.owners.tolist(), range(len(self.owners))))

    def grant(self, row: int) -> Grant:
        """The grant of a row, on what it holds now."""
        item, held = replace(self.table[self._place[row]], job=row), self.holdings.of(row)
        if item.group not in self._members:
            members = self.rows[self.group == item.group] if item.group >= 0 else self.rows[:0]
            self._members[item.group] = frozenset(members.tolist())
        return Grant((item,), (self._members[item.group],), held.devices, held.shared, (), held.side)


class PlanChanges:
    """The assignments that their rows do not keep, as turns; `readable` says whether the compiled pass takes all of them."""

    def __init__(self, grants: Grants, rows: Ints, table: Assignments, asked: PlanRequest, places: Ints) -> None:
        self.grants, self.table, self.asked, self.places = grants, table, asked, places
        self.state, self.holdings = grants.state, grants.holdings
        self.planned, self.rows = rows, rows[places]
        self.special = grants.by_row.rows()
        self.readable = self._is_usual() and self._read() and not self._may_lack_memory()

    def _is_usual(self) -> bool:
        """Whether there are no shares of the time, trials, parts, or places that the plan restricts."""
        if self.grants.used_fluid or self.state.tables.trials or self.holdings.with_parts:
            return False
        if filled(self.table, "nodes", "within", "parts")[self.places].any():
            return False
        purposes = self.table.entries("purpose") if self.table.has("purpose") else ()
        return not (purposes and any(purposes[k] == TRIAL for k in self.places.tolist()))

    def _read(self) -> bool:
        """Enter the changes as turns; False: one of them is of a kind that the pass does not take."""
        count, columns, t = len(self.places), self.grants.turn_columns, self.state.tables
        named = [self.table.entries("devices")[k] for k in self.places.tolist()] if self.table.has("devices") else []
        flat = np.array(list(chain.from_iterable(named)))
        if len(flat) and flat.dtype.kind != "i":
            return False
        groups = int(self.asked.found[GROUPS])
        self.turns = columns.turns(count, groups + 1, flat)
        ask = self.turns.ask[:, :count]
        ask[Ask.ROW], ask[Ask.PLACE] = self.rows, self.places
        sound = sound_numbers(self.table)[self.places]
        ask[Ask.OPTION] = np.where(sound, self.asked.option[self.places], IMPOSSIBLE)
        if named:
            sizes = np.fromiter(map(len, named), dtype=np.int64, count=count)
            ask[Ask.FIRST], ask[Ask.COUNT] = np.cumsum(sizes) - sizes, sizes
            self._find_options(named, sound)
        if t.waits_for_turn:
            turning = self.table.rotations()[self.places] >= 0
            ask[Ask.RETURNS] = turning & np.fromiter(map(t.waits_for_turn.__contains__, self.rows.tolist()), np.bool_, count)
        self.room = columns.room(groups + 1, count + len(self.special), t.D.shape[1])
        granted = self.grants.granted.columns
        self.listed = read_turns(self.state.matrices, self.holdings.seats(), granted, self.special, self.asked, self.turns, self.room)
        return self.listed >= 0

    def _find_options(self, named: list[tuple[int, ...]], sound: Bools) -> None:
        """The options of rows that name their devices; most often their first ones."""
        says_more, option = any(map(self.table.has, RAW)), self.turns.ask[Ask.OPTION]
        sought = sound & self.asked.named[self.places]
        option[: len(sound)][sought] = SOUGHT
        if not says_more:
            find_first_options(self.state.matrices, self.turns)
        for n in np.flatnonzero(option[: len(sound)] == SOUGHT).tolist():
            item = self.table[self.places[n]] if says_more else None
            option[n] = exact_option(self.state.tables, self.grants.options, int(self.rows[n]), named[n], item)

    def _may_lack_memory(self) -> bool:
        """Whether a gang may lack device memory in this commit; only where the cluster states it is that asked."""
        t = self.state.tables
        if not any(t.cluster.device_memory):
            return False
        if self.table.has("memory_cap") or self.grants.granted.knows("memory_cap"):
            return True
        if DEVICE_MEMORY not in t.metrics:
            return False
        has, load = np.array(t.cluster.device_memory, dtype=np.float64), np.zeros(t.D.shape[1] + int(self.asked.found[GROUPS]) + 1)
        return not memory_suffices(self.state.matrices, self.holdings.seats(), self.turns, t.metric(DEVICE_MEMORY), has, load)

    def run(self) -> None:
        """Rows give up what the plan takes away, take their turns, and are granted what they got; costs follow."""
        grants, state, turns = self.grants, self.state, self.turns
        t, count = state.matrices, len(self.places)
        if (turns.ask[Ask.WANTS, :count] <= Want.SHARES_NAMED).any():
            grants.note_sharing()
        company, seats = grants.turn_columns.company(t.F.shape[1], self.listed + 1), self.holdings.seats(2 * self.listed + 2)
        state.log.reserve(count + 8, self.listed + 8)
        here = grants.by_row.here(t.F.shape[1])
        meet(t, seats, grants.granted.columns, self.special, here, self.asked, len(self.planned), turns, company)
        decide_changes(t, seats, company, turns, state.now, state.min_run)
        change = turns.work[Work.CHANGE, :count]
        for row in self.rows[((change == Course.KEEPS) | (change == Course.LEAVES)) & (t.F[Job.CHECKPOINT][self.rows] > 0.0)].tolist():
            note_saves(state, row)
        give_up(t, seats, company, turns, state.now)
        take_turns(t, seats, company, turns, grants.turn_columns.moment(state))
        model, about_gangs = grants.speeds.model is not None, grants.speeds.about_gangs
        end_turns(t, seats, self.special, here, self.asked, turns, company, self.room, model, about_gangs)
        self._enter()

    def _enter(self) -> None:
        """Keep what is special about the new grants, and ask for their costs and speeds."""
        grants, ended, sizes, count = self.grants, self.room.ended, self.room.sizes, len(self.places)
        grants.by_row.drop(ended[EndedTurns.DROP, : sizes[EndedTurns.DROP]].tolist())
        special = ended[EndedTurns.ENTER, : sizes[EndedTurns.ENTER]]
        if len(special):
            given = GrantsOfPlan(self.holdings, self.planned, self.table, self.places[special])
            grants.by_row.enter(self.rows[special].tolist(), given)
        end, acts = self.turns.work[Work.END, :count], self.turns.work[Work.ACT, :count]
        note_granted(grants, self.table, self.asked, self.places, end)
        waiting = self.state.tables.waits_for_turn
        for row in (
            self.rows[((end == End.GRANTED) | (end == End.IN_PART)) & (self.turns.ask[Ask.RETURNS, :count] == 1)].tolist()
            if waiting
            else ()
        ):
            waiting.discard(row)
        if grants.speeds.about_costs:
            grants.speeds.pay(self.rows[acts >= 0], acts[acts >= 0])
        grants.touched.update(ended[EndedTurns.TOUCHED, : sizes[EndedTurns.TOUCHED]].tolist())


def note_granted(grants: Grants, table: Assignments, asked: PlanRequest, places: Ints, end: Ints) -> None:
    """Write down what the rows of these places were granted, by how their turns ended."""
    _note_granted(grants.state.matrices, grants.granted.columns, asked, places, end)
    got = places[(end == End.GRANTED) | (end == End.IN_PART)]
    grants.granted.note_lists(table, got.tolist(), asked.rows[got].tolist())


@kernel
def _note_granted(t: Matrices, granted: GrantedByRow, asked: PlanRequest, places: Ints, end: Ints) -> None:
    for n in range(places.shape[0] - 1, -1, -1):  # of several assignments of one row the first counts
        k = places[n]
        row = asked.rows[k]
        if end[n] != End.GRANTED and end[n] != End.IN_PART:
            granted.epoch[row] = -1
            continue
        reason = t.I[Job.REASON, row] if end[n] == End.IN_PART else 0
        renew(t, asked, k)
        t.I[Job.REASON, row] = reason
        granted.noted[row], granted.team[row] = t.I[Job.EPOCH, row], team_of(asked.groups, k)
        granted.epoch[row] = t.I[Job.EPOCH, row] if end[n] == End.GRANTED else -1
        for m in range(asked.found[LINES_COUNT]):
            granted.number[asked.lines[m], row] = asked.number[asked.lines[m], k]


@kernel
def end_turns(
    t: Matrices, seats: SharedDevices, special: Ints, here: Bools, asked: PlanRequest, turns: GangTurns, company: Partners, room: TurnRoom,
    model: bool, about_gangs: bool,
) -> None:  # fmt: skip
    """How the turns of placed gangs ended, and lists of what follows from all turns; the columns of `company` are zero again."""
    ask, work, line = turns.ask, turns.work, company.row
    room.sizes[:] = 0
    for n in range(turns.size[0]):
        row, option = ask[Ask.ROW, n], ask[Ask.OPTION, n]
        phase, changes = t.I[Job.PHASE, row], work[Work.CHANGE, n] == Course.STAYS and work[Work.OPTION, n] != option
        if ask[Ask.WANTS, n] == Want.PLACED and work[Work.END, n] != End.HALTED:
            got = option >= 0 and (phase == STARTING or phase == RUNNING) and t.I[Job.OPTION, row] == option
            work[Work.END, n] = End.GRANTED if got else End.UNTOUCHED
            if changes or (got and (about_gangs or here[row] or not asked.plain[ask[Ask.PLACE, n]])):
                line[TOUCHED, row] = 1
        recorded = work[Work.END, n] == End.GRANTED or work[Work.END, n] == End.IN_PART
        if recorded and (seats.gang[GANG_FIRST, row] >= 0 or not asked.plain[ask[Ask.PLACE, n]]):
            _list(room, EndedTurns.ENTER, n)
        if recorded or work[Work.END, n] == End.HALTED or phase == PENDING:
            _list(room, EndedTurns.DROP, row)
        if model and line[BEFORE, row] > 0 and (recorded or work[Work.END, n] == End.HALTED):
            _touch_team(special, company, line[BEFORE, row])
    for n in range(special.shape[0] + turns.size[0]):
        row = special[n] if n < special.shape[0] else ask[Ask.ROW, n - special.shape[0]]
        if line[TOUCHED, row] == 1:
            _list(room, EndedTurns.TOUCHED, row)
        for which in range(COMPANY_LINES):
            line[which, row] = 0


@kernel
def _touch_team(special: Ints, company: Partners, team: int) -> None:
    """A model may mind that one of a group that shares links has changed."""
    for n in range(special.shape[0]):
        if company.row[BEFORE, special[n]] == team:
            company.row[TOUCHED, special[n]] = 1


@kernel
def _list(room: TurnRoom, which: int, value: int) -> None:
    room.ended[which, room.sizes[which]] = value
    room.sizes[which] += 1
