"""Nothing in a store keeps a service from starting: what cannot be used is set aside, named, and can be mended while no service runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from tests.live.specs import ended, replays, running, submit, until

from gantline.core.errors import RefusedError
from gantline.core.inputs import Action, JobRequest, encode_input
from gantline.live.jobs.spec_file import spec_of
from gantline.live.service.repair import repair_store
from gantline.live.store import SqlStore
from gantline.live.store.records import Entry


@pytest.fixture
def store(tmp_path: Path) -> SqlStore:
    return SqlStore.open(tmp_path / "store.sqlite")


def finish_some(home: Path, store: SqlStore) -> str:
    """A life in which a job ends before the newest checkpoint, which holds no ended jobs."""
    with running(home, store=store, checkpoint_every=1) as scheduler:
        first = submit(scheduler, "true")
        ended(scheduler, first, submit(scheduler, "true"))
        until(lambda: (saved := store.checkpoint()) and not saved[1]["snapshot"]["jobs"], "a checkpoint without jobs")
    return first


@pytest.mark.parametrize("action", [action for action in Action if action is not Action.FAIL])
def test_what_is_wanted_of_an_ended_job_is_refused_before_it_is_written_down(tmp_path: Path, store: SqlStore, action: Action) -> None:
    first = finish_some(tmp_path, store)
    with running(tmp_path, store=store) as scheduler:
        now = submit(scheduler, "true")
        ended(scheduler, now)
        lines = len(list(store.journal()))
        for job in (first, now):  # of another life, and of this one
            with pytest.raises(RefusedError, match=rf"job '{job}' had ended: succeeded at \d{{4}}-"):
                scheduler.request([job], action, gpus=2)
        assert len([line for _, line in store.journal() if "input" in line]) <= lines
    with running(tmp_path, store=store) as scheduler:
        assert not store.aside()


def test_a_job_that_failed_comes_back_and_the_next_life_knows_it(tmp_path: Path, store: SqlStore) -> None:
    with running(tmp_path, store=store, checkpoint_every=1) as scheduler:
        (bad,) = scheduler.submit(spec_of({"run": ["sh", "-c", "exit 1"]}))
        assert ended(scheduler, bad, submit(scheduler, "true")) == ["failed", "succeeded"]
        until(lambda: (saved := store.checkpoint()) and not saved[1]["snapshot"]["jobs"])
        scheduler.checkpoint_every = 10_000  # what follows is in the journal alone
        scheduler.request([bad], Action.REQUEUE)
        assert ended(scheduler, bad) == ["failed"]
    with running(tmp_path, store=store) as scheduler:
        assert scheduler.view().jobs[bad].epoch == 2
        assert not store.aside()
    replays(store)


def test_a_line_that_cannot_be_applied_is_set_aside_and_reported(tmp_path: Path, store: SqlStore) -> None:
    """As an earlier version wrote it: a request on a job that no checkpoint knows. Every start died of it."""
    first = finish_some(tmp_path, store)
    bad = {**encode_input(JobRequest(9.0, Action.CANCEL, first)), "heard": 9.0}
    store.append([Entry("journal", bad), Entry("journal", {"input": "no such thing", "heard": 9.5}), Entry("journal", {"what": "is this"})])
    with running(tmp_path, store=store) as scheduler:
        assert [line.partition("set aside: ")[2].partition(":")[0] for line in scheduler.set_aside] == [
            "it cannot be read",
            "it cannot be read",
            "it cannot be applied",
        ]
        assert f"no job '{first}'" in scheduler.set_aside[-1]
        assert ended(scheduler, submit(scheduler, "true")) == ["succeeded"]
    kept = store.aside()
    assert [one["line"] for one in kept] == [bad, {"input": "no such thing", "heard": 9.5}, {"what": "is this"}]
    with running(tmp_path, store=store) as scheduler:
        assert scheduler.set_aside == [], "once"
    replays(store)


def test_repair_says_what_it_finds_and_sets_it_aside(tmp_path: Path, store: SqlStore) -> None:
    with running(tmp_path, store=store, checkpoint_every=4) as scheduler:
        ended(scheduler, *[submit(scheduler, "true") for _ in range(4)])
    assert repair_store(store) == []
    (again,) = [line for _, line in store.journal(kind="decision")][-1:]
    store.append([Entry("journal", again), Entry("journal", {"input": "nonsense", "heard": 99.0})])
    engine = create_engine(f"sqlite:///{tmp_path / 'store.sqlite'}")
    with engine.begin() as connection:  # a line and the newest checkpoint are not even JSON any more
        connection.execute(text("insert into journal (kind, body) values ('submit', '{\"input')"))
        connection.execute(text("update checkpoints set body = '{' where number = (select max(number) from checkpoints)"))
    engine.dispose()
    planned = repair_store(store, dry_run=True)
    assert store.aside() == []
    assert repair_store(store) == planned
    assert all(one.done for one in planned)
    told = {one.where.split()[0]: one.what for one in planned}
    assert told["checkpoint"].startswith("cannot be read")
    whys = [one.what for one in planned if one.where.startswith("journal")]
    assert whys[0] == f"records decision {again['decision']} once more"
    assert whys[-1] == "cannot be read: it is not JSON"
    assert len(store.aside()) == len(whys) == 3
    assert repair_store(store) == []
    with running(tmp_path, store=store) as scheduler:
        assert ended(scheduler, submit(scheduler, "true")) == ["succeeded"]
    replays(store)


def test_what_the_database_itself_finds_broken_is_not_ours_to_mend(tmp_path: Path, store: SqlStore) -> None:
    path = tmp_path / "store.sqlite"
    store.append([Entry("event", {"time": float(k), "event": "x" * 400}) for k in range(200)])
    store.close()
    data = bytearray(path.read_bytes())
    data[20 * 4096 : 24 * 4096] = bytes(4 * 4096)
    path.write_bytes(data)
    store = SqlStore.open(path)
    (found,) = repair_store(store)
    assert found.where == "database"
    assert not found.done
    store.close()
