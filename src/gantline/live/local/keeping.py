"""What all keepers have in common: a folder with what shall be and what is, and signals that wake them. Needs the standard library only."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time

from gantline.live.local.files import started_at, write_json
from gantline.live.local.spawning import RECEIVED, take_orphans_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WAKE = "wake"  # what is selected when a signal has come


class Keeping:
    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.order: dict[str, Any] = {}
        self.state: dict[str, Any] = {"phase": "starting", "pid": os.getpid(), "born": started_at(os.getpid()), "revision": 0, "saves": 0}
        self.state |= {"above": os.getppid(), "above_born": started_at(os.getppid())}
        self.selector = selectors.DefaultSelector()

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def write_state(self, **news: Any) -> None:
        self.state.update(news)
        while True:
            try:
                # only the end must survive a crash of the machine, after which nothing runs anyway
                write_json(self.path("state.json"), self.state, lasting=self.state["phase"] == "over")
                return
            except OSError:  # the disk is full, perhaps: the end must be written down, everything else is asked for again
                if self.state["phase"] != "over" or not os.path.isdir(self.folder):
                    return
                time.sleep(1.0)

    def listen(self) -> None:
        """From now on signals wake it."""
        take_orphans_in()
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in RECEIVED:
            self.handle(number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # the service has started us so
        self.selector.register(wake_read, selectors.EVENT_READ, WAKE)

    def handle(self, number: int) -> None:
        """What a signal means here: it wakes the keeper."""
        signal.signal(number, lambda *_: None)

    def wait(self, seconds: float) -> list[selectors.SelectorKey]:
        """Until a signal comes or something can be read, at most so long; what can be read."""
        keys = [key for key, _ in self.selector.select(seconds)]
        for key in keys:
            if key.data == WAKE:
                with contextlib.suppress(BlockingIOError):
                    os.read(key.fd, 4096)
        return [key for key in keys if key.data != WAKE]
