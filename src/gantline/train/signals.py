"""Signals that the runner sends, as flags that a loop reads between steps: SIGTERM asks to save and leave, SIGUSR1 to save."""

from __future__ import annotations

import contextlib
import signal
import threading
from types import FrameType
from typing import Any


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
