"""In every scenario the books must agree after each commit, and a run in which nothing happens any more is given up soon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.oracles.books import check_books
from tests.watching import watch_phases

from gantline.core.plan import Plan
from gantline.engine.drivers import stepping
from gantline.engine.engine import Engine


def _is_about_commits(request: pytest.FixtureRequest) -> bool:
    """Whether a test is about the engine itself; a driver may begin in the middle of a run, where nothing has been logged yet."""
    return request.path.parent == Path(__file__).parent


@pytest.fixture(autouse=True)
def _books_agree(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not _is_about_commits(request):
        return
    commit = Engine.commit

    def commit_and_check(engine: Engine, plan: Plan, rows: Any = None) -> None:
        commit(engine, plan, rows)
        assert check_books(engine.state, engine.grants) == []

    monkeypatch.setattr(Engine, "commit", commit_and_check)
    watch_phases(monkeypatch)


@pytest.fixture(autouse=True)
def _soon_given_up(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """After 50 idle decisions instead of a thousand: none of the others would tell more."""
    if _is_about_commits(request):
        monkeypatch.setattr(stepping, "STALL", 50)
