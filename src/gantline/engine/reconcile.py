"""Makes intent and reality agree: what reports mean. `ordering.py` decides which orders are due.

A commit changes the tables as if every order were carried out at once, by any driver; that is the intent. Beside it are what is known of
reality, and what is in flight between the two (both in `in_flight.py`). A grant that the executor has not acknowledged makes no
progress: its row is STARTING, or RESIZING when it keeps some of its devices. The acknowledgement makes it RUNNING, and if that came later
than the decision, its progress begins then. A row that shall not run any more is CHECKPOINTING, then STOPPING, until the executor says that
it is gone; what was settled is corrected by what the executor says. Where every order is acknowledged in the instant of the commit, all of
this changes phases and changes them back.

A grant is ordered to start only when no gang is known on its devices but those that share them with it, so a move is a stop, its
acknowledgement, then a start. Orders are repeated until they are answered. Everything is level-triggered: a lost, late or doubled message
changes nothing but the time it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gantline.core.columns import Job, Node, elapsed
from gantline.core.phases import CHECKPOINTING, PENDING, RESIZING, RUNNING, STARTING, STOPPING, Phase
from gantline.engine.executor import Executor, News, Order, Report, Verb
from gantline.engine.gang import complete, set_due
from gantline.engine.grants import Grants
from gantline.engine.in_flight import HOLDS, InFlight, LiveGang, Promise, Reality
from gantline.engine.log import Interval
from gantline.engine.node_changes import fail_gang
from gantline.engine.ordering import Ordering
from gantline.engine.ranks import leave
from gantline.engine.state import State


@dataclass
class Reconciler:
    """Intent in the tables, what is known of reality beside it, and what is in flight between the two."""

    state: State
    grants: Grants
    executor: Executor
    silence: float = 120.0  # seconds without a report from a running grant, after which it is asked
    apply: Callable[[Report], bool] | None = None  # how reports are taken in, if not by `absorb` directly
    reality: Reality = field(default_factory=Reality)
    finished: int = 0  # number of rows that have finished
    surprises: int = 0  # reports that were no answer to an order

    def __post_init__(self) -> None:
        self.holdings, self.live = self.grants.holdings, self.reality.live
        self.orders = Ordering(self.state, self.holdings, self.executor, self.reality)
        self.in_flight, self.in_place = self.orders.in_flight, self.orders.in_place
        self.promises = self.in_flight.promises
        self.ended: list[Report] = []  # finishes that the regime does not see before the boundary
        rows, I = self.state.rows, self.state.tables.I
        for row in rows[np.isin(I[Job.PHASE][rows], HOLDS)].tolist():  # what still runs after a restart of the loop is adopted
            self.in_flight.adopt(row)
            self.orders.enter(row, int(I[Job.EPOCH, row]), int(I[Job.INTERVAL, row])).revision = 1  # ordering its start again asks after it

    @property
    def sent(self) -> int:
        """Orders so far."""
        return self.orders.sent

    # --- intent has changed ---------------------------------------------------------------------------------------------
    def follow(self) -> bool:
        """Send orders for everything in the tables that is not yet real. Returns whether an unforeseen report came back."""
        surprises = self.surprises
        self.in_flight.mark()
        self.catch_up()
        return self.surprises > surprises

    def next_time(self) -> float:
        """When an unanswered order will be repeated, or a silent grant asked."""
        return min((live.next_try for live in self.live.values()), default=math.inf)

    def catch_up(self) -> bool:
        """Send every order that is due and take in every report that is there; whether a policy could see a difference."""
        seen, now = False, self.state.now
        while True:
            self.orders.send_due()
            reports = self.executor.receive(now)
            if not reports:
                break
            finished = self.finished
            for report in reports:
                seen |= (self.apply or self.absorb)(report)
            if self.finished > finished and self.grants.minds_changes:
                self.grants.forget_finished()
            self.in_flight.mark()
        self.state.rebuild()
        return seen

    # --- reports --------------------------------------------------------------------------------------------------------
    def absorb(self, report: Report) -> bool:
        """Take in one report; whether it changed anything that a policy could see."""
        row, live = report.row, self.live.get(report.row)
        if report.epoch <= self.reality.over.get(row, -1) or not self.state.tables.ids[row]:
            return False  # of a grant that is over, or of a job that ended before the checkpoint we began with: nothing to learn
        if report.news is News.FINISHED:
            return self._finish(report)
        if live is not None and report.epoch == live.onto and report.news in (News.STOPPED, News.FAILED):
            return self._gone(live, report)  # it ended before it could go on under the new grant
        if live is None or live.epoch != report.epoch:
            return self._unknown(report)
        if report.news is News.STARTED:
            return self._started(live, report)
        if report.news is News.PROGRESS:
            return self._progress(live, report)
        if report.news is News.SUSPENDED:
            return self._suspended(live, report)
        if report.news is News.SAVED:
            self._saved(live, report)
            return bool(self.state.tables.I[Job.LOCKED, row])  # it may be stopped now
        return self._gone(live, report)

    def _started(self, live: LiveGang, report: Report) -> bool:
        t, row = self.state.tables, live.row
        live.started = True
        if report.revision >= live.revision:
            live.suspended = False
        if live.asked is Verb.START and not live.rest and live.saves <= live.saves_done:
            live.next_try = self.state.now + self.silence
        self.in_place.arrived(live)
        if int(t.I[Job.PHASE, row]) not in (STARTING, RESIZING) or int(t.I[Job.EPOCH, row]) != live.epoch:
            return False
        promise = self.promises.pop(row)
        t.I[Job.PHASE, row] = RUNNING
        moved = report.done != t.F[Job.DONE, row]
        if moved:
            t.F[Job.DONE, row] = t.F[Job.SAFE, row] = report.done
        if report.time > promise.decided:
            start_late(self.grants, row, report.time, promise)
        elif moved:
            set_due(t.F, row)
        return True

    def _progress(self, live: LiveGang, report: Report) -> bool:
        """A report of progress."""
        if not self.orders.wanted(live) or int(self.state.tables.I[Job.PHASE, live.row]) != RUNNING:
            return False
        live.next_try = self.state.now + self.silence
        note_progress(self.state, live.row, report)
        return True

    def _suspended(self, live: LiveGang, report: Report) -> bool:
        """It is paused: others of its group may use its devices."""
        live.started = True
        if live.rest and report.revision >= live.revision:
            if not live.suspended:  # for the log its turn has ended, although its processes are there
                self._log_end(live)
                live.interval = -1
            live.suspended = True
            live.next_try = self.state.now + self.silence
        return False

    def _saved(self, live: LiveGang, report: Report) -> None:
        F = self.state.tables.F
        if self.orders.wanted(live) and live.asked is Verb.START:  # it was asked to, and goes on
            F[Job.SAFE, live.row] = max(float(F[Job.SAFE, live.row]), report.done)
            if report.revision >= live.revision:
                live.saves_done = live.saves
            return
        live.saved = True
        if not self.orders.wanted(live):
            correct(self.state, live.row, report, live.most)
            if self.state.tables.I[Job.PHASE, live.row] == CHECKPOINTING:
                self.state.tables.I[Job.PHASE, live.row] = STOPPING

    def _gone(self, live: LiveGang, report: Report) -> bool:
        """It has stopped or failed, as it should or not."""
        I, row, wanted = self.state.tables.I, live.row, self.orders.wanted(live)
        self._clear(live)
        if wanted:
            self.surprises += 1
            self.in_flight.forget(row)
            fail_gang(self.grants, row, keep=report.done)
            self.grants.refresh()
            return True
        correct(self.state, live.row, report, live.most)
        if int(I[Job.PHASE, row]) in (CHECKPOINTING, STOPPING):
            I[Job.PHASE, row] = PENDING
        return True

    def _finish(self, report: Report) -> bool:
        """A finished job counts as finished, whatever was planned for it."""
        live = self.live.get(report.row)
        if live is not None and report.epoch in (live.epoch, live.onto):
            self._clear(live)
        self.reality.over[report.row] = report.epoch
        self.surprises += 1
        if self.state.regime.finish_at_boundary:
            self.ended.append(report)
            return True
        return self._complete(report.row, report.time)

    def see_ended(self) -> None:
        """The boundary is here: finishes that were held back until now count."""
        ended, self.ended = self.ended, []
        for report in ended:
            self._complete(report.row, self.state.now)
        if ended:
            if self.grants.minds_changes:
                self.grants.forget_finished()
            self.state.rebuild()

    def _complete(self, row: int, at: float) -> bool:
        done = complete_row(self.state, self.in_flight, row, at, unsent=row in self.promises and row not in self.live)
        self.finished += int(done)
        return done

    def _unknown(self, report: Report) -> bool:
        """An unexpected incarnation is running: stop it; its devices stay blocked until it is gone."""
        live = self.live.get(report.row)
        if report.news not in (News.STARTED, News.SAVED) or (live is not None and report.epoch < live.epoch):
            return False
        if live is None:
            nodes = frozenset(self.holdings.nodes(report.devices))
            self.reality.enter(LiveGang(report.row, report.epoch, report.devices, -1, nodes, asked=Verb.STOP, next_try=self.state.now))
        else:
            self.orders.send(Order(Verb.STOP, report.row, report.epoch))
        return False

    # --- nodes ----------------------------------------------------------------------------------------------------------
    def node_lost(self, node: int) -> None:
        """A node is gone, and the tables have it so: what it ran is over, and gangs that lost a part must be stopped on the others."""
        state, t = self.state, self.state.tables
        first, count = int(t.NI[Node.FIRST, node]), int(t.NI[Node.GPUS, node])
        hit = [live for live in self.live.values() if node in live.nodes]
        self.executor.fail(node, frozenset(range(first, first + count)), state.now)
        for live in hit:
            gone = [device for device in live.devices if first <= device < first + count]
            self.reality.vacate(live, gone)
            live.devices = tuple(device for device in live.devices if device not in gone)
            live.target = None if live.target is None else tuple(device for device in live.target if device not in gone)
            live.nodes -= {node}
            live.interval = -1  # it ended here for the log: what is left of it is no gang
            if not live.nodes:
                self._clear(live)
                if int(t.I[Job.PHASE, live.row]) in (CHECKPOINTING, STOPPING):
                    t.I[Job.PHASE, live.row] = PENDING
        self.follow()

    def _clear(self, live: LiveGang) -> None:
        """The incarnation is gone; log until when it was there."""
        self.reality.leave(live)
        self._log_end(live)

    def _log_end(self, live: LiveGang) -> None:
        if live.interval >= 0 and int(self.state.tables.I[Job.INTERVAL, live.row]) != live.interval:
            self.state.log.LF[Interval.END, live.interval] = self.state.now


# What reports of an executor do to the tables, once it is known which row they are about.


def start_late(grants: Grants, row: int, when: float, promise: Promise) -> None:
    """It runs since then, and not since it was decided."""
    t = grants.state.tables
    grant = t.granted.get(row)
    t.F[Job.SINCE, row], t.F[Job.LAST_START, row] = when + promise.pause, when
    if grant is not None:
        if math.isfinite(grant.assignment.limit):
            t.F[Job.LIMIT_END, row] = when + grant.assignment.limit
            t.F[Job.UNTIL, row] = min(grant.assignment.until, when + grant.assignment.limit)
        if grant.fluid:
            grants.fluid.start(row)
        grants.refresh()  # its neighbours may have changed since
    set_due(t.F, row)


def note_progress(state: State, row: int, report: Report) -> None:
    """What is saved is safe, and how much is left is known better than before."""
    t = state.tables
    t.F[Job.SAFE, row] = max(float(t.F[Job.SAFE, row]), report.done)
    for name, value in report.metrics.items():
        t.metric(name)[row] = value
    if report.total > float(t.F[Job.DONE, row]):
        t.F[Job.ESTIMATE, row] = report.total
        t.unestimated.discard(row)
        set_due(t.F, row)


def correct(state: State, row: int, report: Report, most: float) -> None:
    """The executor's report corrects what was settled when the row was ordered to stop; not more than `most` of it counts."""
    F, done = state.tables.F, min(report.done, most)
    if report.news is News.FAILED:
        F[Job.LOST, row] += max(0.0, float(F[Job.DONE, row]) - done)
    F[Job.DONE, row] = F[Job.SAFE, row] = done


def complete_row(state: State, in_flight: InFlight, row: int, at: float, unsent: bool) -> bool:
    """The job has finished at that time, if it is still there; `unsent`: its last grant was never ordered, so it has no length."""
    F, I = state.tables.F, state.tables.I
    phase = Phase(int(I[Job.PHASE, row]))
    if not (phase.active or state.withheld.get(row) is Phase.HELD):
        return False
    state.withheld.pop(row, None)  # a row that finishes while on hold has finished
    if math.isinf(F[Job.WORK, row]):  # its amount of work was unknown until now
        F[Job.WORK, row] = F[Job.DONE, row] + F[Job.RATE, row] * elapsed(F, I, row, at)
    interval = int(I[Job.INTERVAL, row])
    complete(state.matrices, row, at, state.log.columns)
    if unsent and interval >= 0:
        state.log.never_held(interval)
    in_flight.forget(row)
    if phase.active:
        leave(state.lists, row)
    return True
