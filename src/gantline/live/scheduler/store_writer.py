"""A queue of entries for the store: they wait until it can be written, together with decisions and events made meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gantline.core.plan import InCharge
from gantline.engine.drivers.journal import Journal
from gantline.engine.engine import Engine
from gantline.live.store.records import Entry, Store


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


# Events from a policy: which policy of a portfolio decides from now on and why, and the notes of its plans.


class PolicyWords:
    """Watches an engine from now on; earlier events are in the store already, but for what its assembly has to say at every start."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._charges, self._notices = len(engine.in_charge), len(engine.notices)
        self._at_start = engine.notices[: engine.said_at_start]

    def events(self) -> list[Entry]:
        """The events since the last call."""
        charges, notices = self._engine.in_charge[self._charges :], self._at_start + self._engine.notices[self._notices :]
        self._charges, self._notices = len(self._engine.in_charge), len(self._engine.notices)
        self._at_start = []
        return [
            *(Entry("event", _change(one)) for one in charges),
            *(Entry("event", {"time": one.time, "event": "notice", "why": one.what}) for one in notices),
        ]


def _change(one: InCharge) -> dict[str, Any]:
    return {"time": one.since, "event": "in-charge", "policy": one.policy, "because": one.why, "why": str(one)}
