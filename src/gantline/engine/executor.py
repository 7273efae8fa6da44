"""What an executor is: it gets orders, and says later what has become of them.

Orders carry the epoch of the grant, a fencing token that only grows, and a revision, which counts what changed while it ran: an executor
ignores what is older than what it knows (and says what it knows instead), and doing the same order twice is doing it once. Reports may be
late, lost, duplicated or out of order; the reconciler asks again until the state agrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from gantline.core.grant import Grant
from gantline.core.inputs import News, Report

__all__ = ["Executor", "News", "Order", "Report", "Verb"]


class Verb(Enum):
    """What an order asks for. Each describes a state that shall hold, so that it may be repeated."""

    START = "start"  # run like this; what runs already goes on, changed to what the order says
    STOP = "stop"  # save, then give the devices up


@dataclass(frozen=True, slots=True)
class Order:
    """Start a grant on its devices (or go on, if it runs), or stop it (saving its work)."""

    verb: Verb
    row: int
    epoch: int
    devices: tuple[int, ...] = ()
    done: float = 0.0  # work to resume from; work believed done, in an order to stop
    rate: float = 1.0  # expected speed; what really happens is the executor's to say
    node: int = -1  # of a grant without devices
    mates: frozenset[int] = frozenset()  # rows that may be on the same devices
    grant: Grant | None = None  # what there is beyond a gang of its own: fraction, roles, batch; it may change while the gang runs
    pause: float = 0.0  # seconds from its start to its first progress that the cost model expects; virtual machines take that long
    revision: int = 0


class Executor(Protocol):
    """Carries orders out. On virtual time the loop asks for the next instant; live, reports simply come."""

    def send(self, order: Order, now: float) -> None: ...

    def next_time(self) -> float:
        """When it will have something to say (infinity: never, left alone)."""
        ...

    def receive(self, now: float) -> list[Report]:
        """Everything that has reached us by now, in order of arrival."""
        ...

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        """A machine is gone, and every gang that used it with it: for executors that imitate machines; others have noticed."""
        ...
