"""What an executor is: it gets orders, and says later what has become of them.

Orders carry the epoch of the grant, a fencing token that only grows: an executor ignores orders for an epoch older than the one
it knows, and doing the same order twice is doing it once. Reports may be late, lost, duplicated or out of order; the reconciler
asks again until the state agrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from gantline.core.grant import Grant


class Verb(Enum):
    START = "start"
    STOP = "stop"


class News(Enum):
    STARTED = "started"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Order:
    """Start a grant on its devices (or go on, if it runs), or stop it (saving its work)."""

    verb: Verb
    row: int
    epoch: int
    devices: tuple[int, ...] = ()
    done: float = 0.0  # work to resume from
    rate: float = 1.0  # expected speed; what really happens is the executor's to say
    node: int = -1  # of a grant without devices
    mates: frozenset[int] = frozenset()  # rows that may be on the same devices
    grant: Grant | None = None  # what there is beyond a gang of its own: fraction, roles, batch; it may change while the gang runs


@dataclass(frozen=True, slots=True)
class Report:
    """What an executor says of one grant."""

    news: News
    row: int
    epoch: int
    time: float
    done: float = 0.0  # work done (saved, when it has stopped or failed)


class Executor(Protocol):
    """Carries orders out. On virtual time the loop asks for the next instant; live, reports simply come."""

    def send(self, order: Order, now: float) -> None: ...

    def next_time(self) -> float:
        """When it will have something to say (infinity: never, left alone)."""
        ...

    def receive(self, now: float) -> list[Report]:
        """Everything that has reached us by now, in order of arrival."""
        ...
