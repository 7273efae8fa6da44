"""A store that is older than the folders of its jobs begins another life: nothing that an earlier one has left is believed."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.live.service.asking import over, succeed
from tests.live.service.conftest import Running, until

from gantline.core.errors import NotFoundError, RefusedError
from gantline.live.runners.local.files import read_json
from gantline.live.service.client import Client
from gantline.live.service.home import Home, Options
from gantline.live.service.repair import restore
from gantline.live.store import SqlStore
from gantline.live.store.connection import back_up

Turn = Callable[[Home, Path], None]


def served(home: Home, **more: object) -> Running:
    return Running(Options(home, devices="cpu:2", **more)).start()  # type: ignore[arg-type]


def run_one(client: Client, line: str = "echo ran") -> str:
    (job,) = client.submit(["sh", "-c", line])
    succeed(client, job)
    return str(job)


def said(client: Client, job: str) -> str:
    return "".join(client.logs(job)).strip()


def by_command(home: Home, copy: Path) -> None:
    restore(home, copy)


def by_hand(home: Home, copy: Path) -> None:
    for end in ("-wal", "-shm"):
        Path(f"{home.store}{end}").unlink(missing_ok=True)
    shutil.copy(copy, home.store)


@pytest.mark.parametrize("turn", [by_command, by_hand])
def test_after_a_restore_new_jobs_run_and_no_number_is_given_twice(tmp_path: Path, turn: Turn) -> None:
    home, copy = Home(tmp_path / "home"), tmp_path / "copy"
    running = served(home)
    client = running.client()
    first = run_one(client)
    back_up(home.store, copy)
    later = [run_one(client, f"echo old {number}") for number in range(3)]
    generation = running_generation(home)
    running.stop()

    turn(home, copy)
    told: list[str] = []
    running = Running(Options(home), told.append).start()
    client = running.client()
    assert any("another life of the store begins" in line and f"jobs 2 to {later[-1]}" in line for line in told), told
    assert client.job(first)["state"] == "succeeded"
    with pytest.raises(NotFoundError):
        client.job(later[0])
    new = run_one(client, "echo new")
    assert int(new) == int(later[-1]) + 1
    assert said(client, new) == "new"
    assert [event["event"] for event in client.events() if event["event"] == "new-life"] == ["new-life"]
    assert read_json(str(home.jobs / new / "1" / "order.json"))["generation"] == running_generation(home) != generation
    running.stop()

    again: list[str] = []
    running = Running(Options(home), again.append).start()
    assert not any("another life" in line for line in again), "it has begun once"
    assert int(run_one(running.client())) == int(new) + 1
    running.stop()


def running_generation(home: Home) -> str:
    with closing(SqlStore.open(home.store, write=False)) as store:
        assert store.generation
        return store.generation


def test_what_runs_when_a_backup_is_put_back_is_stopped_and_saves_and_its_job_runs_again(tmp_path: Path) -> None:
    """Job 1 ran when the backup was made and still does; job 2 came later."""
    home, copy = Home(tmp_path / "home"), tmp_path / "copy"
    running = served(home)
    client = running.client()
    line = "trap 'echo saved >> $GANTLINE_CHECKPOINT/said; exit 0' TERM; echo epoch $GANTLINE_EPOCH; while true; do sleep 0.05; done"
    (kept,) = client.submit(["sh", "-c", line])
    until(lambda: "epoch" in said(client, kept))
    back_up(home.store, copy)
    (lost,) = client.submit(["sh", "-c", line])
    until(lambda: "epoch" in said(client, lost))
    running.stop(drain=False)

    found = restore(home, copy)
    assert (found.jobs, found.lost, found.open, found.newest) == (1, (lost,), (kept,), int(lost))
    assert set(found.running) == {kept, lost}
    running = served(home)
    client = running.client()
    until(lambda: all((home.jobs / job / "checkpoint" / "said").exists() for job in (kept, lost)), "both have saved")
    until(lambda: client.job(kept)["state"] == "running" and client.job(kept)["epoch"] > 1)
    epoch = client.job(kept)["epoch"]
    until(lambda: said(client, kept).endswith(f"epoch {epoch}"))
    assert read_json(str(home.jobs / kept / "1" / "state.json"))["phase"] == "over"
    until(lambda: read_json(str(home.jobs / lost / "1" / "state.json"))["phase"] == "over")
    client.cancel(kept)
    assert over(client, kept)[0]["state"] == "cancelled"
    running.stop()


def test_a_lost_write_ahead_log_is_noticed(tmp_path: Path) -> None:
    home, copy = Home(tmp_path / "home"), tmp_path / "copy"
    running = served(home)
    client = running.client()
    shutil.copy(home.store, copy)  # what the file itself has, without its log
    done = [run_one(client) for _ in range(3)]
    running.stop()
    by_hand(home, copy)
    running = served(home)
    client = running.client()
    new = run_one(client, "echo new")
    assert int(new) > int(done[-1])
    assert said(client, new) == "new"
    running.stop()


def test_a_waiting_job_that_only_the_mark_knows_does_not_lose_its_number(tmp_path: Path) -> None:
    home, copy = Home(tmp_path / "home"), tmp_path / "copy"
    running = served(home)
    client = running.client()
    back_up(home.store, copy)
    client.submit(["sleep", "600"], resources={"gpus": 2})
    (waits,) = client.submit(["true"], resources={"gpus": 2})
    running.stop()
    restore(home, copy)
    running = served(home)
    assert int(run_one(running.client())) > int(waits)
    running.stop()


def test_numbers_of_archived_jobs_are_not_given_again_though_their_folders_are_gone(tmp_path: Path) -> None:
    home, copy = Home(tmp_path / "home"), tmp_path / "copy"
    running = served(home, keep={"jobs": 0})
    client = running.client()
    back_up(home.store, copy)
    done = [run_one(client) for _ in range(2)]
    until(lambda: client.status()["archived"] == 2)
    running.stop()
    by_hand(home, copy)
    shutil.rmtree(home.jobs)
    running = served(home)
    assert int(run_one(running.client())) > int(done[-1])
    running.stop()


def test_a_backup_begins_in_a_home_that_was_lost(tmp_path: Path) -> None:
    home, copy = Home(tmp_path / "home"), tmp_path / "copy"
    running = served(home)
    first = run_one(running.client())
    back_up(home.store, copy)
    running.stop()
    other = Home(tmp_path / "other")
    found = restore(other, copy)
    assert (found.jobs, found.lost, found.aside) == (1, (), "")
    running = served(other)
    client = running.client()
    assert client.job(first)["state"] == "succeeded"
    assert int(run_one(client)) == int(first) + 1
    running.stop()


def test_a_restore_that_cannot_be_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    home, copy, other = Home(tmp_path / "home"), tmp_path / "copy", tmp_path / "other"
    running = served(home)
    run_one(running.client())
    back_up(home.store, copy)
    with pytest.raises(RefusedError, match="another service"):
        restore(home, copy)
    running.stop()
    before = home.store.read_bytes()
    with pytest.raises(NotFoundError, match="no such file"):
        restore(home, tmp_path / "none")
    (tmp_path / "text").write_text("hello " * 1000, encoding="utf-8")
    with closing(sqlite3.connect(tmp_path / "table")) as table:
        table.execute("create table meta (key, value)")
    damaged = bytearray(copy.read_bytes())
    damaged[8192:] = os.urandom(len(damaged) - 8192)
    (tmp_path / "damaged").write_bytes(damaged)
    for name in ("text", "table", "damaged"):
        with pytest.raises(RefusedError, match=r"no backup|damaged"):
            restore(home, tmp_path / name)
    with closing(SqlStore.open(other)) as store:
        assert store.identity
    with pytest.raises(RefusedError, match="jobs of another store"):
        restore(home, other)
    with pytest.raises(RefusedError, match="pg_restore"):
        restore(home, copy, "postgresql://somebody@localhost/name")
    assert home.store.read_bytes() == before
    assert sorted(one.name for one in home.path.glob("*gantline.sqlite*")) == ["gantline.sqlite", "gantline.sqlite.lock"]


def test_a_plain_copy_of_a_young_home_has_its_jobs(tmp_path: Path) -> None:
    """What was written is in the file itself soon, and not only in the log beside it."""
    home = Home(tmp_path / "home")
    running = served(home)
    first = run_one(running.client())

    def copied() -> list[str]:
        shutil.copy(home.store, tmp_path / "copy")
        with closing(SqlStore.open(tmp_path / "copy", write=False)) as store:
            return [job["id"] for job in store.jobs() if job["state"] == "succeeded"]

    until(lambda: copied() == [first])
    running.stop()
