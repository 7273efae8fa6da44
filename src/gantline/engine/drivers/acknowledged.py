"""A driver on which time passes from report to report of an executor.

A commit is intent until it is acknowledged (see `engine.reconcile`). `ImmediateExecutor` acknowledges everything at once, and with it
every number is the same as on virtual time.
"""

from __future__ import annotations

import math
from typing import ClassVar

from gantline.core.columns import Job
from gantline.core.inputs import Input, NodeEvent
from gantline.core.phases import HELD_BACK, RUNNING
from gantline.core.reasons import Reason
from gantline.engine.advance import next_finish
from gantline.engine.drivers.executors import ImmediateExecutor
from gantline.engine.drivers.stepping import Stepping
from gantline.engine.engine import Engine
from gantline.engine.executor import Executor
from gantline.engine.gang import set_due
from gantline.engine.lists import RowCount
from gantline.engine.reconcile import Reconciler
from gantline.engine.state import State


class Acknowledged:
    """A driver of orders and reports; without an executor, a prompt one."""

    gives_up: ClassVar[bool] = True

    def __init__(self, engine: Engine, executor: Executor | None = None) -> None:
        self.reconciler = Reconciler(engine.state, engine.grants, executor or ImmediateExecutor(engine.state), apply=engine.apply)
        engine.inputs.absorb = self.reconciler.absorb

    # --- how time passes ------------------------------------------------------------------------------------------------
    def wait(self, loop: Stepping) -> float:
        while not _is_over(loop):
            look, news = loop.agenda.next_look(loop.next_input()), self._next_news(loop)
            if news >= min(look, loop.until):
                return look
            self.advance(loop, news)
        return math.inf

    def elapse(self, loop: Stepping, until: float) -> None:
        while (news := self._next_news(loop)) < until:
            self.advance(loop, news)
        loop.state.now = until

    def _next_news(self, loop: Stepping) -> float:
        """When something is to be done between two decisions: something happens, an order is repeated, or a silent gang asked."""
        return min(self.next_event(loop), self.reconciler.next_time())

    def next_event(self, loop: Stepping) -> float:
        """When something happens that is not left for the next look."""
        state, grants = loop.state, loop.engine.grants
        soonest = self.reconciler.executor.next_time()
        if state.regime.finish_at_boundary:
            return soonest
        soonest = min(soonest, loop.next_input())
        if grants.minds_changes:
            soonest = min(soonest, grants.speeds_until, next_finish(state.tables.F, state.tables.I, state.lists))
        return soonest

    def advance(self, loop: Stepping, to: float) -> None:
        """Go to that instant, and take in what happens there."""
        state, grants = loop.state, loop.engine.grants
        state.now = max(state.now, to)
        has_inputs = loop.next_input() <= state.now and not state.regime.finish_at_boundary
        in_order = not state.regime.finish_at_boundary and (grants.minds_changes or has_inputs)
        happened = self._catch_up(state) if in_order else self.reconciler.catch_up()
        if has_inputs:
            happened |= loop.take_inputs()
        if in_order and grants.speeds_until <= state.now:
            grants.refresh()
        if happened:
            loop.agenda.touch()
        loop.engine.next_finish = math.nan

    # --- what has been acknowledged -------------------------------------------------------------------------------------
    def settle(self, loop: Stepping) -> bool:
        self._catch_up(loop.state)
        ended, self.reconciler.finished = self.reconciler.finished > 0, 0
        return ended

    def take_in(self, loop: Stepping, value: Input) -> None:
        loop.engine.apply(value)
        if isinstance(value, NodeEvent) and value.kind == "down":
            self.reconciler.node_lost(value.find(loop.state.tables.cluster))
        else:
            self.reconciler.follow()

    def follow(self, loop: Stepping) -> None:
        if self.reconciler.follow():
            loop.agenda.touch()
        loop.engine.next_finish = math.nan

    def _catch_up(self, state: State) -> bool:
        """Take in every report received by now; returns whether a policy could see a difference."""
        happened = self.reconciler.catch_up()
        self.reconciler.see_ended()
        _raise_estimates(state)
        return happened


def _is_over(loop: Stepping) -> bool:
    """Whether no job is left and none is to come; machines may still send reports."""
    count = loop.state.lists.number
    if count[RowCount.ACTIVE] or count[RowCount.NEXT] < len(loop.state.tables.ids) or loop.inputs:
        return False
    return not (loop.agenda.touched and _keeps_out(loop.state))


def _keeps_out(state: State) -> bool:
    """Whether admission keeps jobs out: an end that has not been looked at yet may let them in."""
    I, came = state.tables.I, int(state.lists.number[RowCount.NEXT])
    reason = I[Job.REASON, :came]
    return bool(((I[Job.PHASE, :came] == HELD_BACK) & ((reason == Reason.QUOTA) | (reason == Reason.LOAD_LIMIT))).any())


def _raise_estimates(state: State) -> None:
    """A gang that was due by now and has not finished was estimated too low: as long again (as in `advance.finish_due`)."""
    F, I, rows, now = state.tables.F, state.tables.I, state.running_rows, state.now
    for row in rows[(I[Job.PHASE][rows] == RUNNING) & (F[Job.DUE][rows] <= now)].tolist():
        done = float(F[Job.DONE, row] + F[Job.RATE, row] * max(0.0, now - F[Job.SINCE, row]))
        F[Job.ESTIMATE, row] = 2.0 * done
        set_due(F, row)
        if F[Job.DUE, row] <= now:  # it has done all the work in the trace; only the executor can report more
            F[Job.ESTIMATE, row] = max(2.0 * done, done + float(F[Job.RATE, row]))
            F[Job.DUE, row] = F[Job.SINCE, row] + (F[Job.ESTIMATE, row] - F[Job.DONE, row]) / F[Job.RATE, row]
