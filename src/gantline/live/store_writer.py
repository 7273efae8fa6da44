"""A queue of entries for the store: they wait until it can be written, together with decisions and events made meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from gantline.engine.drivers.journal import Journal
from gantline.live.policy_words import PolicyWords
from gantline.live.records import Entry, Store


class StoreWriter:
    """Belongs to the thread that owns the engine."""

    def __init__(self, store: Store, journal: Journal, policy_events: PolicyWords, lines: int = 0) -> None:
        self.store, self.journal, self.policy_events = store, journal, policy_events
        self.lines = lines  # of the journal since the last checkpoint
        self.failures = 0
        self._pending: list[Entry] = []

    def add(self, *entries: Entry) -> None:
        """Queue entries for the next write."""
        self._pending += entries

    def write(self, entries: Sequence[Entry]) -> None:
        """Write these entries and all that wait, or raise OSError."""
        self._collect()
        everything = [*self._pending, *entries]
        if not everything:
            return
        try:
            self.store.append(everything)
        except OSError:
            self.failures += 1
            raise
        self._pending = []
        self.lines += _lines(everything)

    def flush(self) -> None:
        """Write the entries that wait; if the store cannot be written now, later."""
        try:
            self.write([])
        except OSError:
            return

    def lines_by_now(self) -> int:
        """Lines of the journal since the last checkpoint, with those that wait to be written."""
        self._collect()
        return self.lines + _lines(self._pending)

    def add_checkpoint(self, checkpoint: Entry) -> None:
        """Count lines from this checkpoint on."""
        self.add(checkpoint)
        self.lines = -_lines(self._pending)

    def _collect(self) -> None:
        """Queue the decisions since the last call, and the policy's events."""
        if self.journal.lines:
            self._pending += [Entry("journal", line) for line in self.journal.lines]
            self.journal.lines = []
        self._pending += self.policy_events.events()


def _lines(entries: Sequence[Entry]) -> int:
    return sum(1 for entry in entries if entry.kind == "journal")
