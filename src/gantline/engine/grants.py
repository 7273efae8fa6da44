"""Grants that are more than a gang of its own: shared devices, exact devices, several parts, shares of the time.

`Grants` keeps who has one, and sees to it when nobody plans anything: mates leave, runs reach their limit, nodes fail. `Commit`
makes a plan true.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.phases import Phase
from gantline.core.plan import Assignments
from gantline.core.reasons import Reason
from gantline.engine.commit import Commit
from gantline.engine.fluid import Fluid
from gantline.engine.gang import close_interval, halt, settle
from gantline.engine.holdings import Holdings
from gantline.engine.option_rows import OptionRows
from gantline.engine.speeds import refresh
from gantline.engine.wanted import read_plan

if TYPE_CHECKING:
    from gantline.engine.state import State


class Grants:
    """Grants by row, and the books behind them."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.by_row = state.tables.granted
        self.options = OptionRows(state.tables)
        self.holdings = Holdings(state)
        self.fluid = Fluid(state)
        self.used_fluid = False
        self.used_sharing = False
        self.speeds_until = math.inf  # a speed changes by itself then
        state.grants = self

    def __bool__(self) -> bool:
        return bool(self.by_row)

    def option_rows(self, rows: Ints, table: Assignments) -> Ints:
        """The row of the option table that each assignment of a simple plan means; -1: there is no such way."""
        return self.options.of_table(rows, table)

    def commit(self, rows: Ints, table: Assignments) -> None:
        """Make the active rows hold exactly what the plan says; state.out as in `assign`."""
        wanted = read_plan(self.state.tables, self.options, rows, table)
        self.used_fluid |= any(w.fluid for w in wanted.values())
        self.used_sharing |= any(w.shares for w in wanted.values())
        Commit(self, wanted).run()

    def devices(self, row: int) -> tuple[int, ...]:
        """Devices of a row, owned or shared, in rank order."""
        return self.holdings.of(row).devices

    # --- ends -----------------------------------------------------------------------------------------------------------
    def stop(self, row: int, reason: Reason) -> None:
        """The row gives up what it holds, on purpose: its work is saved."""
        state, t = self.state, self.state.tables
        self.let_go(row)
        halt(t.F, t.I, row, state.now, int(reason), state.SI, state.log.LI, state.log.LF)

    def let_go(self, row: int) -> None:
        """The row holds nothing any more; its progress columns stay as they are."""
        grant = self.by_row.get(row)
        if grant is not None and grant.fluid:
            self.fluid.close(row)
        self.holdings.give_back(row)
        self.by_row.pop(row, None)

    def forget_finished(self) -> None:
        """Give back what rows that have ended held beyond plain gangs; their mates go on at another speed."""
        for row in list(self.by_row):
            if not Phase(int(self.state.tables.I[c.PHASE, row])).holds_devices:
                self.let_go(row)
        self.refresh()

    def refresh(self) -> None:
        """Speeds follow who is there."""
        self.speeds_until = refresh(self.state, self.by_row)

    def before_decision(self) -> int:
        """Runs that reached their limit end by themselves, speeds and time shares are brought up to now; how many runs ended."""
        t, now, ended = self.state.tables, self.state.now, 0
        for row, grant in list(self.by_row.items()):
            if grant.fluid:
                self.fluid.settle(row)
            running = t.I[c.PHASE, row] in (Phase.RUNNING, Phase.STARTING)
            if running and now + 1e-9 >= t.F[c.LAST_START, row] + grant.assignment.limit:
                self.stop(row, Reason.LIMIT)
                ended += 1
        if ended or self.speeds_until <= now:
            self.refresh()
        if ended:
            self.state.rebuild()
        return ended

    def dissolve(self) -> int:
        """A ranking gives every job a gang of its own: whoever shares, has parts or a share of the time gives that up. How many stopped."""
        stopped = 0
        for row, grant in list(self.by_row.items()):
            if self.state.tables.I[c.LOCKED, row] and not grant.fluid:
                continue  # the walk leaves it alone, as it would not a share of the time
            if grant.shared or grant.side or grant.fluid:
                self.stop(row, Reason.PREEMPTED)
                stopped += 1
            self.by_row.pop(row, None)
        self.state.rebuild()
        return stopped


def close_open_intervals(state: State) -> None:
    """At the end of a run: whoever still holds devices does so until now."""
    t, log = state.tables, state.log
    for row in state.rows.tolist():
        if t.I[c.INTERVAL, row] >= 0:
            if state.grants is not None and row in t.granted and t.granted[row].fluid:
                state.grants.fluid.settle(row)
            settle(t.F, t.I, row, state.now)
            close_interval(t.I, row, state.now, int(Reason.END), log.LI, log.LF)
