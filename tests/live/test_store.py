"""The store in a file: SQLite with a write-ahead log."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from tests.live.specs import ended, must_succeed, replays, running, shell, state, submit, until
from tests.live.store_contract import StoreContract, event, job

from gantline.core.errors import NotFoundError, RefusedError, UnreachableError, UsageError
from gantline.core.inputs import Action, JobRequest, encode_input
from gantline.live.jobs.spec_file import spec_of
from gantline.live.service.access import JobTokens
from gantline.live.service.repair import repair_store
from gantline.live.store import SqlStore, StoreError
from gantline.live.store.connection import Lock, back_up
from gantline.live.store.records import Entry

WRITER = """
import sys
from gantline.live.store.records import Entry
from gantline.live.store import SqlStore
store = SqlStore.open(sys.argv[1])
number = 0
while True:
    number += 1
    store.append([Entry("job", {"id": f"{number}_a"}), Entry("job", {"id": f"{number}_b"})])
    print(number, flush=True)
"""


class TestSqlite(StoreContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'gantline.sqlite'}"


def test_every_commit_is_synced_to_a_write_ahead_log(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "a.sqlite")
    writer = store._connections.writer
    with writer.begin():
        assert writer.execute(text("pragma journal_mode")).scalar() == "wal"
        assert writer.execute(text("pragma synchronous")).scalar() == 2
    store.close()


def test_what_was_told_outlives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    told = 0
    while told < 20:
        told = int(writer.stdout.readline())
    with pytest.raises(RefusedError, match=f"process {writer.pid}"):
        SqlStore.open(path)
    os.kill(writer.pid, signal.SIGKILL)
    rest = writer.stdout.read().split()
    writer.wait()
    store = SqlStore.open(path)  # the lock died with its holder
    found = [one["id"] for one in store.jobs()]
    last = int(rest[-1]) if rest else told
    assert len(found) in (2 * last, 2 * (last + 1)), "all that was told, and never half of anything"
    store.close()


def test_a_service_that_was_killed_while_it_started_a_process_is_not_in_the_way(tmp_path: Path) -> None:
    """The process holds the lock, too, until it runs another program; only then is it really free."""
    read, write = os.pipe()
    service = os.fork()
    if service == 0:
        held = Lock(tmp_path / "lock")
        if os.fork() == 0:
            os.close(write)
            os.read(read, 1)  # until the test lets it go
            held.release()
        os._exit(0)
    os.waitpid(service, 0)
    with open(tmp_path / "lock", encoding="utf-8") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    threading.Timer(0.1, os.close, [write]).start()
    Lock(tmp_path / "lock").release()
    os.close(read)


def test_a_full_disk_refuses_and_loses_nothing(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "a.sqlite")
    store.append([job("1")])
    writer = store._connections.writer
    with writer.begin():
        pages = writer.execute(text("pragma page_count")).scalar()
        writer.execute(text(f"pragma max_page_count={pages}"))
    with pytest.raises(StoreError, match="full"):
        store.append([event(1.0, text="x" * 200_000)])
    assert [one["id"] for one in store.jobs()] == ["1"]
    with writer.begin():
        writer.execute(text("pragma max_page_count=1000000"))
    store.append([event(1.0, text="x" * 200_000)])
    store.close()


def test_a_commit_that_fails_leaves_no_transaction_open(tmp_path: Path) -> None:
    """The disk is full when the log is written, which is at the end of a transaction."""
    store = SqlStore.open(tmp_path / "a.sqlite")
    store.append([job("1")])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        for _ in range(2):
            with pytest.raises(StoreError, match="cannot be written"):
                store.append([job("2")])
            assert store.failing is not None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    store.append([job("3")])
    assert store.failing is None
    assert [one["id"] for one in store.jobs()] == ["1", "3"]
    store.close()


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").write_text("hello " * 1000, encoding="utf-8")
    with pytest.raises(RefusedError, match="is not a Gantline store"):
        SqlStore.open(tmp_path / "a.sqlite")
    with pytest.raises(UsageError, match="no such store"):
        SqlStore.open(tmp_path / "b.sqlite", write=False)
    with pytest.raises(UsageError, match="no folder"):
        SqlStore.open(tmp_path / "none" / "b.sqlite")


@pytest.mark.parametrize(("url", "words"), [("mysql://x/y", "no known store"), ("://", "not the URL")])
def test_other_databases_are_refused(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        SqlStore.open(url)


def test_a_database_without_its_driver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match=r"needs psycopg .*pip install 'gantline\[postgresql\]'"):
        SqlStore.open("postgresql://127.0.0.1:1/none")


def test_a_password_is_never_told() -> None:
    with pytest.raises(UnreachableError) as failure:
        SqlStore.open("postgresql://ana:sesame@127.0.0.1:1/none?connect_timeout=2")
    assert "sesame" not in str(failure.value)


def test_a_jobs_token_is_the_same_after_a_restart_and_opens_one_job_only(tmp_path: Path) -> None:
    first, second = JobTokens.at(tmp_path / "secret"), JobTokens.at(tmp_path / "secret")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    token = first.token("12_3")
    assert second.job_of(token) == "12_3"
    assert second.job_of(token.replace("12_3", "12_4")) is None
    assert second.job_of("glj_12_3.") is None
    assert second.job_of("") is None
    assert JobTokens(b"another").job_of(token) is None


# A copy of the store while a service writes to it: all that was acknowledged by then, and a service goes on from it.


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


# Nothing in a store keeps a service from starting: what cannot be used is set aside, named, and can be mended while no service runs.


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


# An array is one input, however many jobs it has: one line of the journal, one common part in the store, one request.


def inputs_of(store: SqlStore, kind: str) -> list[dict[str, object]]:
    return [line for _, line in store.journal() if line.get("input") == kind]


def test_an_array_and_what_is_asked_of_it_are_one_line_each(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:1", store=store) as scheduler:
        blocker = submit(scheduler, "sleep 1000")
        tasks = scheduler.submit(spec_of({"run": ["true"], "array": "5-204"}), "ann")
        assert tasks == [f"2_{k}" for k in range(5, 205)]
        scheduler.request(tasks[10:], Action.CANCEL, "ann")
        until(lambda: state(scheduler, tasks[-1]) == "cancelled")
        scheduler.request([blocker], Action.CANCEL)
        must_succeed(scheduler, *tasks[:10])
    (_, array), (many, _) = inputs_of(store, "submit"), inputs_of(store, "cancel")
    assert array["ids"] == tasks
    assert "id" not in array["job"]  # type: ignore[operator]
    assert [many["job"], *many["others"]] == tasks[10:]  # type: ignore[misc]
    store.close()
    replays(tmp_path / "store.sqlite")


def test_tasks_are_stored_once_and_come_back_whole(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:1", store=store) as scheduler:
        scheduler.submit(shell("sleep 1000"))
        spec = {"run": ["echo", "task $ARRAY_INDEX"], "name": "sweep", "array": "0-2%1", "env": {"A": "1"}}
        tasks = scheduler.submit(spec_of(spec), "ann", "once")
        before = {name: (scheduler.registry[name].spec, scheduler.registry[name].launch, scheduler.registry[name].holds) for name in tasks}
        assert [before[name][1].command for name in tasks] == [("echo", f"task {k}") for k in range(3)]
        assert [sorted(before[name][2]) for name in tasks] == [[], ["array-limit"], ["array-limit"]]
        with store.transaction() as write:
            write.entries([])
    store.close()
    store = SqlStore.open(tmp_path / "store.sqlite")
    one = store.job(tasks[2])
    assert (one["user"], one["request"], one["spec"]["index"], one["launch"]["env"]) == ("ann", "once", 2, {"A": "1"})
    with running(tmp_path, "cpu:1", store=store) as scheduler:
        for name in tasks:
            job = scheduler.registry[name]
            assert (job.spec, job.launch, job.holds) == before[name]
        assert scheduler.submit(spec_of(spec), "ann", "once") == tasks
    store.close()
