"""In every probe the books must agree before each decision and after each commit."""

from __future__ import annotations

from typing import Any

import pytest

from gantline.core.plan import Plan
from gantline.engine.books import check_books
from gantline.engine.engine import Engine


@pytest.fixture(autouse=True)
def _books_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    decide, commit = Engine.decide, Engine.commit

    def decide_on_good_books(engine: Engine) -> Plan | None:
        assert check_books(engine.state, engine.grants, shares=False) == []
        return decide(engine)

    def commit_and_check(engine: Engine, plan: Plan, rows: Any = None) -> None:
        commit(engine, plan, rows)
        assert check_books(engine.state, engine.grants) == []

    monkeypatch.setattr(Engine, "decide", decide_on_good_books)
    monkeypatch.setattr(Engine, "commit", commit_and_check)
