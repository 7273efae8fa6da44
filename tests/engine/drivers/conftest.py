"""Phases are watched in every test of a driver."""

from __future__ import annotations

import pytest
from tests.watching import watch_phases


@pytest.fixture(autouse=True)
def _phases_follow_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    watch_phases(monkeypatch)
