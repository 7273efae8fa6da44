"""Slices as devices: which nodes there are, what they have, and what the processes on them are told and held to."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.live.specs import running, submit, until_running

from gantline import simulate
from gantline.core.errors import RefusedError, UsageError
from gantline.live.profiling.trials import Place
from gantline.live.runners.local import devices as capacity
from gantline.live.runners.local.devices import FoundGpu, declared, divided, with_capacity
from gantline.live.runners.local.slices import Slice, by_rank, slice_at, unbounded
from gantline.live.scheduler.setup import Setup


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
