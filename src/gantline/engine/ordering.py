"""Which orders an executor is sent: what the tables want and what is known of reality, grant by grant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gantline.core.columns import Job
from gantline.engine.executor import Executor, Order, Verb
from gantline.engine.holdings import Holdings
from gantline.engine.in_flight import HOLDS, InFlight
from gantline.engine.in_place import InPlace
from gantline.engine.log import Interval
from gantline.engine.reality import LiveGang, Reality
from gantline.engine.state import State


@dataclass
class Ordering:
    """Compares intent with reality, and orders what is missing."""

    state: State
    books: Holdings
    executor: Executor
    reality: Reality
    patience: float = 30.0  # seconds before an order is repeated
    sent: int = 0  # orders so far
    clock: Callable[[], float] | None = None  # None: time is what the state says

    def __post_init__(self) -> None:
        self.live = self.reality.live
        self.in_flight = InFlight(self.state, self.books, self.reality)
        self.promises = self.in_flight.promises
        self.in_place = InPlace(self.state, self.books, self.reality, self.in_flight, self.executor, self._mates)

    def present(self) -> float:
        """The executor's time; after a restart it is later than the instant of the decision."""
        return self.state.now if self.clock is None else max(self.state.now, self.clock())

    def send_due(self) -> None:
        """Every order that is due, and those again that were not answered in time."""
        state, t = self.state, self.state.tables
        for row in [row for row in sorted(self.promises) if row not in self.live]:
            self._begin(row)
        for live in list(self.live.values()):
            if self._rests_easy(live):
                continue
            stays = self.in_place.carry_over(live)
            if self.wanted(live) and live.started and self.in_place.needs_restart(live):
                self.in_place.restart(live)
            rest = not stays and self.in_place.rests(live)
            wanted = Verb.START if stays or rest or self.wanted(live) else Verb.STOP
            if wanted is not live.asked:
                live.asked, live.next_try = wanted, state.now
            if rest is not live.rest or (live.started and wanted is Verb.START and self.in_place.asks_save(live)):
                live.rest, live.suspended, live.next_try = rest, False, state.now
                live.saves = state.asked_saves.get(live.row, 0)
                live.revision += 1
            if not self.wanted(live) and wanted is Verb.START and live.next_try > state.now:
                continue  # it waits for others to make room, or is paused
            if self.wanted(live) and (live.rate != t.F[Job.RATE, live.row] or live.grant != t.granted.get(live.row)):
                live.rate, live.grant, live.next_try = float(t.F[Job.RATE, live.row]), t.granted.get(live.row), state.now
                live.revision += 1
            if live.next_try <= state.now:
                live.next_try = self.present() + self.patience
                self.send(self._order(live))

    def _rests_easy(self, live: LiveGang) -> bool:
        """Whether it runs as the tables want it, nothing about it has changed and it need not be asked: the usual case, found quickly."""
        state, t, row = self.state, self.state.tables, live.row
        return (
            live.next_try > state.now
            and live.started
            and live.asked is Verb.START
            and not live.rest
            and row not in self.promises
            and not state.asked_saves
            and live.grant is t.granted.get(row)
            and bool(live.rate == t.F[Job.RATE, row])
            and self.wanted(live)
        )

    def send(self, order: Order) -> None:
        """One order goes out."""
        self.sent += 1
        self.executor.send(order, self.state.now)

    def wanted(self, live: LiveGang) -> bool:
        """Whether the tables want this very grant to run."""
        I = self.state.tables.I
        return int(I[Job.EPOCH, live.row]) == live.epoch and int(I[Job.PHASE, live.row]) in HOLDS

    def _begin(self, row: int) -> None:
        """Order a promised start, unless a gang that may not share its devices is still on them."""
        promise = self.promises[row]
        devices = self.books.of(row).devices
        if not all(self.in_place.may_be_beside(row, other, devices) for other in self.reality.on(devices)):
            return
        live = self.enter(row, promise.epoch, promise.interval)
        live.pause = promise.pause
        if promise.interval >= 0:
            self.state.log.LF[Interval.START, promise.interval] = self.state.now

    def enter(self, row: int, epoch: int, interval: int) -> LiveGang:
        """From now on the grant may be on its devices."""
        t, held = self.state.tables, self.books.of(row)
        nodes = frozenset((*self.books.nodes(held.devices), *(node for node, *_ in held.side), held.node)) - {-1}
        rate, grant = float(t.F[Job.RATE, row]), t.granted.get(row)
        asked = self.state.asked_saves.get(row, 0)  # it begins with all that is saved
        now = self.state.now
        live = LiveGang(row, epoch, held.devices, held.node, nodes, interval, rate, grant, next_try=now, saves=asked, saves_done=asked)
        live.most = t.trials.get(row, math.inf)
        return self.reality.enter(live)

    def _mates(self, row: int, devices: Iterable[int]) -> frozenset[int]:
        """Rows that shall be on these devices too."""
        return frozenset(other for device in devices for other in self.books.tenants(device)) - {row}

    def _order(self, live: LiveGang) -> Order:
        done = float(self.state.tables.F[Job.DONE, live.row])
        there = self.reality.on(live.devices)  # was let in beside it, or it beside them
        mates = self._mates(live.row, live.devices) | (there - {live.row})
        devices = live.devices if live.target is None else live.target
        terms = (live.rate, live.node, mates, live.grant, live.pause, live.revision, live.onto, live.rest, live.saves)
        return Order(live.asked, live.row, live.epoch, devices, done, *terms)
