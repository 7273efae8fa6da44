"""What has been decided and is not true yet: promises, and the phases of the rows that they concern; and what is known of reality."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.grant import Grant
from gantline.core.phases import CHECKPOINTING, PENDING, RESIZING, RUNNING, STARTING, STOPPING
from gantline.engine.executor import Verb
from gantline.engine.holdings import Holdings
from gantline.engine.runs import is_trial
from gantline.engine.state import State

HOLDS = (STARTING, RUNNING, RESIZING)  # phases in which the intent is that the row has devices


class InFlight:
    """Compares the tables with what was promised before; what differs is in flight from now on."""

    def __init__(self, state: State, holdings: Holdings, reality: Reality) -> None:
        self.state, self.holdings, self.reality = state, holdings, reality
        self.promises: dict[int, Promise] = {}  # by row: decided, not acknowledged
        self.rests: Callable[[LiveGang], bool] = lambda live: False  # whether it stays where it is until its turn comes again
        self._known: Ints = np.empty(0, dtype=np.int64)  # per row the epoch that was promised or acknowledged; -1: none

    def mark(self) -> None:
        """The tables have changed: new grants are promised, and rows that have lost theirs are leaving."""
        rows, jobs = self.state.rows, self.state.tables.jobs
        self._make_room()
        phase, known = jobs.phase[rows], self._known[rows]
        holds = (phase == RUNNING) | (phase == STARTING) | (phase == RESIZING)
        for row in rows[holds & (known != jobs.epoch[rows])].tolist():
            self._promise(row)
        for row in rows[(phase == PENDING) & (known >= 0)].tolist():
            self._withdraw(row)
        for row in [row for row in self.promises if int(jobs.phase[row]) not in HOLDS]:  # held back or cancelled before it went out
            self._withdraw(row)

    def adopt(self, row: int) -> None:
        """A grant that the tables already have when the loop begins: it may run, or have been about to."""
        now, jobs = self.state.now, self.state.tables.jobs
        self._make_room()
        epoch = self._known[row] = jobs.epoch[row]
        if jobs.phase[row] != RUNNING:
            self.promises[row] = Promise(int(epoch), now, max(0.0, float(jobs.since[row]) - now), int(jobs.interval[row]))

    def forget(self, row: int) -> None:
        """The row has failed or ended: nothing is promised any more."""
        self.promises.pop(row, None)
        self._known[row] = -1

    def _promise(self, row: int) -> None:
        """The row shall run on new terms; RESIZING, where it keeps some of its devices."""
        now, jobs = self.state.now, self.state.tables.jobs
        self._void(row)
        self._known[row] = jobs.epoch[row]
        self.promises[row] = Promise(int(jobs.epoch[row]), now, float(jobs.since[row]) - now, int(jobs.interval[row]))
        live = self.reality.live.get(row)
        jobs.phase[row] = RESIZING if live is not None and self._goes_on(live) else STARTING

    def _goes_on(self, live: LiveGang) -> bool:
        """Whether it keeps some of its devices and is not started anew, as after a trial or at the end of a limited run."""
        t, row = self.state.tables, live.row
        if live.rest or set(live.devices).isdisjoint(self.holdings.of(row).devices) or is_trial(live.grant) != is_trial(t.granted.get(row)):
            return False
        limited = live.grant is not None and live.grant.assignment.limit < math.inf
        return not (limited and t.jobs.last_start[row] == self.state.now)

    def _withdraw(self, row: int) -> None:
        """The row shall stop running; if it runs, it is leaving."""
        promise, jobs = self.promises.get(row), self.state.tables.jobs
        if self._void(row) and promise is not None and jobs.first_start[row] == promise.decided:
            jobs.first_start[row] = math.nan  # it has never started: its first start is yet to come, and to be paid for as one
        self._known[row] = -1
        live = self.reality.live.get(row)
        if live is not None and self.state.tables.jobs.phase[row] == PENDING and not self.rests(live):
            self.state.tables.jobs.phase[row] = CHECKPOINTING if live.started and not live.saved else STOPPING

    def _void(self, row: int) -> bool:
        """A promise that never went out is void: the log must not say that devices were held. Returns whether there was one."""
        promise, live = self.promises.pop(row, None), self.reality.live.get(row)
        if promise is None or (live is not None and live.epoch == promise.epoch):
            return False
        if promise.interval >= 0:
            self.state.log.never_held(promise.interval)
        return True

    def _make_room(self) -> None:
        short = self.state.tables.I.shape[1] - len(self._known)
        if short > 0:
            self._known = np.concatenate([self._known, np.full(short, -1, dtype=np.int64)])


# What is known of reality: which grants may exist out there, and on which devices.


@dataclass
class Promise:
    """A grant that has been decided and is not acknowledged yet."""

    epoch: int
    decided: float
    pause: float  # seconds from its start to its first progress
    interval: int  # in the log


@dataclass
class LiveGang:
    """A grant that may exist in reality."""

    row: int
    epoch: int
    devices: tuple[int, ...]
    node: int  # of a grant without devices
    nodes: frozenset[int]  # where it has a stake: devices, CPUs or memory
    interval: int = -1  # in the log
    rate: float = 0.0  # as last sent to the executor
    grant: Grant | None = None  # likewise
    revision: int = 0
    pause: float = 0.0
    started: bool = False
    saved: bool = False  # ordered to stop, it has saved
    onto: int = -1  # the epoch under which it ran before, until the present one is acknowledged
    target: tuple[int, ...] | None = None  # where it shall be then; `devices` are those of before, too
    rest: bool = False  # it shall pause until its turn comes
    suspended: bool = False  # and is known to
    saves: int = 0  # how often it was asked to save
    most: float = math.inf  # of what it has done, so much counts at its end: in a trial only what was done before
    saves_done: int = 0
    asked: Verb = Verb.START
    next_try: float = 0.0  # when to ask (again), unless an answer comes first


@dataclass
class Reality:
    """At most one incarnation per row, and the rows on each device."""

    live: dict[int, LiveGang] = field(default_factory=dict)  # by row
    occupants: dict[int, set[int]] = field(default_factory=dict)  # device -> rows
    over: dict[int, int] = field(default_factory=dict)  # row -> newest epoch that is known to be over

    def enter(self, live: LiveGang) -> LiveGang:
        """From now on the grant may be on its devices."""
        self.live[live.row] = live
        self.occupy(live, live.devices)
        return live

    def occupy(self, live: LiveGang, devices: Iterable[int]) -> None:
        """It may be on these devices, too."""
        for device in devices:
            self.occupants.setdefault(device, set()).add(live.row)

    def leave(self, live: LiveGang) -> None:
        """It is gone for good."""
        self.vacate(live, live.devices)
        self.live.pop(live.row, None)
        self.over[live.row] = live.epoch

    def vacate(self, live: LiveGang, devices: Iterable[int]) -> None:
        """It is not on these devices any more."""
        for device in devices:
            there = self.occupants.get(device, set())
            there.discard(live.row)
            if not there:
                self.occupants.pop(device, None)

    def on(self, devices: Iterable[int]) -> set[int]:
        """Rows that may be on these devices."""
        return {row for device in devices for row in self.occupants.get(device, ())}
