"""A copy of the store while a service writes to it: all that was acknowledged by then, and a service goes on from it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.live.specs import ended, replays, running, submit

from gantline.core.errors import NotFoundError, RefusedError
from gantline.live.store import SqlStore
from gantline.live.store.connection import back_up


def test_a_copy_made_while_it_runs_is_a_store(tmp_path: Path) -> None:
    place, copy = tmp_path / "store.sqlite", tmp_path / "copy.sqlite"
    store = SqlStore.open(place)
    with running(tmp_path / "one", "cpu:1", store=store) as scheduler:
        done = submit(scheduler, "true")
        ended(scheduler, done)
        waits = submit(scheduler, "true", gpus=1, after=((done, "failed"),))
        assert back_up(place, copy) > 0
        later = submit(scheduler, "true")
        ended(scheduler, later)
    store.close()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    found = SqlStore.open(copy)
    assert [job["id"] for job in found.jobs()] == [done, waits]
    with running(tmp_path / "two", "cpu:1", store=found) as scheduler:
        assert ended(scheduler, submit(scheduler, "true")) == ["succeeded"]
    found.close()
    replays(copy)


def test_a_backup_that_cannot_be_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such store"):
        back_up(tmp_path / "none.sqlite", tmp_path / "copy")
    SqlStore.open(tmp_path / "store.sqlite").close()
    (tmp_path / "there").write_text("mine", encoding="utf-8")
    with pytest.raises(RefusedError, match="already exists"):
        back_up(tmp_path / "store.sqlite", tmp_path / "there")
    with pytest.raises(RefusedError, match="cannot be written"):
        back_up(tmp_path / "store.sqlite", tmp_path / "no" / "folder")
    with pytest.raises(RefusedError, match="pg_dump"):
        back_up("postgresql://somebody@localhost/name", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
