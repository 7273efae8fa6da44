"""The service is killed at every write to its store: nothing acknowledged is lost, no device is held twice, everybody ends as he should."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest
from tests.live.lives import live, live_here, script
from tests.live.specs import alive_in, end_all, shell

from gantline.live.scheduler.replay import replay_store
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


def told(home: Path, name: str) -> list[str]:
    path = home / name
    return path.read_text().splitlines() if path.exists() else []


def check(home: Path) -> None:
    """All promises, from what the jobs saw and what the store says."""
    store = SqlStore.open(home / "gantline.sqlite", write=False)
    jobs = {job["request"]: job for job in store.jobs()}
    replayed = replay_store(store)
    store.close()
    assert replayed.difference is None, f"the record is not what was decided: {replayed.difference}"
    assert {request: job["state"] for request, job in jobs.items()} == ENDS
    for line in told(home, "acknowledged"):
        request, name = line.split()
        assert jobs[request]["id"] == name, "an acknowledged job is there under its id"
    assert not told(home, "breaches")
    twice = [one for one, count in Counter(told(home, "began")).items() if count > 1]
    assert not twice, "no incarnation begins twice"
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


TRAINER = """
cd $GANTLINE_CHECKPOINT
i=$(cat step 2>/dev/null || echo 0)
while [ $i -lt 30 ]; do
  i=$((i + 1)); sleep 0.03
  echo $i > next && mv next step && echo $GANTLINE_EPOCH $i >> log
done
"""


def test_a_bad_day(tmp_path: Path, empty: Path) -> None:
    """Services, keepers and trainers are killed at random; steps never go back, and everybody gets there."""
    shutil.copy(empty, tmp_path)
    chance = random.Random(12)
    jobs = {f"r{k}": shell(TRAINER, resumes=True, retries=50, backoff=0.01) for k in range(3)}
    for _ in range(5):
        live(tmp_path, requests=jobs, kill_after=chance.uniform(0.3, 1.2))
        alive = [one for one in alive_in(tmp_path) if one.state.get("ranks")]
        if alive:
            victim = chance.choice(alive)
            pid = victim.state["pid"] if chance.random() < 0.5 else victim.state["ranks"][0]["pid"]
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert live(tmp_path, requests=jobs) == 0
    end_all(tmp_path)
    store = SqlStore.open(tmp_path / "gantline.sqlite", write=False)
    records = list(store.jobs())
    replayed = replay_store(store)
    store.close()
    assert replayed.difference is None, f"the record is not what was decided: {replayed.difference}"
    assert [job["state"] for job in records] == ["succeeded"] * 3
    for job in records:
        steps = [int(line.split()[1]) for line in (tmp_path / "jobs" / job["id"] / "checkpoint" / "log").read_text().splitlines()]
        assert steps == sorted(set(steps)), "a step was done twice, or by two at once"
        assert steps[-1] == 30
