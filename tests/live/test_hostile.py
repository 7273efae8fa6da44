"""Jobs that misbehave, disks that are full, clocks that jump."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.live.specs import Spec, ended, must_succeed, running, shell, state, submit, until, until_running

from gantline.core.errors import RefusedError
from gantline.core.inputs import Action
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.files import read_json, write_json
from gantline.live.runners.local.incarnation import Incarnation
from gantline.live.scheduler.loop_thread import WallClock
from gantline.live.store.records import Entry, MemoryStore


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_a_command_that_is_not_there_fails_and_says_so(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        (job,) = scheduler.submit(Spec(Launch(("/no/such/program", "--help"))))
        assert ended(scheduler, job) == ["failed"]
        view = scheduler.view().jobs[job]
        assert view.exit_code == 127
        assert "/no/such/program" in view.lines[-1]


def test_a_flood_of_output_stays_within_its_bound_and_ends_well(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        job = submit(scheduler, "yes 0123456789 | head -c 3000000; echo the end", log_bytes=100_000)
        must_succeed(scheduler, job)
        folder = tmp_path / "jobs" / job / "1"
        assert sum(path.stat().st_size for path in folder.glob("log*")) <= 100_000 + 65536
        assert (folder / "log").read_text().endswith("the end\n")


def test_nobody_stays_behind_when_a_job_ends(tmp_path: Path) -> None:
    """Not even who has left the process group and the session."""
    with running(tmp_path) as scheduler:
        line = "cd $GANTLINE_CHECKPOINT; setsid sh -c 'echo $$ > pid; sleep 1000' & while [ ! -s pid ]; do sleep 0.02; done"
        job = submit(scheduler, line.replace("while", "cd $GANTLINE_CHECKPOINT; while"))
        must_succeed(scheduler, job)
        assert gone(int((tmp_path / "jobs" / job / "checkpoint" / "pid").read_text()))


def test_ranks_know_each_other_and_fail_together(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        line = "echo $RANK of $WORLD_SIZE at $MASTER_ADDR > $GANTLINE_CHECKPOINT/$LOCAL_RANK"
        good = submit(scheduler, line, gpus=2, processes=0)
        bad = submit(scheduler, "[ $RANK = 1 ] && exit 7; sleep 1000", processes=3)
        assert ended(scheduler, good, bad) == ["succeeded", "failed"]
        assert (tmp_path / "jobs" / good / "checkpoint" / "1").read_text() == "1 of 2 at 127.0.0.1\n"
        assert scheduler.view().jobs[bad].exit_code == 7


def test_a_trainer_that_is_killed_is_tried_again(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        job = submit(scheduler, "[ $RESTART_COUNT -gt 0 ] && exit 0; sleep 1000", retries=1, backoff=0.05)
        until_running(scheduler, job)
        os.kill(scheduler.runner.known[job].state["ranks"][0]["pid"], signal.SIGKILL)
        must_succeed(scheduler, job)


class FullDisk(MemoryStore):
    """A store that cannot be written for a while."""

    full = False

    def append(self, entries: Sequence[Entry]) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().append(entries)


def test_a_full_disk_refuses_what_is_new_and_forgets_nothing_that_happened(tmp_path: Path) -> None:
    store, go = FullDisk(), tmp_path / "go"
    with running(tmp_path, "cpu:1", store=store) as scheduler:
        job = submit(scheduler, f"while [ ! -e {go} ]; do sleep 0.02; done; exit 6")
        until_running(scheduler, job)
        store.full, scheduler.loop.retry = True, 0.05
        with pytest.raises(RefusedError, match="cannot be written"):
            scheduler.submit(shell("true"))
        with pytest.raises(RefusedError, match="cannot be written"):
            scheduler.request([job], Action.CANCEL)
        go.touch()
        until(lambda: scheduler.runner.known[job].over)
        assert until(lambda: scheduler.writer.failures >= 3)
        assert state(scheduler, job) == "running", "nothing is believed that is not written down"
        store.full = False
        assert ended(scheduler, job) == ["failed"]
        assert scheduler.view().jobs[job].exit_code == 6
        later = submit(scheduler, "true")
        must_succeed(scheduler, later)


def test_a_gang_that_cannot_be_told_of_a_loss_keeps_no_other_from_hearing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    full: set[str] = set()
    tried: list[str] = []

    def write(path: str, value: Any) -> None:
        job = Path(path).parent.parent.name
        if job in full:
            tried.append(job)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_json(path, value)

    monkeypatch.setattr("gantline.live.runners.local.incarnation.write_json", write)
    with running(tmp_path, "cpu:2") as scheduler:
        first, second = (submit(scheduler, "sleep 1000") for _ in range(2))
        until_running(scheduler, first, second)
        one, other = (scheduler.runner.known[job] for job in (first, second))
        full.add(first)
        scheduler.runner.fail(0, frozenset({0, 1}), 0.0)
        until(lambda: other.over and len(tried) >= 3, "the other is stopped, and it is tried again")
        assert not one.over
        full.clear()
        until(lambda: one.over, "it is stopped when there is room")
    assert sum("while carrying out Loss" in record.message for record in caplog.records) == 1


def test_an_order_to_stop_that_could_not_be_written_is_written_when_it_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Incarnation("7", 1, tmp_path)

    def full(path: str, value: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("gantline.live.runners.local.incarnation.write_json", full)
        with pytest.raises(OSError, match="No space"):
            one.write_order(want="stop")
    assert one.order.get("want") != "stop", "nobody has been told"
    one.write_order(want="stop")
    assert read_json(str(tmp_path / "order.json")) == one.order == {"want": "stop", "generation": ""}


def test_time_does_not_follow_the_wall_clock_and_never_goes_back() -> None:
    wall, shown = time.time(), [time.time()]
    clock = WallClock(wall - 100.0, wall=lambda: shown[0])
    for jump in (3600.0, -7200.0):
        shown[0] = wall + jump
        assert 100.0 <= clock.now() < 160.0
        assert clock.jump() == pytest.approx(jump, abs=60.0)
    later = WallClock(wall - 100.0, least=140.0, wall=lambda: shown[0])  # made when the wall clock shows two hours ago
    assert 140.0 <= later.now() < 200.0
    assert later.at(wall) <= later.now()


def test_a_wall_clock_that_is_set_while_jobs_run_changes_nothing_for_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A day forward, two days back: limits, leases, deadlines and times of jobs count seconds that passed, also over a restart."""
    real, store = time.time, MemoryStore()
    monkeypatch.setattr("tests.live.specs.end_all", lambda home: None)  # the first life ends, the jobs go on
    with running(tmp_path, "cpu:3", store=store) as scheduler:
        limited = submit(scheduler, "sleep 1000", time_limit=3000.0)
        gates = [tmp_path / f"gate{k}" for k in range(3)]
        waiting = [submit(scheduler, f"while [ ! -e {gate} ]; do sleep 0.02; done") for gate in gates[:2]]
        until_running(scheduler, limited, *waiting)
        for jump, job, gate in zip((86400.0, -172800.0), waiting, gates):
            monkeypatch.setattr(time, "time", lambda jump=jump: real() + jump)
            fresh = submit(scheduler, "true")
            gate.touch()
            must_succeed(scheduler, job, fresh)
            for view in (scheduler.view().jobs[name] for name in (job, fresh)):
                assert 0.0 <= view.submitted <= view.started <= view.finished <= scheduler.clock.now() < 600.0
                assert 0.0 <= view.service <= view.finished - view.started + 1e-6
            answer = scheduler.report(limited, {"epoch": 1, "done": 1, "total": 10})
            assert (state(scheduler, limited), answer["stop"]) == ("running", False)
            assert answer["lease"] > 0.0
        last = scheduler.clock.now()
    monkeypatch.undo()
    monkeypatch.setattr(time, "time", lambda: real() - 172800.0)  # still two days back when it comes again
    with running(tmp_path, "cpu:3", store=store) as scheduler:
        assert scheduler.clock.now() >= last - 60.0
        view = until(lambda: scheduler.view().jobs[limited])
        assert (view.state, view.restarts) == ("running", 0)
        assert 0.0 <= view.started <= scheduler.clock.now()
        late = submit(scheduler, "true")
        must_succeed(scheduler, late)


