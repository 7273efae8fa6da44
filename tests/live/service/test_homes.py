"""A home belongs to one service and to one store: neither a second service nor the jobs of another store are taken for its own."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.live.service.asking import succeed
from tests.live.service.conftest import Running

from gantline.core.errors import NotFoundError, RefusedError
from gantline.live.service.home import Home, Options
from gantline.live.service.repair import mend
from gantline.live.store import SqlStore


def run_one(home: Home, store: str = "") -> str:
    """A service in which one job runs; its output."""
    running = Running(Options(home, devices="cpu:1", store=store)).start()
    client = running.client()
    (job,) = client.submit(["sh", "-c", "echo $$"])
    succeed(client, job)
    said = "".join(client.logs(job))
    running.stop()
    return said


def test_a_fresh_store_does_not_take_the_jobs_of_another_for_its_own(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    first = run_one(home)
    home.store.rename(tmp_path / "old.sqlite")
    with pytest.raises(RefusedError, match=r"holds the jobs of another store.*gantline repair"):
        Running(Options(home, devices="cpu:1")).start()
    (planned,) = mend(home, dry_run=True)
    assert home.jobs.is_dir()
    assert mend(home) == [planned]
    assert planned.done == "set aside as jobs-set-aside-1"
    assert mend(home) == []
    assert run_one(home) != first, "job 1 has run"
    assert (tmp_path / "home" / "jobs-set-aside-1" / "1" / "1" / "log").read_text() == first


@pytest.mark.parametrize("harm", ["pages", "job", "identity", "missing"])
def test_nothing_is_moved_where_the_database_cannot_be_read(tmp_path: Path, harm: str) -> None:
    """Neither then nor before: and a start says what is wrong, and how to go back."""
    home = Home(tmp_path / "home")
    run_one(home)
    if harm == "missing":
        home.store.unlink()
    elif harm == "pages":
        text = home.store.read_bytes()
        home.store.write_bytes(text[:8192] + os.urandom(len(text) - 8192))
    else:
        wrong = {"job": "update jobs set body = '{'", "identity": "update meta set value = '{' where key = 'identity'"}[harm]
        with closing(sqlite3.connect(home.store)) as opened:
            opened.execute(wrong)
            opened.commit()
    for dry_run in (True, False):
        if harm in ("pages", "identity"):
            with pytest.raises(RefusedError, match=r"malformed|damaged"):
                mend(home, dry_run=dry_run)
        else:
            assert [one.done for one in mend(home, dry_run=dry_run)] == [""]
    with pytest.raises(RefusedError, match="gantline restore FILE"):
        Running(Options(home, devices="cpu:1")).start()
    assert (home.jobs / "1" / "1" / "log").is_file()
    assert [one.name for one in home.path.glob("jobs*")] == ["jobs"]


def test_the_jobs_of_an_older_version_are_adopted_by_their_store(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    run_one(home)
    (home.jobs / "store").unlink()  # as earlier versions left it
    assert mend(home) == []
    Running(Options(home)).start().stop()
    store = SqlStore.open(home.store, write=False)
    assert (home.jobs / "store").read_text().split()[0] == store.identity
    store.close()


def test_a_home_has_one_service_whatever_its_store(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    running = Running(Options(home, devices="cpu:1")).start()
    for act in (lambda: Running(Options(home, store=f"sqlite:///{tmp_path}/other.sqlite")).start(), lambda: mend(home)):
        with pytest.raises(RefusedError, match=r"another service \(process \d+\) uses this home"):
            act()
    running.stop()
    with pytest.raises(NotFoundError, match="no such folder"):
        mend(Home(tmp_path / "nowhere"))
