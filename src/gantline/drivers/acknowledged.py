"""The loop against an executor that answers when it can: the same six steps, with orders and reports between them.

It differs from `Simulation` in how time passes: from report to report, and in what a commit means: intent, until it is acknowledged (see
`engine.reconcile`). `Prompt` acknowledges everything at once, and with it every number is the same as on virtual time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.inputs import Input
from gantline.core.node_events import NodeEvent
from gantline.core.phases import HELD_BACK, RUNNING
from gantline.core.reasons import Reason
from gantline.drivers.virtual import Simulation
from gantline.engine import lists as ls
from gantline.engine.advance import arrive, next_finish
from gantline.engine.executor import Can, Executor, News, Order, Report, Verb
from gantline.engine.gang import set_due
from gantline.engine.reconcile import Reconciler
from gantline.engine.state import State


class Prompt:
    """An executor that does what it is told at once and says so at once. Its jobs get on exactly as the tables say."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._alive: Ints = np.full(state.tables.I.shape[1], -1, dtype=np.int64)  # epoch by row
        self._over = self._alive.copy()  # the newest epoch that was stopped
        self._ended: dict[int, Report] = {}  # by row: its end, told again to whoever asks
        self._reports: list[Report] = []

    def can(self, row: int) -> frozenset[Can]:
        return frozenset(Can) - {Can.MOVE}

    def send(self, order: Order, now: float) -> None:
        self._make_room()
        if order.epoch < self._alive[order.row]:  # fenced off
            self._reports.append(Report(News.STARTED, order.row, int(self._alive[order.row]), now, order.done))
        elif order.verb is Verb.START and order.row in self._ended:
            self._reports.append(self._ended[order.row])
        elif order.verb is Verb.START and order.epoch <= self._over[order.row]:  # its stop has come before it
            self._reports.append(Report(News.STOPPED, order.row, order.epoch, now, order.done))
        elif order.verb is Verb.START:
            self._alive[order.row] = order.epoch
            news = News.SUSPENDED if order.suspended else News.STARTED
            self._reports.append(Report(news, order.row, order.epoch, now, order.done, order.devices, revision=order.revision))
            if order.saves:
                self._reports.append(Report(News.SAVED, order.row, order.epoch, now, order.done, order.devices, revision=order.revision))
        else:
            self._alive[order.row] = -1
            self._over[order.row] = max(int(self._over[order.row]), order.epoch)
            self._reports += [Report(news, order.row, order.epoch, now, order.done) for news in (News.SAVED, News.STOPPED)]

    def next_time(self) -> float:
        return self.state.now if self._reports else float(self._ends()[1].min(initial=math.inf))

    def receive(self, now: float) -> list[Report]:
        found, self._reports = self._reports, []
        for row, seen, at in zip(*self._ends()):
            if seen <= now:
                end = Report(News.FINISHED, int(row), int(self._alive[row]), float(at), float(self.state.tables.F[c.WORK, row]))
                self._ended[int(row)] = end
                found.append(end)
                self._alive[row] = -1
        return found

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        """Whom it ran there is known to be gone already."""

    def _make_room(self) -> None:
        """The tables grow when jobs are submitted."""
        short = self.state.tables.I.shape[1] - len(self._alive)
        if short > 0:
            self._alive, self._over = (np.concatenate([each, np.full(short, -1)]) for each in (self._alive, self._over))

    def _ends(self) -> tuple[Ints, Floats, Floats]:
        """Rows that run, when the end of each is seen (when it is due, and done), and when it is."""
        self._make_room()
        F, I, rows = self.state.tables.F, self.state.tables.I, self.state.running_rows
        rows = rows[(I[c.PHASE][rows] == RUNNING) & (self._alive[rows] == I[c.EPOCH][rows]) & (F[c.RATE][rows] > 0.0)]
        at = F[c.SINCE][rows] + (F[c.WORK][rows] - F[c.DONE][rows]) / F[c.RATE][rows]
        return rows, np.maximum(F[c.DUE][rows], at), at


