"""Limits of the system, and GPUs that are shared: what a job's processes are told and held to."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.live.mps_stand_in import ControlProgram, control_program
from tests.live.specs import ended, must_succeed, running, submit, until, until_running

from gantline.live.runners.local.devices import FoundGpu, declared, short_name, too_many
from gantline.live.runners.local.isolation import Groups, find_groups
from gantline.live.runners.local.slices import Daemon, Mps

__all__ = ["control_program"]


@pytest.mark.parametrize(("there", "told"), [(0, "this machine has 0 GPUs"), (1, "this machine has 1 GPU:"), (2, "")])
def test_more_gpus_than_there_are_is_told(there: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gantline.live.runners.local.devices.gpus_found", lambda: [FoundGpu("h200", f"GPU-{k}", k) for k in range(there)])
    found = too_many(declared("h200:2,cpu:4"))
    assert told in found
    assert bool(found) == (there < 2)
    assert too_many(declared("cpu:4")) == ""


def test_a_tree_for_all_controllers(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu pids memory")
    (tmp_path / "cgroup.subtree_control").write_text("pids memory")
    groups = find_groups(tmp_path, "0::/\n")
    assert groups.of("7.1", 10, 1024) == [(str(tmp_path / "gantline-7.1"), {"pids.max": "10", "memory.max": "1024"})]
    assert groups.of("7.1", 0, 0) == []


def test_a_tree_for_each_controller(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    groups = find_groups(tmp_path, "8:pids:/\n4:memory:/\n")
    assert groups.of("7.1", 10, 1024) == [(str(tmp_path / "pids" / "gantline-7.1"), {"pids.max": "10"})]
    assert find_groups(tmp_path / "nothing", "") == Groups(1, {})


@pytest.fixture(params=["cgroup", "rlimit"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Control groups where they can be made, and what there is without them."""
    if request.param == "rlimit":
        monkeypatch.setattr("gantline.live.runners.local.runner.find_groups", Groups)
    elif not {"pids", "memory"} <= set(find_groups().parents):
        pytest.skip("control groups cannot be made here")
    return str(request.param)


FORKS = "i=0; while [ $i -lt 60 ]; do sleep 30 & i=$((i + 1)); done; wait"
EATS = "import time; x = b'x' * (300 << 20); time.sleep(30)"  # more than it may have, alone
EAT = """import os, sys, time
for _ in range(3):
    if os.fork() == 0:
        x = b'x' * (40 << 20); time.sleep(30); os._exit(0)
sys.exit(os.wait()[1] != 0)"""  # each of them no more than it may have


@pytest.mark.parametrize("job", [FORKS, EATS, EAT], ids=["forks", "eats", "eat together"])
def test_who_wants_more_than_it_may_have_is_contained(tmp_path: Path, way: str, job: str) -> None:
    line = job if job is FORKS else f'{sys.executable} -S -c "{job}"'
    with running(tmp_path) as scheduler:
        name = submit(scheduler, line, pids=12, memory=0.1)
        beside = submit(scheduler, "true", pids=12, memory=0.1)
        assert ended(scheduler, name, beside) == ["failed", "succeeded"]
        assert scheduler.runner.known[name].state["limits"] == way
        if way == "rlimit" and job is not EATS:
            assert "may" in scheduler.view().jobs[name].why


def test_the_end_of_a_job_leaves_the_job_of_another_service_alone_that_has_its_number(tmp_path: Path) -> None:
    """Each has a control group of its own, and what is left in a job's group is ended with the job."""
    with running(tmp_path / "one") as one, running(tmp_path / "two") as two:
        stays = submit(one, f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done", pids=20)
        until_running(one, stays)
        ends = submit(two, "true", pids=20)
        assert stays == ends, "the same number"
        must_succeed(two, ends)
        (tmp_path / "go").touch()
        must_succeed(one, stays)


def test_shares_of_a_gpu_are_told_to_the_service_for_them(tmp_path: Path, control_program: ControlProgram) -> None:
    mps = Mps(tmp_path / "home")
    told = {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path / "home" / "mps" / "shared"), "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"}
    assert mps.share(0.25) == mps.share(0.25) == told
    assert len((tmp_path / "home" / "mps" / "shared" / "control.log").read_text().splitlines()) == 1, "one daemon"
    daemon = Daemon(tmp_path / "home" / "mps" / "shared", "")
    assert daemon.pid
    mps.quit()
    until(lambda: not daemon.pid, "its end")
    control_program.cannot_start()
    assert mps.share(0.25) == {}, "they take turns"


def test_only_the_devices_of_a_job_are_visible_to_it(tmp_path: Path) -> None:
    machine = declared("h200:2,cpu:2")
    assert [machine.cuda_of("h200", k) for k in (0, 1)] == ["0", "1"]
    assert machine.cuda_of("cpu", 0) is None
    assert short_name("NVIDIA A100-SXM4-80GB") == "a100"
    with running(tmp_path, "h200:2,cpu:1") as scheduler:
        say = "echo $CUDA_VISIBLE_DEVICES $GANTLINE_DEVICES > $GANTLINE_CHECKPOINT/seen"
        ids = [submit(scheduler, say, options=[{"type": kind, "gpus": 1}]) for kind in ("h200", "cpu")]
        must_succeed(scheduler, *ids)
        assert [(tmp_path / "jobs" / name / "checkpoint" / "seen").read_text() for name in ids] == ["0 h200:0\n", "cpu:0\n"]
