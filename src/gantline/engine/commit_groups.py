"""Commits the changes of a compared plan in which gangs share devices, or name their own: its columns go to kernels as they are.

`commit_shared` does the same for plans that say more, or in which other gangs take turns as well.
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import DEVICE_MEMORY, Job
from gantline.core.plan import Assignments
from gantline.engine.checkpoints import note_saves
from gantline.engine.commit_shared import GrantsOfPlan, counts_memory, may_share_compiled
from gantline.engine.gang_turns import Change
from gantline.engine.grants import Grants
from gantline.engine.group_turns import E_DROP, E_ENTER, E_TOUCHED, meet, note_turns, read_turns, touch_teams
from gantline.engine.memory_bound import memory_suffices
from gantline.engine.shared_ask import Ask, Want, Work
from gantline.engine.shared_parting import decide_changes, part_with_shared
from gantline.engine.shared_turns import take_shared_turns


class CommitGroups:
    """The assignments that the last comparison found to change, with the rows of these; see `made`."""

    def __init__(self, grants: Grants, rows: Ints, table: Assignments) -> None:
        self.grants, self.rows, self.table = grants, rows, table
        self.state, self.books, self.asked = grants.state, grants.holdings, grants.group_reader.asked
        self.able = self._read()

    @staticmethod
    def made(grants: Grants, rows: Ints, table: Assignments) -> CommitGroups | None:
        """The changes of that plan; None: some of them are to be done elsewhere."""
        found = CommitGroups(grants, rows, table) if len(rows) and may_share_compiled(grants) else None
        return found if found is not None and found.able else None

    def _read(self) -> bool:
        count, room, flat = len(self.rows), self.grants.room, _NONE
        if self.table.has("devices"):
            devices = self.table.entries("devices")
            flat = np.array(list(chain.from_iterable(devices)))
            if len(flat) and flat.dtype.kind != "i":
                return False
        groups = int(self.asked.found[0])
        self.turns = room.turns(count, groups + 1, flat)
        if len(flat):
            sizes = np.fromiter(map(len, devices), dtype=np.int64, count=count)
            self.turns.ask[Ask.FIRST, :count], self.turns.ask[Ask.COUNT, :count] = np.cumsum(sizes) - sizes, sizes
        special = self.grants.by_row.rows()
        self.read = room.read_turns(groups + 1, count + len(special), self.state.tables.D.shape[1])
        force = self.grants.in_force.with_numbers
        self.total = read_turns(self.state.matrices, self.books.seats(), force, special, self.asked, self.turns, self.read)
        return self.total >= 0 and (not counts_memory(self.grants) or self._memory_suffices(groups))

    def _memory_suffices(self, groups: int) -> bool:
        """Whether no gang can lack device memory in this commit."""
        t = self.state.tables
        need, has = t.metric(DEVICE_MEMORY), np.array(t.cluster.device_memory, dtype=np.float64)
        if self.grants.in_force.knows("memory_cap"):
            return False
        return memory_suffices(self.state.matrices, self.books.seats(), self.turns, need, has, np.zeros(t.D.shape[1] + groups + 1))

    def run(self) -> None:
        """Rows give up what the plan takes away, and take their turns; costs and speeds follow."""
        grants, state, asked, turns = self.grants, self.state, self.asked, self.turns
        t, room = state.matrices, grants.room
        if (turns.ask[Ask.WANTS, : len(self.rows)] <= Want.SHARES_NAMED).any():
            grants.note_sharing()
        special, force = grants.by_row.rows(), grants.in_force.with_numbers
        company, seats = room.company(t.F.shape[1], self.total + 1), self.books.seats(2 * self.total + 2)
        state.log.reserve(len(self.rows) + 8, self.total + 8)
        meet(t, seats, force, special, asked, turns, company)
        decide_changes(t, seats, company, turns, state.now, state.min_run)
        change = turns.work[Work.CHANGE, : len(self.rows)]
        if (saving := t.F[Job.CHECKPOINT][self.rows] > 0.0).any():
            for row in self.rows[((change == Change.KEEPS) | (change == Change.LEAVES)) & saving].tolist():
                note_saves(state, row)
        part_with_shared(t, seats, company, turns, state.now)
        take_shared_turns(t, seats, company, turns, 0, len(self.rows), room.moment(state))
        if grants.speeds.model is not None:
            touch_teams(special, turns, company)
        note_turns(t, force, special, asked, turns, company, self.read)
        self._record()

    def _record(self) -> None:
        """Keep what is special about the new grants, and ask for their costs and speeds."""
        grants, ended, sizes = self.grants, self.read.ended, self.read.sizes
        at = ended[E_ENTER, : sizes[E_ENTER]].copy()
        grants.by_row.drop(ended[E_DROP, : sizes[E_DROP]].tolist())
        if len(at):
            entered = self.rows[at].tolist()
            grants.by_row.enter(entered, GrantsOfPlan(self.books, self.rows, self.table.column("group"), self.table, self.rows))
            grants.in_force.note_asked(self.table, entered, at)
        if grants.speeds.about_costs:
            acts = self.turns.work[Work.ACT, : len(self.rows)]
            grants.speeds.pay(self.rows[acts >= 0], acts[acts >= 0])
        grants.refresh_with(np.sort(ended[E_TOUCHED, : sizes[E_TOUCHED]]))


_NONE: Ints = np.zeros(0, dtype=np.int64)
