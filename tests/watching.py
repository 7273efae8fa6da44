"""Every change of phase in a test is one of those that are allowed: what engine, drivers and probes are watched for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.oracles.books import PhaseWatch

from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.stepping import Virtual
from gantline.engine.engine import Engine
from gantline.engine.reconcile import Reconciler


def watch_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look before each decision, when a commit has been followed, and when reports have been taken in."""

    def look(state: Any) -> None:
        watch = state.__dict__.setdefault("_watch", PhaseWatch(state))
        found = watch.look()
        assert not found, found

    def watched(kind: type, name: str, before: bool) -> None:
        plain = getattr(kind, name)

        def with_a_look(self: Any, *what: Any) -> Any:
            state = (what[0] if what else self).state  # drivers are handed the loop
            if before:
                look(state)
            found = plain(self, *what)
            if not before:
                look(state)
            return found

        monkeypatch.setattr(kind, name, with_a_look)

    for kind, name, before in (
        (Engine, "decide", True),
        (Virtual, "follow", False),
        (Acknowledged, "follow", False),
        (Reconciler, "catch_up", False),
    ):
        watched(kind, name, before)
