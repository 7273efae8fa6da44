"""Which orders an executor is sent: what the tables want and what is known of reality, grant by grant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gantline.core.grant import Grant
from gantline.core.host_resources import amounts_beside
from gantline.core.phases import PENDING, RUNNING
from gantline.core.plan import Assignment
from gantline.engine.executor import USUAL, Can, Executor, Order, Verb
from gantline.engine.gang import set_due, settle
from gantline.engine.holdings import Holdings
from gantline.engine.in_flight import HOLDS, InFlight, LiveGang, Reality
from gantline.engine.log import Interval
from gantline.engine.runs import is_trial
from gantline.engine.state import State


@dataclass
class Ordering:
    """Compares intent with reality, and orders what is missing."""

    state: State
    holdings: Holdings
    executor: Executor
    reality: Reality
    patience: float = 30.0  # seconds before an order is repeated
    sent: int = 0  # orders so far
    clock: Callable[[], float] | None = None  # None: time is what the state says

    def __post_init__(self) -> None:
        self.live = self.reality.live
        self.in_flight = InFlight(self.state, self.holdings, self.reality)
        self.promises = self.in_flight.promises
        self.in_flight.rests = self.rests

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
            stays = self.carry_over(live)
            if self.wanted(live) and live.started and self.needs_restart(live):
                self.restart(live)
            rest = not stays and self.rests(live)
            wanted = Verb.START if stays or rest or self.wanted(live) else Verb.STOP
            if wanted is not live.asked:
                live.asked, live.next_try = wanted, state.now
            if rest is not live.rest or (live.started and wanted is Verb.START and self.asks_save(live)):
                live.rest, live.suspended, live.next_try = rest, False, state.now
                live.saves = state.asked_saves.get(live.row, 0)
                live.revision += 1
            if not self.wanted(live) and wanted is Verb.START and live.next_try > state.now:
                continue  # it waits for others to make room, or is paused
            if self.wanted(live) and (live.rate != t.jobs.rate[live.row] or live.grant != t.granted.get(live.row)):
                live.rate, live.grant, live.next_try = float(t.jobs.rate[live.row]), t.granted.get(live.row), state.now
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
            and bool(live.rate == t.jobs.rate[row])
            and self.wanted(live)
        )

    def send(self, order: Order) -> None:
        """One order goes out."""
        self.sent += 1
        self.executor.send(order, self.state.now)

    def wanted(self, live: LiveGang) -> bool:
        """Whether the tables want this very grant to run."""
        jobs = self.state.tables.jobs
        return int(jobs.epoch[live.row]) == live.epoch and int(jobs.phase[live.row]) in HOLDS

    def _begin(self, row: int) -> None:
        """Order a promised start, unless a gang that may not share its devices is still on them."""
        promise = self.promises[row]
        devices = self.holdings.of(row).devices
        if not all(self.may_be_beside(row, other, devices) for other in self.reality.on(devices)):
            return
        live = self.enter(row, promise.epoch, promise.interval)
        live.pause = promise.pause
        if promise.interval >= 0:
            self.state.log.LF[Interval.START, promise.interval] = self.state.now

    def enter(self, row: int, epoch: int, interval: int) -> LiveGang:
        """From now on the grant may be on its devices."""
        t, held = self.state.tables, self.holdings.of(row)
        nodes = frozenset((*self.holdings.nodes(held.devices), *(node for node, *_ in held.side), held.node)) - {-1}
        rate, grant = float(t.jobs.rate[row]), t.granted.get(row)
        asked = self.state.asked_saves.get(row, 0)  # it begins with all that is saved
        now = self.state.now
        live = LiveGang(row, epoch, held.devices, held.node, nodes, interval, rate, grant, next_try=now, saves=asked, saves_done=asked)
        live.most = t.trials.get(row, math.inf)
        return self.reality.enter(live)

    def _mates(self, row: int, devices: Iterable[int]) -> frozenset[int]:
        """Rows that shall be on these devices too."""
        return frozenset(other for device in devices for other in self.holdings.tenants(device)) - {row}

    def _order(self, live: LiveGang) -> Order:
        done = float(self.state.tables.jobs.done[live.row])
        there = self.reality.on(live.devices)  # was let in beside it, or it beside them
        mates = self._mates(live.row, live.devices) | (there - {live.row})
        devices = live.devices if live.target is None else live.target
        terms = (live.rate, live.node, mates, live.grant, live.pause, live.revision, live.onto, live.rest, live.saves)
        return Order(live.asked, live.row, live.epoch, devices, done, *terms)

    # --- what can be done to a gang that runs without stopping it -------------------------------------------------------
    #
    # Another grant, a rest while others of its rotation go on, a save. What an executor cannot do is planned as a stop
    # and a start, and charged for. A gang that goes on under a new grant (`carry_over`) gets the new epoch while it runs:
    # until that is acknowledged it may be on its old devices and on the new ones. After its turn, a gang rests where it
    # is, if only its rotation uses those devices: its processes stay, and others of the rotation may begin when it is
    # known to stand still.

    def can(self, row: int) -> frozenset[Can]:
        """What the executor can do to this gang."""
        able = getattr(self.executor, "can", None)
        found: frozenset[Can] = able(row) if able is not None else USUAL
        return found

    # --- another grant --------------------------------------------------------------------------------------------------
    def carry_over(self, live: LiveGang) -> bool:
        """Let a gang go on under the grant that was promised to it; whether it now does, or will when others have made room."""
        promise = self.in_flight.promises.get(live.row)
        if promise is None or promise.epoch == live.epoch or not live.started or live.asked is Verb.STOP:
            return False
        if is_trial(live.grant) != is_trial(self.state.tables.granted.get(live.row)):
            return False
        held, able = self.holdings.of(live.row), self.can(live.row)
        moves = set(held.devices) != set(live.devices)
        beside = Can.DEVICES in able and not set(held.devices).isdisjoint(live.devices)
        if (moves and not beside and not (Can.MOVE in able and len(held.devices) == len(live.devices))) or held.node != live.node:
            return False
        if (live.rest and Can.SUSPEND not in able) or not (moves or live.rest):
            return False
        if _terms(live.grant)[0] != _terms(self.state.tables.granted.get(live.row))[0] and Can.BATCH not in able:
            return False
        for other in self.reality.on(held.devices) - {live.row}:
            if not self.may_be_beside(live.row, other, held.devices):
                return self._leaves(self.reality.live[other])  # it waits, but only for gangs that are leaving
        self._carry_over(live, held.devices)
        return True

    def _carry_over(self, live: LiveGang, devices: tuple[int, ...]) -> None:
        t, promise = self.state.tables, self.in_flight.promises[live.row]
        left = tuple(device for device in live.devices if device not in devices)
        self.reality.occupy(live, devices)
        live.onto, live.epoch, live.target, live.devices = live.epoch, promise.epoch, devices, devices + left
        live.nodes |= frozenset(self.holdings.nodes(devices))
        live.rate, live.grant, live.pause = float(t.jobs.rate[live.row]), t.granted.get(live.row), promise.pause
        live.started, live.rest, live.suspended, live.revision, live.interval = False, False, False, 0, promise.interval
        live.next_try = self.state.now

    def arrived(self, live: LiveGang) -> None:
        """The new grant is acknowledged: what the gang does not use any more is free."""
        if live.target is not None:
            self.reality.vacate(live, [device for device in live.devices if device not in live.target])
            live.devices, live.target, live.onto = live.target, None, -1
            live.nodes = frozenset(self.holdings.nodes(live.devices)) | frozenset(node for node, *_ in self.holdings.of(live.row).side)

    def _leaves(self, other: LiveGang) -> bool:
        return other.asked is Verb.STOP or other.target is not None or other.rest

    # --- turns ----------------------------------------------------------------------------------------------------------
    def rests(self, live: LiveGang) -> bool:
        """Whether it stays where it is, paused, until its next turn."""
        t, row = self.state.tables, live.row
        if row not in t.waits_for_turn or int(t.jobs.phase[row]) != PENDING or not live.started or live.asked is Verb.STOP:
            return False
        if live.grant is None or Can.SUSPEND not in self.can(row):
            return False
        users = {int(t.devices.holder[device]) for device in live.devices} | set(self._mates(row, live.devices))
        return all(user < 0 or _take_turns(live.grant, t.granted.get(user)) for user in users)

    def may_be_beside(self, row: int, other: int, devices: tuple[int, ...]) -> bool:
        """Whether a row may begin on devices where another is: both shall be there, or the other is paused until its turn."""
        there = self.reality.live[other]
        if there.rest and there.suspended and _take_turns(there.grant, self.state.tables.granted.get(row)):
            return True
        return other in self._mates(row, devices) and there.epoch == int(self.state.tables.jobs.epoch[other])

    # --- what has to stop for it ----------------------------------------------------------------------------------------
    def needs_restart(self, live: LiveGang) -> bool:
        """Whether what has changed about its grant is beyond the executor while it runs."""
        t, able = self.state.tables, self.can(live.row)
        pairs = zip((Can.BATCH, Can.SHARE, Can.TERMS), _terms(live.grant), _terms(t.granted.get(live.row)))
        return live.grant is not None and any(before != after and what not in able for what, before, after in pairs)

    def asks_save(self, live: LiveGang) -> bool:
        """Whether it is to be asked to save and go on; a gang that cannot is left alone, for a stop could cost what a save would keep."""
        return self.state.asked_saves.get(live.row, 0) > live.saves and Can.SAVE in self.can(live.row)

    def restart(self, live: LiveGang) -> None:
        """The gang stops, and starts again where it is: its work is saved, and it pays for that."""
        F, I, row, now, jobs = self.state.tables.F, self.state.tables.I, live.row, self.state.now, self.state.tables.jobs
        if int(jobs.phase[row]) == RUNNING:
            settle(F, I, row, now)
            jobs.safe[row] = jobs.done[row]
            jobs.since[row] = now + self.state.costs.scaled(self.state.costs.resume, int(jobs.held[row]))
            set_due(F, row)
        jobs.epoch[row] += 1
        jobs.restarts[row] += 1
        live.asked, live.next_try = Verb.STOP, now
        self.in_flight.mark()


_PLAIN = Assignment(0)


def _take_turns(one: Grant | None, other: Grant | None) -> bool:
    """Whether two grants are turns of the same rotation: plans name them by number."""
    if one is None or other is None:
        return False
    return one.assignment.rotation == other.assignment.rotation >= 0


def _terms(grant: Grant | None) -> tuple[tuple[float, ...], ...]:
    """What a gang would notice of another grant on the same devices: its batch; its part of them; its CPUs, memory, storage and offset."""
    item = _PLAIN if grant is None else grant.assignment
    amounts = (-1.0 if amount != amount else amount for amount in amounts_beside(item))
    return (item.batch, item.accumulation), (item.fraction,), (*amounts, item.memory_cap, item.offset)
