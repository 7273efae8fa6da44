"""A live run folded again gives the plans that were made, whatever happened on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from tests.live.specs import ended, replays, running, submit, until_running

from gantline.core.inputs import Action
from gantline.live.scheduler.replay import replay_store
from gantline.live.store import SqlStore


@pytest.mark.parametrize("every", [6, 10_000], ids=["checkpoints", "journal"])
def test_the_past_gives_the_same_plans(tmp_path: Path, every: int) -> None:
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:3", "las", store=store, checkpoint_every=every) as scheduler:
        jobs = [submit(scheduler, "sleep 0.2", gpus=1 + k % 3) for k in range(4)]
        failing = submit(scheduler, "exit 3", retries=1, backoff=0.05)
        cancelled = submit(scheduler, "sleep 100")
        until_running(scheduler, cancelled)
        scheduler.request([cancelled], Action.CANCEL)
        scheduler.use("srtf")
        ended(scheduler, *jobs, failing, cancelled)
    store.close()
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:3", None, store=store, checkpoint_every=every) as scheduler:  # type: ignore[arg-type]
        ended(scheduler, submit(scheduler, "true", gpus=2))
    store.close()

    found = replays(tmp_path / "store.sqlite")
    assert found.decisions >= 7


def test_a_plan_that_was_not_made_is_named(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:2", store=store) as scheduler:
        ended(scheduler, *[submit(scheduler, "true") for _ in range(6)])
    store.close()
    engine = create_engine(f"sqlite:///{tmp_path / 'store.sqlite'}")
    with engine.begin() as connection:  # whoever changes the past is found out
        number = connection.execute(text("select max(number) from journal where kind = 'decision'")).scalar()
        connection.execute(text("update journal set body = json_set(body, '$.hash', 'other') where number = :n"), {"n": number})
    engine.dispose()
    found = replay_store(SqlStore.open(tmp_path / "store.sqlite", write=False))
    assert "recorded" in str(found.difference)


def test_the_past_under_other_rules_is_replayed_under_those_however_long_it_goes_on(tmp_path: Path) -> None:
    """Of many checkpoints few are kept; the one at which the rules changed is among them."""
    for rules in ({}, {"round": 0.2}):
        store = SqlStore.open(tmp_path / "store.sqlite")
        with running(tmp_path, "cpu:2", store=store, checkpoint_every=3, anew=rules) as scheduler:
            for _ in range(6):
                ended(scheduler, submit(scheduler, "true"))
        store.close()
    store = SqlStore.open(tmp_path / "store.sqlite", write=False)
    rounds = [saved["setup"]["round"] for _, saved in store.checkpoints()]
    assert rounds[0] == 0.0
    assert len(rounds) == 5, "the oldest, the one that breaks, and the three newest"
    replays(store)
