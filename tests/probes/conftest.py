"""In every probe the books agree before each decision and after each commit, what a policy sees survives JSON, and through orders
and reports everything is as on virtual time."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.oracles.books import check_books
from tests.watching import watch_phases

from gantline.core.columns import Job
from gantline.core.grant import Grant
from gantline.core.phases import Phase
from gantline.core.plan import Plan
from gantline.core.snapshot_json import decode_snapshot, encode_plan, encode_snapshot
from gantline.core.tables import Tables, tables_behind
from gantline.engine.engine import Engine
from gantline.simulator.run import Run


def _with_those_who_are_there(tables: Tables) -> dict[int, Grant]:
    """Grants without the members that have left: these are not part of a snapshot."""
    active = {row for row in range(len(tables.ids)) if Phase(int(tables.I[Job.PHASE, row])).active}
    return {row: replace(grant, members=tuple(group & active for group in grant.members)) for row, grant in tables.granted.items()}


@pytest.fixture(autouse=True)
def _books_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    decide, commit = Engine.decide, Engine.commit

    def decide_on_good_books(engine: Engine) -> Plan | None:
        assert check_books(engine.state, engine.grants, shares=False) == []
        plan = decide(engine)
        snapshot = engine.state.snapshot()
        seen = encode_snapshot(snapshot)
        restored = decode_snapshot(json.loads(json.dumps(seen, allow_nan=False)), snapshot.performance)
        assert encode_snapshot(restored) == seen
        assert tables_behind(restored).granted == _with_those_who_are_there(tables_behind(snapshot))
        if plan is not None:
            assert encode_plan(engine.policy.decide(restored)) == encode_plan(plan)
        return plan

    def commit_and_check(engine: Engine, plan: Plan, rows: Any = None) -> None:
        commit(engine, plan, rows)
        assert check_books(engine.state, engine.grants) == []

    monkeypatch.setattr(Engine, "decide", decide_on_good_books)
    monkeypatch.setattr(Engine, "commit", commit_and_check)
    watch_phases(monkeypatch)


@pytest.fixture(autouse=True)
def _two_clocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = getattr(request.module, "simulate", None)
    if alone is None:
        return

    def on_both_clocks(*what: Any, **options: Any) -> Run:
        run, acknowledged = alone(*what, **options), alone(*what, **options, executor="acknowledged")
        assert acknowledged.jobs.write_csv() == run.jobs.write_csv()
        assert acknowledged.summary["log_hash"] == run.summary["log_hash"]
        return run

    monkeypatch.setattr(request.module, "simulate", on_both_clocks)
