"""The store in a file: SQLite with a write-ahead log."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.live.store_contract import StoreContract, event, job

from gantline.core.errors import RefusedError, UnreachableError, UsageError
from gantline.live.service.access import JobTokens
from gantline.live.store import SqlStore, StoreError
from gantline.live.store.connection import Lock

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
