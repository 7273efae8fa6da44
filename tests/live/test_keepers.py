"""Keepers in trouble: halted, killed, with jobs that hide, and with so many files open that their numbers are large."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.specs import ended, must_succeed, running, submit, until, until_running

from gantline.core.inputs import Action
from gantline.live.host import connections_within, raise_limit, too_few
from gantline.live.scheduler.scheduler import Scheduler


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def number_in(path: Path) -> int:
    return int(until(lambda: path.exists() and path.read_text().strip()))


def begun(scheduler: Scheduler, job: str) -> dict[str, int]:
    until_running(scheduler, job)
    return scheduler.runner.known[job].state


@pytest.fixture
def large_numbers() -> Iterator[None]:
    """So many files are open that the next ones have numbers above 1023, which select() does not know."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert raise_limit() > 1200, "this machine allows too few files"
    taken = []
    while not taken or taken[-1] < 1100:
        taken.append(os.open("/dev/null", os.O_RDONLY))
    yield
    for one in taken:
        os.close(one)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("large_numbers")
def test_file_numbers_above_1023(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        jobs = [submit(scheduler, line) for line in ("sleep 0.1", "sleep 1000")]
        assert scheduler.runner._bell > 1023
        begun(scheduler, jobs[1])
        must_succeed(scheduler, jobs[0])
        scheduler.request([jobs[1]], Action.CANCEL)
        until(lambda: not scheduler.view().jobs[jobs[1]].devices)
        assert scheduler.alive


def test_how_many_jobs_the_open_files_are_enough_for() -> None:
    assert too_few(65_536, 10_000) == ""
    assert "at most 555 jobs" in too_few(1024, 1000)
    assert connections_within(1024) == 341


@pytest.mark.parametrize("halted", [("pid",), ("pid", "above")], ids=["keeper", "both"])
def test_a_halted_keeper_gives_its_device_up_after_a_cancel(tmp_path: Path, halted: tuple[str, ...]) -> None:
    with running(tmp_path, "cpu:1") as scheduler:
        job = submit(scheduler, "echo $$ > $GANTLINE_CHECKPOINT/pid; sleep 1000", grace=0.2)
        known = begun(scheduler, job)
        process = number_in(tmp_path / "jobs" / job / "checkpoint" / "pid")
        for name in halted:
            os.kill(known[name], signal.SIGSTOP)
        scheduler.request([job], Action.CANCEL)
        assert ended(scheduler, submit(scheduler, "true")) == ["succeeded"], "it gets the device"
        assert not is_there(process)
        until(lambda: not any(is_there(known[name]) for name in ("pid", "above")))


def test_a_keeper_that_does_not_stop_its_job_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Halted again whenever it is woken: it never gets to see what it is told."""
    monkeypatch.setattr("gantline.live.runners.local.incarnation.OVERDUE", 0.1)
    with running(tmp_path, "cpu:1") as scheduler:
        job = submit(scheduler, "sleep 1000", grace=0.1)
        known, one = begun(scheduler, job), scheduler.runner.known[job]
        os.kill(known["pid"], signal.SIGSTOP)
        one.signal = lambda number: None  # type: ignore[method-assign]
        scheduler.request([job], Action.CANCEL)
        until(lambda: not scheduler.view().jobs[job].devices)
        assert not is_there(known["pid"])
        assert not is_there(known["above"])


HIDES = """
[ $GANTLINE_EPOCH -gt 1 ] && { kill -0 $(cat $GANTLINE_CHECKPOINT/stray) && echo there || echo gone; exit 0; }
(env -i setsid sh -c 'echo $$ > '$GANTLINE_CHECKPOINT'/stray; exec sleep 1000' > /dev/null 2>&1 &)
sleep 1000
"""


def test_a_process_that_left_group_and_environment_ends_with_its_killed_keeper(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:1") as scheduler:
        job = submit(scheduler, HIDES, backoff=0.01)
        known = begun(scheduler, job)
        stray = number_in(tmp_path / "jobs" / job / "checkpoint" / "stray")
        assert "GANTLINE" not in Path(f"/proc/{stray}/environ").read_text()
        os.kill(known["pid"], signal.SIGKILL)
        must_succeed(scheduler, job)
        assert "gone" in (tmp_path / "jobs" / job / "2" / "log").read_text()
        assert not is_there(stray)


def test_a_requeue_gives_a_job_all_its_losses_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One loss is allowed here: this job has one before it is requeued, and one after that."""
    monkeypatch.setattr("gantline.live.scheduler.job_registry._LOST_MOST", 1)
    with running(tmp_path, "cpu:1") as scheduler:
        job = submit(scheduler, "[ $GANTLINE_EPOCH -gt 3 ] || sleep 1000", backoff=0.01)
        for epoch, action in enumerate(("loss", "requeue", "loss"), 1):
            until(lambda epoch=epoch: scheduler.view().jobs[job].epoch == epoch)  # type: ignore[misc]
            keeper = begun(scheduler, job)["pid"]
            if action == "loss":
                os.kill(keeper, signal.SIGKILL)
            else:
                scheduler.request([job], Action.REQUEUE)
        must_succeed(scheduler, job)


def test_a_keeper_goes_on_without_the_process_above_it(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:1") as scheduler:
        job = submit(scheduler, f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done")
        os.kill(begun(scheduler, job)["above"], signal.SIGKILL)
        until(lambda: not scheduler.runner.known[job].is_above, "it is seen that one of the two is gone")
        (tmp_path / "go").touch()
        must_succeed(scheduler, job)
        assert scheduler.view().jobs[job].epoch == 1


def test_a_job_that_ends_with_0_while_it_is_asked_to_stop_has_done_its_work(tmp_path: Path) -> None:
    line = "trap 'asked=1' TERM; echo begun; touch $GANTLINE_CHECKPOINT/begun; while [ -z $asked ]; do sleep 0.02; done; exit 0"
    with running(tmp_path, "cpu:1") as scheduler:
        job = submit(scheduler, line)
        until(lambda: (tmp_path / "jobs" / job / "checkpoint" / "begun").exists())
        scheduler.request([job], Action.REQUEUE)
        must_succeed(scheduler, job)
        assert scheduler.view().jobs[job].epoch == 1


def test_a_gang_of_which_one_rank_ends_with_0_while_it_is_asked_to_stop_runs_again(tmp_path: Path) -> None:
    """It has succeeded when every rank has: `gang_state.combined` says the same of parts on several nodes."""
    line = "[ $GANTLINE_EPOCH -gt 1 ] && exit 0; trap 'exit $((15 * RANK))' TERM; touch $GANTLINE_CHECKPOINT/begun.$RANK; sleep 1000 & wait"
    with running(tmp_path) as scheduler:
        job = submit(scheduler, line, 2, processes=0)
        until(lambda: all((tmp_path / "jobs" / job / "checkpoint" / f"begun.{rank}").exists() for rank in (0, 1)))
        scheduler.request([job], Action.REQUEUE)
        must_succeed(scheduler, job)
        assert scheduler.view().jobs[job].epoch == 2


def test_a_job_may_say_which_exit_code_means_that_it_stopped(tmp_path: Path) -> None:
    """It saves and ends with 0 when it is asked to stop: that is not its end."""
    line = "cd $GANTLINE_CHECKPOINT; [ -e saved ] && exit 0; trap 'touch saved; exit 0' TERM; touch begun; sleep 1000 & wait"
    with running(tmp_path, "cpu:1") as scheduler:
        job = submit(scheduler, line, resumes=True, stopped_exit=0)
        until(lambda: (tmp_path / "jobs" / job / "checkpoint" / "begun").exists())
        scheduler.request([job], Action.REQUEUE)
        must_succeed(scheduler, job)
        assert scheduler.view().jobs[job].epoch == 2
