"""The part of a commit that is compiled: gangs of their own that the engine places without further requirements."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import Job
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.engine.checkpoints import note_saves
from gantline.engine.gang_turns import Change, GangTurns, GangWork, change_of, part_with, take_turns
from gantline.engine.grants import Grants


class CompiledTurns:
    """These rows shall have these options, each a whole gang, in this order."""

    def __init__(self, grants: Grants, rows: Ints, options: Ints) -> None:
        self.grants, self.rows, self.options = grants, rows, options
        self.state = grants.state
        if len(rows):
            self.work: Ints = np.zeros((len(GangWork), len(rows)), dtype=np.int64)
            listed: Ints = np.zeros(self.state.tables.D.shape[1] + len(rows), dtype=np.int64)
            self.of_all = GangTurns(rows, options, self.work, listed)

    def give_up(self) -> None:
        """Every row gives up what the plan takes away."""
        if not len(self.rows):
            return
        state, t = self.state, self.state.tables
        saves = np.flatnonzero((t.I[Job.PHASE][self.rows] != PENDING) & (t.F[Job.CHECKPOINT][self.rows] > 0.0))
        for at in saves.tolist():
            change = change_of(t.I, t.options.I, self.rows[at], self.options[at])
            if change == Change.KEEPS or (change == Change.LEAVES and state.now >= t.F[Job.LAST_START, self.rows[at]] + state.min_run):
                note_saves(state, int(self.rows[at]))
        part_with(state.matrices, self.of_all, state.now, state.min_run)

    def turns(self, first: int, last: int) -> None:
        """The turns of those in [first, last)."""
        if last <= first or not len(self.rows):
            return
        state, log = self.state, self.state.log
        take_turns(
            state.matrices, self.of_all, first, last, self.grants.fluid.used, state.now, state.rules, log.columns, state.scratch, state.out
        )

    def granted(self) -> Ints:
        """Rows that have now what they were to have."""
        if not len(self.rows):
            return self.rows
        I = self.state.tables.I
        phase = I[Job.PHASE][self.rows]
        got: Bools = ((phase == RUNNING) | (phase == STARTING)) & (I[Job.OPTION][self.rows] == self.options)
        return self.rows[got]

    def restyled(self) -> Ints:
        """Rows that have another option on the same devices, and perhaps another speed."""
        if not len(self.rows):
            return self.rows
        work = self.work
        changed: Bools = (work[GangWork.CHANGE] == Change.STAYS) & (work[GangWork.OPTION] != self.options)
        return self.rows[changed]

    def acts(self) -> tuple[Ints, Ints]:
        """Rows that pay for something, and what for."""
        if not len(self.rows):
            return self.rows, self.rows
        done = self.work[GangWork.ACT]
        paid = done >= 0
        return self.rows[paid], done[paid]
