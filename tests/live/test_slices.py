"""Slices as devices: which nodes there are, what they have, and what the processes on them are told and held to."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from tests.live.mps_stand_in import ControlProgram, control_program
from tests.live.specs import ended, must_succeed, running, shell, state, submit, until, until_running

from gantline import simulate
from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Device, Node
from gantline.core.errors import RefusedError, UsageError
from gantline.core.tables import Tables
from gantline.core.windows import AdvanceWindow
from gantline.live.profiling.trials import Place
from gantline.live.runners.local import devices as capacity
from gantline.live.runners.local import slices
from gantline.live.runners.local.devices import FoundGpu, declared, divided, short_name, too_many, with_capacity
from gantline.live.runners.local.files import children_of
from gantline.live.runners.local.isolation import Groups, find_groups
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.runners.local.slices import Daemon, Mps, Slice, by_rank, slice_at, unbounded
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.scheduler.setup import Setup
from gantline.live.scheduler.view import DeviceViews
from gantline.live.store.records import MemoryStore


def test_a_gpu_in_slices_is_a_node_and_every_slice_a_device() -> None:
    machine = declared("a100:2/4,cpu:3")
    assert [(node.name, node.type, node.gpus) for node in machine.cluster.nodes] == [
        ("a100.25pct-0", "a100.25pct", 4),
        ("a100.25pct-1", "a100.25pct", 4),
        ("cpu", "cpu", 3),
    ]
    assert [machine.cuda_of(name, 3) for name in ("a100.25pct-0", "a100.25pct-1", "cpu")] == ["0", "1", None]


def test_gpus_of_several_groups_are_numbered_one_after_the_other() -> None:
    machine = declared("h200:2,cpu:3,a100:1/4,l4:2")
    numbers = {node.name: [machine.cuda_of(node.name, k) for k in range(node.gpus)] for node in machine.cluster.nodes}
    assert numbers == {"h200": ["0", "1"], "cpu": [None] * 3, "a100.25pct-0": ["2"] * 4, "l4": ["3", "4"]}


def test_slices_of_two_sizes_are_two_nodes_on_one_gpu() -> None:
    machine = declared("H200/8%x4+16%x4")
    assert [(node.type, node.gpus) for node in machine.cluster.nodes] == [("h200.8pct", 4), ("h200.16pct", 4)]
    assert machine.gpus == ["0"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("h200", "not a group"),
        ("h200/8,h200/8", "twice"),
        ("h200.12pct:8", "type of a slice"),
        ("h200/49", "49 slices"),
        ("h200:0/8", "group"),
    ],
)
def test_a_group_that_cannot_be_is_refused(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        declared(text)


def test_slices_divide_the_memory_and_the_cores_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "gpus_found", lambda: [FoundGpu("h200", "GPU-1", 0, 140.0)])
    monkeypatch.setattr(capacity, "allowed_cores", lambda: tuple(range(16)))
    machine = with_capacity(declared("h200/8"))
    assert machine.cluster.nodes[0].device_memory == pytest.approx(140.0 * 0.12)
    assert machine.cores["h200.12pct-0"] == tuple((2 * k, 2 * k + 1) for k in range(8))
    assert slice_at(machine, "h200.12pct-0", 7) == Slice("GPU-1", 12, pytest.approx(16.8), (14, 15))
    assert slice_at(with_capacity(declared("h200:1")), "h200", 0) is None
    assert (unbounded(machine), unbounded(with_capacity(declared("cpu:1/2")))) == ("", "")
    assert "is not limited" in unbounded(declared("h200/8"))
    assert with_capacity(declared("big/2")).cluster.nodes[0].device_memory == pytest.approx(70.0), "however it is called"


def test_short_runs_on_whole_devices_refuse_slices() -> None:
    with pytest.raises(RefusedError, match="is a slice"):
        Place.on(declared("cpu:1/8"), "cpu.12pct", 1)


def test_fewer_cores_than_slices_are_shared_by_neighbours() -> None:
    assert divided((4, 5, 9), 2) == ((4,), (5, 9))
    assert divided((4, 9), 4) == ((4,), (4,), (9,), (9,))


def served(gpu: str) -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": gpu}


def test_a_rank_has_its_own_slice_and_one_process_the_sum() -> None:
    slices = [Slice("GPU-1", 12, 16.0, (0, 1)), Slice("GPU-1", 12, 16.0, (2, 3))]
    limit = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
    each = by_rank(slices, 2, served)
    assert [one["GANTLINE_CORES"] for one in each] == ["0,1", "2,3"]
    assert [(one["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], one[limit]) for one in each] == [("12", "0=16384M")] * 2
    (both,) = by_rank(slices, 1, served)
    assert (both["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], both[limit], both["GANTLINE_CORES"]) == ("24", "0=32768M", "0,1,2,3")
    assert both["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert by_rank(slices[:1], 2, served)[1]["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "6", "two processes divide their slice"
    assert by_rank(slices[:1], 1, served, 0.5)[0]["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "6", "a part of a slice"


def test_one_process_on_slices_of_two_gpus_is_refused() -> None:
    apart = [Slice("0", 25, 0.0, ()), Slice("1", 25, 0.0, ())]
    assert [one["CUDA_VISIBLE_DEVICES"] for one in by_rank(apart, 2, served)] == ["0", "1"]
    with pytest.raises(RefusedError, match="slices of one GPU only"):
        by_rank(apart, 1, served)


@pytest.mark.parametrize(
    ("placement", "where"), [("first-free", {"cpu.25pct-0", "cpu.25pct-1"}), ("consolidated:preferred", {"cpu.25pct-1"})]
)
def test_a_gang_prefers_slices_of_one_gpu_where_the_placement_does_live_and_simulated(
    tmp_path: Path, placement: str, where: set[str]
) -> None:
    waits, setup = "echo $GANTLINE_DEVICES; sleep 100", Setup(placement=placement)
    with running(tmp_path, "cpu:2/4", setup=setup) as scheduler:
        first, gang = (submit(scheduler, waits, gpus=gpus) for gpus in (3, 4))
        until_running(scheduler, first, gang)
        held = {device.name.rpartition(":")[0] for device in scheduler.view().devices if gang in device.jobs}
    assert held == where
    jobs = [{"job": f"j{gpus}", "arrival": 0.0, "gpus": gpus, "duration": 60.0} for gpus in (3, 4)]
    simulated = simulate(jobs, "cpu:1x2/4", "fifo", placement=placement).allocations
    assert len(simulated.filter(simulated["job"] == "j4")["nodes"][0]) == len(where)


# The multi-process service under slices: started with the first job, watched, restarted, ended; its crashes count against no job.

__all__ = ["control_program"]

AGAIN = "[ $RESTART_COUNT = 0 ] && sleep 100; true"  # it waits, and ends well when it is started again


def daemon_of(scheduler: Scheduler) -> Daemon:
    return Daemon(scheduler.runner.mps.home / "0", "0")


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


# Limits of the system, and GPUs that are shared: what a job's processes are told and held to.


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


# What a machine has for jobs to book: device memory is that of the smallest GPU of its type, where NVML finds any.


def test_gpus_have_the_memory_that_nvml_says_and_cpu_slots_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [FoundGpu("h200", "GPU-1", 0, 140.0), FoundGpu("h200", "GPU-2", 1, 139.5), FoundGpu("a100", "GPU-3", 2, 80.0)]
    monkeypatch.setattr(capacity, "gpus_found", lambda: found)

    nodes = with_capacity(declared("h200:2,a100:1,v100:1,cpu:4")).cluster.nodes

    assert {node.name: node.device_memory for node in nodes} == {"h200": 139.5, "a100": 80.0, "v100": 0.0, "cpu": 0.0}


# Devices that stay as they are stay the same values; those that change say what they are now.


def test_only_what_changes_is_made_anew() -> None:
    tables = Tables.empty(parse_cluster("2x2"))
    tables.ids = ["a", "b"]
    views = DeviceViews()
    first = views.look(tables, {})
    assert [(one.name, one.up, one.jobs) for one in first] == [(f"node{k // 2}:{k % 2}", True, ()) for k in range(4)]
    assert views.look(tables, {}) is first, "nothing has happened"
    busy = views.look(tables, {1: {0}, 2: {1, 0}})
    assert [one.jobs for one in busy] == [(), ("a",), ("a", "b"), ()]
    assert busy[0] is first[0]
    assert busy[3] is first[3]
    tables.NI[Node.UP, 1] = 0
    down = views.look(tables, {1: {0}, 2: {1, 0}})
    assert [one.up for one in down] == [True, True, False, False]
    assert down[1] is busy[1]
    tables.windows["night"] = AdvanceWindow(0.0, 9.0, "night", places=("node0:0",))
    kept = views.look(tables, {1: {0}, 2: {1, 0}})
    assert [one.windows for one in kept] == [("night",), (), (), ()]
    tables.D[Device.CLOSED, 0] = 1
    assert not views.look(tables, {})[0].up
    tables.kept_free.add(0)
    assert views.look(tables, {})[0].up, "cordoned for its window, and for nothing else"