def test_a_job_hears_by_its_report_what_it_shall_do(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:2") as scheduler:
        job = submit(scheduler, "sleep 1000", changes=("save",), estimate=50.0)
        until_running(scheduler, job)
        answer = scheduler.report(job, {"epoch": 1, "done": 10, "total": 40, "saved": 5, "loss": 0.5, "throughput": 3.0})
        assert (answer["stop"], answer["save"], answer["gpus"], answer["epoch"]) == (False, False, 1, 1)
        assert until(lambda: scheduler.view().jobs[job].progress.get("loss")) == 0.5
        shown = until(lambda: scheduler.snapshot()["jobs"])[0]
        assert shown["metrics"]["throughput"] == 3.0
        scheduler.request([job], Action.SAVE)
        assert scheduler.report(job, {"epoch": 1, "done": 20, "total": 40})["save"]
        until(lambda: not scheduler.report(job, {"epoch": 1, "done": 20, "total": 40, "saved": 20})["save"])
        assert scheduler.report(job, {"epoch": 0})["stop"], "an older incarnation is told to stop"
        scheduler.report(job, {"epoch": 1, "request": {"gpus": 2, "min_gpus": 1, "max_gpus": 2}})
        assert until(lambda: scheduler.view().jobs[job].max_gpus == 2)
        scheduler.request([job], Action.CANCEL)
        assert until(lambda: scheduler.report(job, {"epoch": 1})["stop"])
