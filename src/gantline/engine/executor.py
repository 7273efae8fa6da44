"""What an executor is: it gets orders, and says later what has become of them.

There are two orders, and each describes a state that shall hold: run like this, or be gone. Everything else that may be wanted of a gang is
part of how it shall run: its devices, its share, its batch, whether it stands still, how often it shall have saved. So a lost order is made
good by the next one. An executor says what it can do to a gang that runs (`Can`); for anything else the engine plans a stop and a start.

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

__all__ = ["Can", "Executor", "News", "Order", "Report", "Verb"]


class Can(Enum):
    """What an executor may be able to do to a gang that runs, without stopping it."""

    DEVICES = "devices"  # give it others, beside some that it keeps
    MOVE = "move"  # give it as many others, none of which it had: slots that are alike, to which nothing is bound
    SHARE = "share"  # another part of its devices
    TERMS = "terms"  # other CPUs, memory or device memory, another offset
    BATCH = "batch"  # another batch size
    SUSPEND = "suspend"  # let it pause where it is, and go on
    SAVE = "save"  # have it save its work and go on
    COLLOCATE = "collocate"  # put other gangs on the devices that it has


#: what an executor can do that does not say
USUAL = frozenset({Can.SHARE, Can.TERMS, Can.BATCH})


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
    rate: float = 1.0  # expected speed; the executor reports the real one
    node: int = -1  # of a grant without devices
    mates: frozenset[int] = frozenset()  # rows that may be on the same devices
    grant: Grant | None = None  # what there is beyond a gang of its own: fraction, roles, batch; it may change while the gang runs
    pause: float = 0.0  # seconds from its start to its first progress that the cost model expects; virtual machines take that long
    revision: int = 0
    onto: int = -1  # the epoch of an incarnation that shall go on as this one; if it has ended, how it did is the answer
    suspended: bool = False  # it shall pause, and keep all it has
    saves: int = 0  # how often it shall have been asked to save


class Executor(Protocol):
    """Carries orders out. On virtual time the loop asks for the next instant; live, reports simply come."""

    def can(self, row: int) -> frozenset[Can]:
        """What need not stop this gang; the same answer for as long as the gang runs."""
        ...

    def send(self, order: Order, now: float) -> None: ...

    def next_time(self) -> float:
        """When its next report is due (infinity: never, without new orders)."""
        ...

    def receive(self, now: float) -> list[Report]:
        """Everything that has reached us by now, in order of arrival."""
        ...

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        """A machine is gone, and every gang that used it with it: for executors that imitate machines; others have noticed."""
        ...
