"""One rank of a job: its identity, what it is asked for, what it reports."""

from __future__ import annotations

import atexit
import math
from typing import Any

from gantline.train.gangs import Gang
from gantline.train.membership import Membership
from gantline.train.orders import Orders, Sum
from gantline.train.signals import Flags
from gantline.train.wire import Answer

#: how a process ends that was asked to: what a shell says of one that SIGTERM ended
STOPPED = 143
FLUSH = 2.0  # seconds to send the last report
FIELDS = frozenset(("step", "done", "total", "saved", "throughput", "batch", "loss", "gradient_square", "gradient_variance", "request"))


class Rank:
    """What every rank is, whatever it trains."""

    requested_gpus: int | None = None

    def __init__(self, member: Membership, gang: Gang | None, sum_over_ranks: Sum | None, save_every: float, interval: float) -> None:
        if gang is not None and sum_over_ranks is not None:
            raise ValueError("a gang sums over its ranks itself: give one of gang and sum_over_ranks")
        if member.is_joining and gang is None:
            raise ValueError("this process is to join a gang that runs: give train.join a gang, or leave elastic.live out")
        self.member, self.gang, self._interval = member, gang, interval
        self.orders = Orders(member, gang.sum if gang is not None else sum_over_ranks, save_every, interval)
        if gang is not None and not member.is_joining:
            gang.form(member)

    # its identity

    @property
    def rank(self) -> int:
        return self.member.rank

    @property
    def world(self) -> int:
        """Ranks in all."""
        return self.member.world

    @property
    def gpus(self) -> int:
        """Devices that the job holds."""
        return self.member.gpus

    @property
    def flags(self) -> Flags:
        """What signals have asked for."""
        return self.orders.flags

    @property
    def answer(self) -> Answer:
        """The service's last answer."""
        return self.orders.answer

    # what it is asked for

    def should_stop(self) -> bool:
        """Whether to save and leave: by SIGTERM, by the service, or because a newer incarnation has taken over."""
        return self.orders.stop

    def should_checkpoint(self) -> bool:
        """Whether a checkpoint is due: asked for by SIGUSR1 or the service, by time, or because the job shall stop."""
        return self.orders.save

    def resize_pending(self) -> int | None:
        """How many devices the job is to have soon, where that differs from what it holds."""
        found = self.answer.gpus
        return found if found and found != self.gpus else None

    def sum(self, values: list[float]) -> list[float]:
        """Numbers summed over all ranks; every rank must call it at the same place."""
        return self.orders.sum(values)

    # what it reports

    def report(self, **fields: Any) -> None:
        """Report to the service: ``loss``, or any other field of a progress report. Costs no time."""
        unknown = sorted(set(fields) - FIELDS)
        if unknown:
            raise ValueError(f"no field '{unknown[0]}' of a progress report: there are {', '.join(sorted(FIELDS))}")
        if self.orders.wire:  # a loss that is not a number is not reported: JSON has none
            values = {name: value for name, value in fields.items() if not isinstance(value, float) or math.isfinite(value)}
            self.orders.wire.report({name: value for name, value in values.items() if value is not None})

    def request(self, *, gpus: int, min_gpus: int | None = None, max_gpus: int | None = None) -> None:
        """Ask the scheduler for other devices; it may grant that, now, later or never."""
        if gpus < 1:
            raise ValueError(f"a job cannot request {gpus} devices")
        self.requested_gpus = gpus
        bounds = {"gpus": gpus, "min_gpus": min_gpus, "max_gpus": max_gpus}
        self.report(request={name: value for name, value in bounds.items() if value is not None})

    def leave(self) -> None:
        """End this process as one that was asked to."""
        self.close()
        raise SystemExit(STOPPED)

    def close(self) -> None:
        """Send the last report and restore the signals; a finished or leaving process need not call it."""
        atexit.unregister(self.close)
        self.orders.close(FLUSH)
