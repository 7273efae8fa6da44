"""One machine with a GPU: what is found, what jobs see of it, how they share it, how a gang changes while it trains.

What is needed: a CUDA GPU with its driver and a PyTorch that sees it (``torch.cuda.is_available()``); numpy and PyYAML; ``nvidia-ml-py``
for what NVML finds; ``nvidia-cuda-mps-control`` on the path for the test of shares. Nothing is fetched and no other part of Gantline's
dependencies is used. Run them with ``python -m pytest tests/gpu -q``; a minute is enough. Where something is missing the tests that need
it are skipped and say so; the change of ranks runs on CPUs wherever there is torch.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.gpu.bench import ROOT, bench, has_gpu, needs_gpu, needs_torch, python

from gantline.core.grant import Grant
from gantline.core.plan import Assignment, Mode
from gantline.engine.executor import News, Verb
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.devices import discovered, short_name, with_capacity
from gantline.live.runners.local.slices import Mps

SEES = "import torch; print('sees', torch.cuda.device_count(), torch.cuda.is_available())"
MULTIPLIES = """
import os, time, torch
print('share', os.environ.get('CUDA_MPS_ACTIVE_THREAD_PERCENTAGE'), 'processors', torch.cuda.get_device_properties(0).multi_processor_count)
a = torch.eye(512, device='cuda') * 2
print('trace', float((a @ a).trace()), flush=True)
time.sleep(1000)
"""


@needs_gpu
def test_nvml_finds_the_gpus_that_torch_sees() -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    import torch

    machine = discovered()
    names = [short_name(torch.cuda.get_device_name(k)) for k in range(torch.cuda.device_count())]
    found = [node.type for node in machine.cluster.nodes for _ in range(node.gpus) if node.type != "cpu"]
    assert sorted(found) == sorted(names)
    whole = {node.type: node.device_memory for node in with_capacity(machine).cluster.nodes}
    assert all(abs(whole[name] - torch.cuda.get_device_properties(k).total_memory / 2**30) < 2.0 for k, name in enumerate(names))
    for node in machine.cluster.nodes:
        for place in range(node.gpus):
            called = machine.cuda_of(node.name, place)
            assert called is None if node.type == "cpu" else str(called).startswith("GPU-")


@needs_gpu
@pytest.mark.parametrize("devices", ["gpu:1,cpu:1", None], ids=["declared", "found"])
def test_only_its_devices_are_visible_to_a_job(tmp_path: Path, devices: str | None) -> None:
    if devices is None:
        pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    sees = python("-c", SEES)
    with bench(tmp_path, devices or "", sees, sees) as one:
        cpu = next(k for k, node in enumerate(one.runner.cluster.nodes) if node.type == "cpu")
        one.start(0, 1, (0,))
        one.start(1, 1, (int(one.runner.cluster.first_device[cpu]),))
        for row in (0, 1):
            one.news(News.FINISHED, row, 1)
        assert "sees 1 True" in one.output(0)
        assert "sees 0 False" in one.output(1)


@needs_gpu
def test_two_jobs_share_a_gpu_by_its_multi_process_service(tmp_path: Path) -> None:
    if shutil.which("nvidia-cuda-mps-control") is None:
        pytest.skip("nvidia-cuda-mps-control is not installed")
    if not Mps(tmp_path).share(0.5):
        pytest.skip("the multi-process service cannot be started here")
    try:
        with bench(tmp_path, "gpu:1", *(python("-c", MULTIPLIES) for _ in range(2))) as one:
            for row in (0, 1):
                grant = Grant((Assignment(row, group=0, mode=Mode.SPACE, fraction=0.5),), shared=True)
                one.start(row, 1, (0,), mates=frozenset({1 - row}), grant=grant)
            for row in (0, 1):
                one.until(lambda row=row: "trace 2048.0" in one.output(row), f"row {row} computes")
                assert "share 50" in one.output(row)
                one.order(Verb.STOP, row, 1)
                one.news(News.STOPPED, row, 1)
    finally:
        Mps(tmp_path).quit()


def ddp(*words: str, **more: object) -> Launch:
    sizes = ("--samples", "100", "--batch", "20", "--epochs", "40")
    return python(str(ROOT / "examples" / "train_ddp.py"), *sizes, *words, **more)


def numbers(text: str) -> list[float]:
    told = re.search(r"loss (\S+) weights (\S+) after (\d+) steps", text)
    assert told is not None, text
    return [float(one) for one in told.groups()]


@needs_torch
@pytest.mark.parametrize("where", ["cpu", "gpu"])
def test_a_gang_changes_while_it_trains(tmp_path: Path, where: str) -> None:
    """One rank, two, one: the first process stays, and the weights are those of a gang that was left alone.

    Two ranks share the GPU where there is only one: a device that CUDA does not have is not visible, and ranks take what is.
    """
    if where == "gpu" and not has_gpu():
        pytest.skip("no CUDA device, or no torch that sees it")
    cuda = ("--cuda",) if where == "gpu" else ()
    alone = ddp(*cuda)
    changing = ddp(*cuda, "--pause", "0.1", processes=0, changes=("devices",), resumes=True)
    with bench(tmp_path, f"{where}:2", changing, alone) as one:
        one.start(0, 1, (0,))
        one.news(News.STARTED, 0, 1)
        (first,) = one.processes(0)
        one.start(0, 2, (0, 1), onto=1)
        one.news(News.STARTED, 0, 2)
        assert len(one.processes(0)) == 2
        one.start(0, 3, (0,), onto=2)
        one.news(News.STARTED, 0, 3)
        assert one.processes(0) == [first]
        one.news(News.FINISHED, 0, 3)
        one.start(1, 1, (0,))
        one.news(News.FINISHED, 1, 1)
        changed, whole = numbers(one.output(0)), numbers(one.output(1))
        assert changed[2] == whole[2] == 200
        assert changed[:2] == pytest.approx(whole[:2], rel=1e-3)


@needs_gpu
def test_a_rank_on_a_gpu_of_its_own_trains_by_nccl_as_by_gloo(tmp_path: Path) -> None:
    """NCCL wants a GPU for each rank, so that one GPU is a gang of one: formed, summed over and closed all the same."""
    with bench(tmp_path, "gpu:1", ddp("--cuda", "--backend", "nccl"), ddp("--cuda")) as one:
        for row in (0, 1):
            one.start(row, 1, (0,))
            one.news(News.FINISHED, row, 1)
        assert numbers(one.output(0)) == pytest.approx(numbers(one.output(1)), rel=1e-6)
