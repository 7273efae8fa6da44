"""The multi-process service under slices: started with the first job, watched, restarted, ended; its crashes count against no job."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.live.mps_stand_in import ControlProgram, control_program
from tests.live.specs import ended, must_succeed, running, shell, state, submit, until, until_running

from gantline.core.errors import RefusedError
from gantline.live.runners.local import slices
from gantline.live.runners.local.devices import FoundGpu
from gantline.live.runners.local.files import children_of
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.runners.local.slices import Daemon, Mps
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store.records import MemoryStore

__all__ = ["control_program"]

AGAIN = "[ $RESTART_COUNT = 0 ] && sleep 100; true"  # it waits, and ends well when it is started again


def daemon_of(scheduler: Scheduler, gpu: str = "0") -> Daemon:
    return Daemon(scheduler.runner.mps.home / gpu, gpu)


def server_of(scheduler: Scheduler) -> int:
    return int(until(lambda: min(children_of(daemon_of(scheduler).pid), default=0), "a server"))


def test_a_job_on_a_slice_finds_its_daemon_and_its_part(tmp_path: Path, control_program: ControlProgram) -> None:
    words = "$CUDA_VISIBLE_DEVICES $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_PIPE_DIRECTORY $GANTLINE_DEVICES"
    scheduler = Scheduler(MemoryStore(), LocalRunner(tmp_path, "h200/8"), "fifo")
    scheduler.start()
    job = submit(scheduler, f"echo {words}")
    must_succeed(scheduler, job)
    daemon = daemon_of(scheduler)
    (log,) = (tmp_path / "jobs" / job).glob("*/log")
    assert log.read_text().split() == ["0", "12", str(daemon.folder), "h200.12pct-0:0"]
    assert daemon.pid
    scheduler.stop(drain=True)
    until(lambda: not daemon.pid, "the end of the daemon: the jobs have been drained")


@pytest.mark.parametrize("killed", ["daemon", "server"])
def test_jobs_that_a_crash_has_ended_start_again_and_it_counts_as_no_failure(
    tmp_path: Path, control_program: ControlProgram, killed: str
) -> None:
    with running(tmp_path, "h200/4,cpu:1") as scheduler:
        on_slice = shell(AGAIN, options=[{"type": "h200.25pct", "gpus": 1}], backoff=0.1)
        pair = [*scheduler.submit(on_slice), *scheduler.submit(on_slice)]
        beside = submit(scheduler, "sleep 100", options=[{"type": "cpu", "gpus": 1}])
        until_running(scheduler, *pair, beside)
        server = server_of(scheduler)
        until(lambda: server in scheduler.runner.mps._daemon("0")._servers, "the first look")
        os.kill(server if killed == "server" else daemon_of(scheduler).pid, signal.SIGKILL)
        assert ended(scheduler, *pair) == ["succeeded", "succeeded"], "though no retries are granted"
        assert [(scheduler.registry[job].failures, scheduler.registry[job].lost) for job in pair] == [(0, 1), (0, 1)]
        assert state(scheduler, beside) == "running"


def test_the_log_of_the_server_shows_which_failures_a_crash_has_caused(tmp_path: Path, control_program: ControlProgram) -> None:
    with running(tmp_path, "h200/4") as scheduler:
        log = daemon_of(scheduler).folder / "server.log"
        crashes = f"[ $RESTART_COUNT = 0 ] && sleep 0.5 && echo 'Server 7: fatal exception on device 0' >> {log} && exit 1; true"
        other = submit(scheduler, AGAIN, backoff=0.1)
        until_running(scheduler, other)
        job = submit(scheduler, crashes, backoff=0.1)
        must_succeed(scheduler, job, other)
        assert (scheduler.registry[job].lost, scheduler.registry[other].lost) == (1, 1)
        alone = submit(scheduler, f"echo 'fatal exception' >> {log}; exit 3")
        assert ended(scheduler, alone) == ["failed"], "no other job can have caused it"
        beside = submit(scheduler, "sleep 100")
        until_running(scheduler, beside)
        plain = submit(scheduler, f"echo 'Server 7: default active thread percentage: 100' >> {log}; exit 3")
        assert ended(scheduler, plain) == ["failed"], "that was no crash"
        assert state(scheduler, beside) == "running"


def test_a_daemon_that_cannot_be_started_is_the_reason_of_a_job(tmp_path: Path, control_program: ControlProgram) -> None:
    control_program.cannot_start()
    with running(tmp_path, "h200/4") as scheduler:
        job = submit(scheduler, "true")
        assert ended(scheduler, job) == ["failed"]
        assert "no CUDA-capable device is detected" in scheduler.view().jobs[job].why


def test_slices_are_refused_where_they_cannot_be_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, control_program: ControlProgram
) -> None:
    with pytest.raises(RefusedError, match="declared whole and in slices"):
        LocalRunner(tmp_path, "h200:1,h200/8")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RefusedError, match="is not on the path"):
        LocalRunner(tmp_path, "h200/8")
    assert LocalRunner(tmp_path, "cpu:1/8").cluster.gpus == 8, "slices of CPU slots need no such service"
    old = [FoundGpu("p100", "GPU-1", 0, 16.0, 6.0)]
    monkeypatch.setattr(slices, "gpus_found", lambda: old)
    monkeypatch.setattr("gantline.live.runners.local.devices.gpus_found", lambda: old)
    with pytest.raises(RefusedError, match="cannot be cut in slices"):
        LocalRunner(tmp_path, "p100/4")


def test_the_next_service_watches_the_daemon_that_it_finds_and_hears_old_news_of_nothing(
    tmp_path: Path, control_program: ControlProgram
) -> None:
    found = Mps(tmp_path).serve("0")
    Path(found["CUDA_MPS_PIPE_DIRECTORY"], "server.log").write_text("fatal exception, long ago\n")
    later = Mps(tmp_path)
    assert later.serve("0") == found
    assert later.crashes(["0"]) == {}
    os.kill(Daemon(tmp_path / "mps" / "0", "0").pid, signal.SIGKILL)
    until(lambda: not Daemon(tmp_path / "mps" / "0", "0").pid, "its end")
    assert later.crashes(["0"]) == {"0": "its control daemon has ended"}
    assert later.crashes(["0"]) == {}, "another has been started"


def test_a_path_that_is_too_long_for_sockets_is_said(tmp_path: Path, control_program: ControlProgram) -> None:
    with pytest.raises(RefusedError, match="too long for its sockets"):
        Mps(tmp_path / ("x" * 100)).serve("0")