@dataclass
class Acknowledged(Simulation):
    """One run through orders and reports."""

    executor: Executor | None = field(default=None, kw_only=True)  # None: a prompt one

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reconciler = Reconciler(self.state, self.engine.grants, self.executor or Prompt(self.state), apply=self.engine.apply)
        self.engine.inputs.absorb = self.reconciler.absorb

    def run(self) -> None:
        """Run to the end, step by step: executors answer between two decisions."""
        self._run_steps()
        self.engine.grants.close_open_intervals()

    # --- how time passes ------------------------------------------------------------------------------------------------
    def _wait(self) -> float:
        while not self._over():
            look = self.agenda.next_look(self._next_event())
            if self._next_news() >= min(look, self.until):
                return look
            self._advance()
        return math.inf

    def _pass(self, until: float) -> None:
        while self._next_news() < until:
            self._advance()
        self.state.now = until

    def _over(self) -> bool:
        """Whether nobody is left and nothing is to come: machines may go on talking."""
        count = self.state.lists.number
        if count[ls.ACTIVE] or count[ls.NEXT] < len(self.state.tables.ids) or self._next_event() < math.inf:
            return False
        return not (self.agenda.touched and self._kept_out())

    def _kept_out(self) -> bool:
        """Whether admission keeps jobs out: an end that nobody has looked at yet may let them in."""
        I, came = self.state.tables.I, int(self.state.lists.number[ls.NEXT])
        reason = I[c.REASON, :came]
        return bool(((I[c.PHASE, :came] == HELD_BACK) & ((reason == Reason.QUOTA) | (reason == Reason.LOAD_LIMIT))).any())

    def _next_news(self) -> float:
        """When something is to be done between two decisions."""
        reconciler = self.reconciler
        soonest = min(reconciler.executor.next_time(), self._next_repeat())
        if self.state.regime.finish_at_boundary:
            return soonest
        soonest = min(soonest, self._next_event())
        return min(soonest, self.engine.grants.speeds_until, self._next_due()) if self.engine.grants.minds_changes else soonest

    def _next_repeat(self) -> float:
        """When an order that was not answered is sent again, or a silent gang is asked."""
        return self.reconciler.next_time()

    def _next_due(self) -> float:
        state = self.state
        return next_finish(state.tables.F, state.tables.I, state.lists)

    def _advance(self) -> None:
        """Go to the next thing that happens, and take it in."""
        state, grants = self.state, self.engine.grants
        state.now = max(state.now, self._next_news())
        changes = self._next_event() <= state.now and not state.regime.finish_at_boundary
        in_order = not state.regime.finish_at_boundary and (grants.minds_changes or changes)
        happened = self._finish_due() if in_order else self.reconciler.catch_up()
        if changes:
            happened |= self._change_nodes()
        if in_order and grants.speeds_until <= state.now:
            grants.refresh()
        if happened:
            self.agenda.touch()
        self.engine.next_finish = math.nan

    # --- what has been acknowledged -------------------------------------------------------------------------------------
    def _follow(self) -> None:
        if self.reconciler.follow():
            self.agenda.touch()
        self.engine.next_finish = math.nan

    def _finish_due(self) -> bool:
        state = self.state
        happened = self.reconciler.catch_up()
        self.reconciler.see_ended()
        raise_estimates(state)
        return happened

    def _finish_in_order(self) -> bool:
        return False  # time has passed from one to the next already

    def _see(self) -> None:
        state, t = self.state, self.state.tables
        self._finish_due()
        arrive(t.F, t.I, state.lists, state.now, self._load_limit)

    def _tidy_finished(self) -> bool:
        """Whether any has finished since the last look."""
        self.state.lists.number[ls.FINISHED] = self.reconciler.finished
        self.reconciler.finished = 0
        return bool(self.state.lists.number[ls.FINISHED])

    def _took_in(self, value: Input) -> None:
        if isinstance(value, NodeEvent) and value.kind == "down":
            self.reconciler.node_lost(value.find(self.state.tables.cluster))
        else:
            self.reconciler.follow()


def raise_estimates(state: State) -> None:
    """Whoever was due by now and has not finished was estimated too low: as long again (as in `advance.finish_due`)."""
    F, I, rows, now = state.tables.F, state.tables.I, state.running_rows, state.now
    for row in rows[(I[c.PHASE][rows] == RUNNING) & (F[c.DUE][rows] <= now)].tolist():
        done = float(F[c.DONE, row] + F[c.RATE, row] * max(0.0, now - F[c.SINCE, row]))
        F[c.ESTIMATE, row] = 2.0 * done
        set_due(F, row)
        if F[c.DUE, row] <= now:  # it has had all the work that the trace knows of; only the executor can say more
            F[c.ESTIMATE, row] = max(2.0 * done, done + float(F[c.RATE, row]))
            F[c.DUE, row] = F[c.SINCE, row] + (F[c.ESTIMATE, row] - F[c.DONE, row]) / F[c.RATE, row]
