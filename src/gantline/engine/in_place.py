"""What can be done to a gang that runs without stopping it: another grant, a rest while others of its rotation go on, a save.

What an executor cannot do is planned as a stop and a start, and charged for. A gang that goes on under a new grant (`carry_over`) gets the
new epoch while it runs: until that is acknowledged it may be on its old devices and on the new ones. After its turn, a gang rests where
it is, if only its rotation uses those devices: its processes stay, and others of the rotation may begin when it is known to stand still.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gantline.core.beside import amounts_beside
from gantline.core.columns import Device, Job
from gantline.core.grant import Grant
from gantline.core.phases import PENDING, RUNNING
from gantline.core.plan import Assignment
from gantline.engine.executor import USUAL, Can, Executor, Verb
from gantline.engine.gang import set_due, settle
from gantline.engine.holdings import Holdings
from gantline.engine.in_flight import HOLDS, InFlight
from gantline.engine.reality import LiveGang, Reality
from gantline.engine.state import State
from gantline.engine.trial_runs import is_trial

Mates = Callable[[int, Any], frozenset[int]]
_PLAIN = Assignment(0)


class InPlace:
    """Decides which gangs can change without a stop."""

    def __init__(self, state: State, books: Holdings, reality: Reality, in_flight: InFlight, executor: Executor, mates: Mates) -> None:
        self.state, self.books, self.reality, self.in_flight, self.executor = state, books, reality, in_flight, executor
        self.mates = mates
        in_flight.rests = self.rests

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
        held, able = self.books.of(live.row), self.can(live.row)
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
        live.nodes |= frozenset(self.books.nodes(devices))
        live.rate, live.grant, live.pause = float(t.F[Job.RATE, live.row]), t.granted.get(live.row), promise.pause
        live.started, live.rest, live.suspended, live.revision, live.interval = False, False, False, 0, promise.interval
        live.next_try = self.state.now

    def arrived(self, live: LiveGang) -> None:
        """The new grant is acknowledged: what the gang does not use any more is free."""
        if live.target is not None:
            self.reality.vacate(live, [device for device in live.devices if device not in live.target])
            live.devices, live.target, live.onto = live.target, None, -1
            live.nodes = frozenset(self.books.nodes(live.devices)) | frozenset(node for node, *_ in self.books.of(live.row).side)

    def _leaves(self, other: LiveGang) -> bool:
        return other.asked is Verb.STOP or other.target is not None or other.rest

    # --- turns ----------------------------------------------------------------------------------------------------------
    def rests(self, live: LiveGang) -> bool:
        """Whether it stays where it is, paused, until its next turn."""
        t, row = self.state.tables, live.row
        if row not in t.waits_for_turn or int(t.I[Job.PHASE, row]) != PENDING or not live.started or live.asked is Verb.STOP:
            return False
        if live.grant is None or Can.SUSPEND not in self.can(row):
            return False
        users = {int(t.D[Device.HOLDER, device]) for device in live.devices} | set(self.mates(row, live.devices))
        return all(user < 0 or _take_turns(live.grant, t.granted.get(user)) for user in users)

    def may_be_beside(self, row: int, other: int, devices: tuple[int, ...]) -> bool:
        """Whether a row may begin on devices where another is: both shall be there, or the other is paused until its turn."""
        there = self.reality.live[other]
        if there.rest and there.suspended and _take_turns(there.grant, self.state.tables.granted.get(row)):
            return True
        return other in self.mates(row, devices) and there.epoch == int(self.state.tables.I[Job.EPOCH, other])

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
        F, I, row, now = self.state.tables.F, self.state.tables.I, live.row, self.state.now
        if int(I[Job.PHASE, row]) == RUNNING:
            settle(F, I, row, now)
            F[Job.SAFE, row] = F[Job.DONE, row]
            F[Job.SINCE, row] = now + self.state.costs.scaled(self.state.costs.resume, int(I[Job.HELD, row]))
            set_due(F, row)
        I[Job.EPOCH, row] += 1
        I[Job.RESTARTS, row] += 1
        live.asked, live.next_try = Verb.STOP, now
        self.in_flight.mark()

    def wanted(self, live: LiveGang) -> bool:
        """Whether the tables want exactly this incarnation."""
        I = self.state.tables.I
        return int(I[Job.EPOCH, live.row]) == live.epoch and int(I[Job.PHASE, live.row]) in HOLDS


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
