"""What is known of reality: which grants may exist out there, and on which devices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from gantline.core.grant import Grant
from gantline.engine.executor import Verb


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
