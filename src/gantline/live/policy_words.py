"""Events from a policy: which policy of a portfolio decides from now on and why, and the notes of its plans."""

from __future__ import annotations

from typing import Any

from gantline.core.in_charge import InCharge
from gantline.engine.engine import Engine
from gantline.live.records import Entry


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
