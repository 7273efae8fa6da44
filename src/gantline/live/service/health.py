"""Whether a service does what it is there for: it decides, and what it is told can be written down."""

from __future__ import annotations

import contextlib
import time

from gantline.live.scheduler import Scheduler
from gantline.live.service.guard import log
from gantline.live.store import LostStoreError, SqlStore

LIMIT = 10.0  # seconds for which writes may fail before that is an incident
_AGAIN = 1.0  # seconds between two attempts to write while writes fail
_FOLD = 5.0  # seconds between two times that the write-ahead log is brought into the file


class Health:
    """Of one service; `look` is called twice a second, everything else from any thread."""

    def __init__(self, scheduler: Scheduler, store: SqlStore) -> None:
        self.scheduler, self.store = scheduler, store
        self._told = False
        self._tried = self._folded = time.monotonic()

    def why_not(self) -> str:
        """What is wrong; empty: nothing."""
        if not self.scheduler.alive:
            return "the scheduler has ended"
        return "the store cannot be written" if self.failed_for() >= LIMIT else ""

    def failed_for(self) -> float:
        """Seconds for which writes have failed; 0: they do not."""
        failing = self.store.failing
        return 0.0 if failing is None else time.monotonic() - failing[0]

    def look(self) -> None:
        """Try again to write where that fails, and say when it has failed for too long, and when it does not any more."""
        now, failing = time.monotonic(), self.store.failing
        if failing is not None and now >= self._tried + _AGAIN:
            self._tried = now
            with contextlib.suppress(OSError, LostStoreError):  # of a lost one the scheduler hears, too
                self.store.try_again()
            failing = self.store.failing
        if failing is None:
            if self._told:
                self._tell("store-recovered", "the store can be written again")
            if now >= self._folded + _FOLD:
                self._folded = now
                self.store.fold()
        elif self.failed_for() >= LIMIT and not self._told:
            self._tell("store-failed", f"the store has not been writable for {self.failed_for():.0f} s: {failing[1]}")

    def _tell(self, event: str, what: str) -> None:
        self._told = not self._told
        (log.error if self._told else log.warning)("%s", what)
        self.scheduler.note_incident(event, what)
