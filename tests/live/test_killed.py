"""The service is killed at every write to its store: nothing acknowledged is lost, no device is held twice, everybody ends as he should."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from tests.live.lives import check_promises, live, live_here, script, told
from tests.live.specs import end_all

from gantline.live.store.store import SqlStore

APART = 5  # between the moments at which it is killed
PARTS = 6  # of the moments at which it is killed, so that workers share them
ENDS = {"fails": "succeeded", "victim": "cancelled", "after": "succeeded"}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store to begin with; what a life and the one after it need is loaded once, before the forks."""
    warm, home = tmp_path_factory.mktemp("warm"), tmp_path_factory.mktemp("empty")
    for _ in range(2):
        live_here(warm)
    SqlStore.open(home / "gantline.sqlite").close()
    return home / "gantline.sqlite"


def check(home: Path) -> None:
    """All promises, from what the jobs saw and what the store says."""
    jobs = {job["request"]: job for job in check_promises(home, home / "gantline.sqlite").values()}
    assert {request: job["state"] for request, job in jobs.items()} == ENDS
    for request, name in told(home, "acknowledged"):
        assert jobs[request]["id"] == name, "an acknowledged job is there under its id"
    assert jobs["fails"]["failures"] <= 1  # none, where its first incarnation had not begun when the service died


def test_a_life_without_a_kill(tmp_path: Path, empty: Path) -> None:
    assert live(tmp_path) == 0
    check(tmp_path)
    assert set(script(tmp_path)) | {"after"} == set(ENDS)


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_every_commit(tmp_path: Path, empty: Path, part: int) -> None:
    """Before it and after it; each time a new service ends what the killed one began. The parts together take every fifth moment."""
    at, killed = APART * part + 1, 0
    while True:
        home = tmp_path / str(at)
        home.mkdir()
        shutil.copy(empty, home)
        status = live(home, kill_at=at)
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL, f"life {at} ended with {status}"
        assert live(home) == 0, f"the life after a kill at {at}"
        check(home)
        end_all(home)
        killed, at = killed + 1, at + APART * PARTS
    assert killed
