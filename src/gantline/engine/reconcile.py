"""Making intent and reality agree: which orders are due, and what reports mean.

The engine's tables hold the intent: who shall hold which devices. This file holds what is known of reality: which grants
occupy each device. A grant is ordered to start only when nobody is known on its devices but those who shall be there with it; an
order is repeated until it is answered. Everything is level-triggered, so a lost, late or doubled message changes nothing but the
time it takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gantline.core import columns as c
from gantline.core.grant import Grant
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine.executor import Executor, News, Order, Report, Verb
from gantline.engine.gang import close_interval, complete, open_interval, rest, set_due
from gantline.engine.grants import Grants
from gantline.engine.node_changes import fail_gang, lose_node
from gantline.engine.ranks import B_ACTIVE, drop_sorted
from gantline.engine.state import State
from gantline.engine.transitions import log_shared


@dataclass
class Live:
    """A grant that may exist in reality."""

    row: int
    epoch: int
    devices: tuple[int, ...]
    node: int  # of a grant without devices
    nodes: frozenset[int]  # where it has a stake: devices, CPUs or memory
    grant: Grant | None  # as it was last told to the executor
    started: bool = False
    asked: Verb = Verb.START
    next_try: float = 0.0  # when to ask (again), unless an answer comes first


@dataclass
class Reconciler:
    """Intent in the tables, reality in `live`."""

    state: State
    grants: Grants
    executor: Executor
    patience: float = 30.0  # seconds before an order is repeated
    silence: float = 120.0  # seconds without a word from a grant that runs, after which it is asked
    live: dict[int, Live] = field(default_factory=dict)  # by row: at most one incarnation each
    occupants: dict[int, set[int]] = field(default_factory=dict)  # device -> rows

    def __post_init__(self) -> None:
        self.books = self.grants.holdings

    def step(self) -> None:
        """Send every order that is due."""
        state, t = self.state, self.state.tables
        for row in state.rows.tolist():
            phase = Phase(int(t.I[c.PHASE, row]))
            known = self.live.get(row)
            if phase == Phase.STOPPING and known is None:  # it never got as far as reality
                rest(t.F, t.I, row, state.now)
            elif phase == Phase.STARTING and known is None:
                self._begin(row)
        for known in list(self.live.values()):
            phase = Phase(int(t.I[c.PHASE, known.row]))
            wanted = Verb.STOP if phase == Phase.STOPPING or int(t.I[c.EPOCH, known.row]) != known.epoch else Verb.START
            told = known.grant if wanted is Verb.STOP else t.granted.get(known.row)
            if wanted is not known.asked or told != known.grant:
                known.asked, known.grant, known.next_try = wanted, told, state.now
            if known.next_try <= state.now:
                self.executor.send(self._order(known), state.now)  # to start what runs already is to ask after it
                known.next_try = state.now + self.patience
        state.rebuild()

    def _begin(self, row: int) -> None:
        """Start a grant, unless somebody is still on its devices who is not to share them with it."""
        state, t = self.state, self.state.tables
        held = self.books.of(row)
        mates = self._mates(row, held.devices)
        for other in {other for device in held.devices for other in self.occupants.get(device, ())}:
            if other not in mates or self.live[other].epoch != t.I[c.EPOCH, other]:
                return
        nodes = frozenset((*self.books.nodes(held.devices), *(node for node, _, _ in held.side), held.node)) - {-1}
        self.live[row] = Live(row, int(t.I[c.EPOCH, row]), held.devices, held.node, nodes, t.granted.get(row))
        for device in held.devices:
            self.occupants.setdefault(device, set()).add(row)
        state.log.reserve(8, len(held.devices) + 8)
        open_interval(t.I, t.D, row, state.now, state.log.LI, state.log.LF, state.log.LD, state.log.LN)
        log_shared(state, row, held)

    def next_time(self) -> float:
        """When an unanswered order will be repeated, or a silent grant asked."""
        return min((known.next_try for known in self.live.values()), default=float("inf"))

    def absorb(self, report: Report) -> bool:
        """Take in one report; whether it changed anything that a policy could see."""
        state, t = self.state, self.state.tables
        known = self.live.get(report.row)
        if known is None or report.epoch != known.epoch:
            return False  # of a grant that is over: nothing to learn
        row = report.row
        if report.news is News.STARTED:
            if known.asked is Verb.START:
                known.next_try = state.now + self.silence
            if known.started or int(t.I[c.PHASE, row]) != Phase.STARTING:
                known.started = True
                return False
            known.started = True
            t.I[c.PHASE, row] = Phase.RUNNING
            t.F[c.SINCE, row] = report.time
            t.F[c.DONE, row] = report.done
            set_due(t.F, row)
            return True
        stopping = int(t.I[c.PHASE, row]) == Phase.STOPPING
        if report.news is News.FINISHED:
            self._clear(known)
            complete(*state.kernel_tables(), row, report.time, state.log.LI, state.log.LF)
            state.B[B_ACTIVE] = drop_sorted(state.active, state.B[B_ACTIVE], row)
            self.grants.forget_finished()
            return True
        self._clear(known)
        reason = Reason(int(t.I[c.REASON, row])) if stopping else Reason.NODE_LOST
        t.F[c.DONE, row] = report.done
        t.F[c.SAFE, row] = report.done
        t.F[c.SINCE, row] = state.now
        t.F[c.RATE, row] = 0.0
        if stopping:
            close_interval(t.I, row, state.now, int(reason), state.log.LI, state.log.LF)
            rest(t.F, t.I, row, state.now)
        else:
            fail_gang(state, row)
            self.grants.refresh()
        return True

    def node_lost(self, node: int) -> None:
        """The node is gone: what it ran is over, and gangs that lost a part must be stopped on the others."""
        state, t = self.state, self.state.tables
        hit = [known for known in self.live.values() if node in known.nodes]
        epochs = {known.row: int(t.I[c.EPOCH, known.row]) for known in hit}
        lose_node(state, node)
        for known in hit:
            gone = [device for device in known.devices if int(t.D[c.D_NODE, device]) == node]
            self._vacate(known.row, gone)
            known.devices = tuple(device for device in known.devices if device not in gone)
            known.nodes -= {node}
            stopping = int(t.I[c.PHASE, known.row]) == Phase.STOPPING
            if stopping:  # it was on its way out; what is left of it holds no whole gang any more
                close_interval(t.I, known.row, state.now, int(Reason.NODE_LOST), state.log.LI, state.log.LF)
            if not known.nodes:
                self._clear(known)
                if stopping:
                    rest(t.F, t.I, known.row, state.now)
            elif not stopping:  # the survivors of the gang must go before it can start again
                t.I[c.EPOCH, known.row] = epochs[known.row] + 1
                t.I[c.PHASE, known.row] = Phase.STOPPING
        state.rebuild()

    def _clear(self, known: Live) -> None:
        self._vacate(known.row, known.devices)
        self.live.pop(known.row, None)

    def _vacate(self, row: int, devices: Iterable[int]) -> None:
        for device in devices:
            self.occupants[device].discard(row)
            if not self.occupants[device]:
                del self.occupants[device]

    def _mates(self, row: int, devices: Iterable[int]) -> frozenset[int]:
        """Rows that shall be on these devices too."""
        return frozenset(other for device in devices for other in self.books.tenants.get(device, ())) - {row}

    def _order(self, known: Live) -> Order:
        t = self.state.tables
        done, rate = float(t.F[c.DONE, known.row]), float(t.F[c.RATE, known.row])
        still_there = {
            other for device in known.devices for other in self.occupants.get(device, ())
        }  # was let in beside it, or it beside them
        mates = self._mates(known.row, known.devices) | (still_there - {known.row})
        return Order(known.asked, known.row, known.epoch, known.devices, done, rate, known.node, mates, known.grant)
