"""Grants that are more than an unshared gang: shared devices, exact devices, several parts, shares of the time.

`Grants` keeps them by row, and maintains them between plans: mates leave, runs reach their limit, nodes fail. `Commit`
commits a plan.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gantline.core.grant import Grant
from gantline.core.phases import STARTING, STOPPING, Phase
from gantline.core.reasons import Reason
from gantline.engine.commit.request import GrantedColumns, RequestReader
from gantline.engine.commit.speeds import Speeds
from gantline.engine.gang import close_interval, halt, settle
from gantline.engine.holdings import Holdings
from gantline.engine.option_rows import OptionRows
from gantline.engine.runs import is_trial
from gantline.engine.state import State
from gantline.engine.time_shares import Fluid
from gantline.models.model import overrides


class Grants:
    """Grants by row, and the books behind them."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.by_row = state.tables.granted
        self.options = OptionRows(state.tables)
        self.holdings = Holdings(state)
        self.fluid = Fluid(state)
        self.granted = GrantedColumns(state)
        self.requests = RequestReader(state, self.granted, self.options)
        self.speeds = Speeds(state, self.holdings, self.granted)
        self.short_of_memory: dict[int, str] = {}  # by row: how much device memory was lacking in the present commit
        self.left: set[int] = set()  # rows that share with other rows than before
        self.touched: set[int] = set()  # rows of which the present commit may have changed the speed
        self.used_sharing = False

    @property
    def used_fluid(self) -> bool:
        """Whether any row ever had a share of the time."""
        return self.speeds.fluid_in_use

    def __bool__(self) -> bool:
        return bool(self.by_row)

    @property
    def speeds_until(self) -> float:
        """A speed changes by itself then."""
        return self.speeds.soonest()

    @property
    def minds_changes(self) -> bool:
        """Whether the end of a gang may change another's speed or grant."""
        return bool(self.by_row) or self.speeds.model is not None

    def rows_with_shares(self) -> set[int]:
        """Rows that have a share of the time."""
        return {row for row, grant in self.by_row.items() if grant.fluid}

    def overdrawn(self) -> bool:
        """Whether more time was promised than there is, because a node has gone."""
        return self.used_fluid and self.fluid.overdrawn()

    def devices(self, row: int) -> tuple[int, ...]:
        """Devices of a row, owned or shared, in rank order."""
        return self.holdings.of(row).devices

    def note_sharing(self) -> None:
        """Gangs are to share devices: from the first time on, changes of speed are counted."""
        if not self.used_sharing:
            self.used_sharing, self.state.tables.rate_changes = True, np.zeros(self.state.tables.F.shape[1], dtype=np.int64)

    def mates(self, row: int, grant: Grant) -> set[int]:
        """Rows whose speed may depend on this one's grant: those on its devices, else those of its group."""
        return self.holdings.beside(row) if grant.shared else set().union(*grant.members)

    # --- ends -----------------------------------------------------------------------------------------------------------
    def stop(self, row: int, reason: Reason, turn: bool = False) -> None:
        """The row gives up what it holds, on purpose: its work is saved. A turn that ends is no preemption."""
        state, t = self.state, self.state.tables
        self.let_go(row)
        halt(t.F, t.I, row, state.now, int(reason), state.log.columns)
        if turn:
            t.jobs.preemptions[row] -= 1
            t.waits_for_turn.add(row)
        else:
            t.waits_for_turn.discard(row)

    def let_go(self, row: int) -> None:
        """The row holds nothing any more; its progress columns stay as they are."""
        if self.used_fluid and row in self.by_row and self.by_row[row].fluid:
            self.fluid.close(row)
        if self.holdings.shares(row):
            self.left |= self.holdings.beside(row)
            self.by_row.drop([row])
        else:
            self._leave(row)
        self.holdings.give_back(row)

    def _leave(self, row: int) -> None:
        """The row, which shares no device, has no grant any more."""
        if row in self.by_row:
            self.left |= self.mates(row, self.by_row.pop(row))

    def forget_finished(self) -> None:
        """Give back what rows that have ended held beyond plain gangs; their mates go on at another speed."""
        rows = self.by_row.rows()
        phase = self.state.tables.jobs.phase[rows]
        ended = set(rows[(phase < STARTING) | (phase > STOPPING)].tolist())
        for row in [row for row in self.by_row if row in ended] if len(ended) > 1 else ended:  # in the order in which they were granted
            if self.holdings.has(row) or (self.used_fluid and self.by_row[row].fluid):
                self.let_go(row)
            else:
                self._leave(row)
        self.refresh()

    def refresh(self) -> None:
        """Update speeds that depend on the other gangs, and those that have expired."""
        if self.left or self.speeds.about_everyone:
            gone, self.left = self.left, set()
            self.speeds.refresh_around(gone)
        if self.speeds.model is not None:
            self.speeds.refresh_due()

    def refresh_touched(self) -> None:
        """Update the speeds of rows that a commit has touched, and of rows that share with other rows than before."""
        touched = np.array(sorted(self.touched | self.left), dtype=np.int64)
        self.touched.clear()
        self.left.clear()
        if self.speeds.about_everyone and (len(touched) or self.state.out.any()):
            self.speeds.refresh(self.state.rows)
        elif len(touched):
            self.speeds.refresh(touched)

    def before_decision(self, at_limit: Callable[[int], None]) -> int:
        """Runs that reached their limit end by themselves, and `at_limit` is called for each; speeds and time shares are brought up to now.

        Returns how many runs ended.
        """
        state, now, ended, jobs = self.state, self.state.now, 0, self.state.tables.jobs
        if self.used_fluid:
            for row in self.rows_with_shares():
                self.fluid.settle(row)
        rows = state.running_rows
        for row in rows[now + 1e-9 >= jobs.limit_end[rows]].tolist():
            if int(state.tables.jobs.phase[row]) in (Phase.RUNNING, Phase.STARTING) and row in self.by_row:
                at_limit(row)
                self.stop(row, Reason.LIMIT)
                ended += 1
        self.refresh()
        if ended:
            state.rebuild()
        if overrides(self.speeds.model, "observe"):
            self._observe()
        return ended

    def _observe(self) -> None:
        """Enter a profiler's measurements as metrics of the jobs, and keep what it has learned."""
        state, t = self.state, self.state.tables
        gangs = self.speeds.shown.gangs(state.running_rows)
        seen = self.speeds.model.observe(gangs)
        if seen is None:
            return
        state.learned = seen.learned
        for name, values in seen.metrics.items():
            t.metric(name)[gangs.rows] = values

    def dissolve(self) -> int:
        """A ranking gives every job an unshared gang: rows that have shares, parts, time or a trial give it up. How many stop."""
        stopped = 0
        for row, grant in list(self.by_row.items()):
            if self.state.tables.jobs.locked[row] and not grant.fluid:
                continue  # the walk leaves it alone, as it would not a share of the time
            if grant.shared or grant.side or grant.fluid or is_trial(grant):
                self.stop(row, Reason.PREEMPTED)
                stopped += 1
            elif self.by_row.pop(row, None) is not None:
                self.left.add(row)
                self.granted.forget(row)
            self.state.tables.jobs.limit_end[row] = np.inf
        self.state.rebuild()
        return stopped

    def close_open_intervals(self) -> None:
        """At the end of a run: rows that still hold devices do so until now."""
        state, t, log = self.state, self.state.tables, self.state.log
        for row in state.rows.tolist():
            if t.jobs.interval[row] >= 0:
                if row in self.by_row and self.by_row[row].fluid:
                    self.fluid.settle(row)
                settle(t.F, t.I, row, state.now)
                close_interval(t.I, row, state.now, int(Reason.END), log.columns)
