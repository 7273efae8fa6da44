"""Signals that the runner sends, as flags that a loop reads between steps: SIGTERM asks to save and leave, SIGUSR1 to save."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from gantline.train.membership import Membership
from gantline.train.wire import Answer, Wire


class Flags:
    """What was asked for by signals since this process started."""

    def __init__(self) -> None:
        self.stop = False
        self.save = False
        self._before: dict[int, Any] = {}

    def listen(self) -> None:
        """Take the signals over; only the main thread can, and elsewhere the service's answers must do."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number, taker in ((signal.SIGTERM, self._on_stop), (signal.SIGUSR1, self._on_save)):
            self._before[number] = signal.signal(number, taker)

    def restore(self) -> None:
        """Restore the earlier signal handlers."""
        for number, before in self._before.items():
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(number, signal.SIG_DFL if before is None else before)
        self._before.clear()

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        self.stop = True

    def _on_save(self, number: int, frame: FrameType | None) -> None:
        self.save = True


# What a job is asked for, by signals, the service or the clock; and what all ranks of a gang agree on.

Sum = Callable[[list[float]], list[float]]


class Orders:
    """Only the first rank communicates with the service; the others learn of requests by signal and from the sum over ranks."""

    def __init__(self, member: Membership, sum_over_ranks: Sum | None, save_every: float, interval: float) -> None:
        self.member = member
        self._sum, self._save_every = sum_over_ranks, save_every
        self._saved_at = time.monotonic()
        self._interval = interval
        self.agreed = (False, False)  # stop, save: what all ranks of a gang have agreed on
        self.switch = 0  # the epoch under which all of them go on
        self.flags = Flags()
        self.flags.listen()
        self.wire: Wire | None = None
        self._speak()

    def _speak(self) -> None:
        member = self.member
        if member.is_scheduled and member.rank == 0 and not member.is_joining and self.wire is None:
            self.wire = Wire(member.url, member.token, member.job, member.epoch, interval=self._interval)

    def become(self, member: Membership) -> None:
        """The rank goes on as another one; the first of them reports."""
        self.member = member
        if self.wire is not None:
            self.wire.go_on(member.epoch)
        self._speak()

    @property
    def is_gang(self) -> bool:
        """Whether there are others to agree with."""
        return self.member.world > 1 and self._sum is not None

    @property
    def answer(self) -> Answer:
        """The service's last answer."""
        return self.wire.answer if self.wire else Answer()

    @property
    def stop(self) -> bool:
        return self.agreed[0] if self.is_gang else self.wanted()[0]

    @property
    def save(self) -> bool:
        return any(self.agreed) if self.is_gang else any(self.wanted())

    def wanted(self) -> tuple[bool, bool]:
        """Whether this rank has received the request to save and stop."""
        due = self._save_every > 0 and time.monotonic() - self._saved_at >= self._save_every
        save = self.flags.save or due or bool(self.wire and self.wire.wants_save)
        return self.flags.stop or self.answer.stop, save

    def sum(self, values: list[float]) -> list[float]:
        """Numbers summed over all ranks."""
        return self._sum(values) if self._sum is not None and self.member.world > 1 else values

    def agree(self, batch: int | None, switch: int = 0) -> int | None:
        """Let all ranks know whether to stop, to save and to switch; the batch that comes back is the first rank's."""
        stop, save = self.wanted()
        asked = batch if self.answer.batch is None else self.answer.batch
        if self.is_gang:
            mine = asked if self.member.rank == 0 and asked is not None else 0
            due = switch if self.member.rank == 0 else 0
            stops, saves, total, epoch = self.sum([float(stop), float(save), float(mine), float(due)])
            stop, save, asked, switch = stops > 0, saves > 0, int(total) or None, int(epoch)
        self.agreed, self.switch = (stop, save), switch
        return asked

    def saved(self, values: Mapping[str, Any]) -> None:
        """A checkpoint was made: requests for one are met, and it is reported to the service at once."""
        self.flags.save = False
        self.agreed = (self.agreed[0], False)
        self._saved_at = time.monotonic()
        if self.wire:
            self.wire.saved()
            self.wire.report(values, urgent=True)

    def close(self, seconds: float) -> None:
        """Send the last report, for so many seconds at most, and restore the signals."""
        if self.wire:
            self.wire.flush(seconds)
            self.wire.close()
            self.wire = None
        self.flags.restore()
