"""Keepers are forked from a process that is warm: it may be killed or halted, and no job notices."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.live.specs import ended, must_succeed, running, submit, until_running

from gantline.live.runners.local import fork_server, runner
from gantline.live.scheduler.scheduler import Scheduler


@pytest.fixture(autouse=True)
def fork_servers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those that other tests have left."""
    monkeypatch.setattr(runner, "KeeperForkServer", fork_server.KeeperForkServer)


def fork_server_of(scheduler: Scheduler) -> int:
    process = scheduler.runner.fork_server.process
    return process.pid


def waiting_for(file: Path) -> str:
    return f"while [ ! -e {file} ]; do sleep 0.02; done"


def test_one_process_starts_all_keepers_and_ends_with_the_service(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        jobs = [submit(scheduler, "echo $$") for _ in range(4)]
        must_succeed(scheduler, *jobs)
        pid = fork_server_of(scheduler)
        assert all(scheduler.runner.known[job].pidfd == -1 for job in jobs), "nothing is held of jobs that are over"
    assert not Path(f"/proc/{pid}").exists()


def test_jobs_go_on_when_the_fork_server_is_killed_and_others_are_started_by_another(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        first = submit(scheduler, waiting_for(tmp_path / "go"))
        until_running(scheduler, first)
        killed = fork_server_of(scheduler)
        os.kill(killed, signal.SIGKILL)
        second = submit(scheduler, "true")
        must_succeed(scheduler, second)
        (tmp_path / "go").touch()
        must_succeed(scheduler, first)
        assert fork_server_of(scheduler) != killed
        assert scheduler.view().jobs[first].epoch == scheduler.view().jobs[second].epoch == 1


def test_a_fork_server_that_does_not_answer_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "_PATIENCE", 1.0)
    with running(tmp_path) as scheduler:
        first = submit(scheduler, "true")
        must_succeed(scheduler, first)
        halted = fork_server_of(scheduler)
        os.kill(halted, signal.SIGSTOP)
        second = submit(scheduler, "true")
        must_succeed(scheduler, second)
        assert not Path(f"/proc/{halted}").exists(), "it could still fork a second keeper"


def test_where_no_keeper_can_be_had_the_job_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "FORK_SERVER", (str(tmp_path / "missing"),))
    with running(tmp_path) as scheduler:
        job = submit(scheduler, "true")
        assert ended(scheduler, job) == ["failed"]
        assert "cannot be started" in scheduler.view().jobs[job].why
