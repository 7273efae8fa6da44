"""Slices of one GPU: what each has of it, what it may allocate, gangs over several, crashes, and ranks that are forked from a template.

What is needed: a GPU since Volta, a PyTorch that sees it and ``nvidia-cuda-mps-control``. Run them with
``python -m pytest tests/gpu -k slices -q -s``; two minutes are enough. Measured times are printed.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gpu.bench import Bench, bench, has_gpu, python
from tests.gpu.test_one_gpu import ddp, numbers

from gantline.engine.executor import News, Verb
from gantline.live.runners.local.slices import CONTROL, Mps

pytestmark = [
    pytest.mark.skipif(shutil.which(CONTROL) is None, reason=f"{CONTROL} is not installed"),
    pytest.mark.skipif(not has_gpu(), reason="no CUDA device, or no torch that sees it"),
]

TELLS = """
import os, sys
print('warm' if 'torch' in sys.modules else 'cold')
import time, torch
print('part', os.environ['CUDA_MPS_ACTIVE_THREAD_PERCENTAGE'], 'limit', os.environ.get('CUDA_MPS_PINNED_DEVICE_MEM_LIMIT'))
print('processors', torch.cuda.get_device_properties(0).multi_processor_count, 'of', torch.cuda.device_count(), 'GPU')
a = torch.eye(512, device='cuda') * 2
print('trace', float((a @ a).trace()), flush=True)
time.sleep(float(sys.argv[1]))
"""
EATS = """
import os, torch
limit = int(os.environ['CUDA_MPS_PINNED_DEVICE_MEM_LIMIT'].split('=')[1].rstrip('M'))
torch.empty((limit // 2) << 20, dtype=torch.uint8, device='cuda')
print('half', flush=True)
torch.empty((limit + 512) << 20, dtype=torch.uint8, device='cuda')
"""
CRASHES = "import torch; x = torch.zeros(4, device='cuda'); x[torch.tensor([10**6], device='cuda')] += 1; torch.cuda.synchronize()"
GOES_ON = """
import torch
a = torch.eye(512, device='cuda')
print('begun', flush=True)
while True:
    a = a @ a
    torch.cuda.synchronize()
"""


@pytest.fixture(autouse=True)
def ended(tmp_path: Path) -> Iterator[None]:
    """No daemon outlives its test."""
    yield
    Mps(tmp_path).quit()


def begun(one: Bench, *rows: int, word: str = "begun") -> None:
    for row in rows:
        one.until(lambda row=row: word in one.output(row), f"row {row} says '{word}'")


def test_eight_jobs_on_slices_have_their_part_of_the_gpu_side_by_side(tmp_path: Path) -> None:
    with bench(tmp_path, "gpu/8", *(python("-c", TELLS, "1000") for _ in range(8))) as one:
        for row in range(8):
            one.start(row, 1, (row,))
        begun(one, *range(8), word="trace 2048.0")
        print(one.output(0))
        assert all("part 12" in one.output(row) and "of 1 GPU" in one.output(row) for row in range(8))
        for row in range(8):
            one.order(Verb.STOP, row, 1)
            one.news(News.STOPPED, row, 1)


def test_slices_of_two_sizes_have_different_parts(tmp_path: Path) -> None:
    with bench(tmp_path, "gpu/8%x4+16%x4", *(python("-c", TELLS, "0") for _ in range(2))) as one:
        for row, device in ((0, 0), (1, 4)):
            one.start(row, 1, (device,))
            one.news(News.FINISHED, row, 1)
        print(one.output(0), one.output(1))
        assert "part 8 " in one.output(0)
        assert "part 16 " in one.output(1)


def test_a_job_that_wants_more_memory_than_its_slices_fails_alone(tmp_path: Path) -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed, so that the memory of slices is not known")
    import torch

    from gantline.live.runners.local.devices import short_name

    kind = short_name(torch.cuda.get_device_name(0))
    with bench(tmp_path, f"{kind}/8", python("-c", EATS), python("-c", GOES_ON)) as one:
        one.start(1, 1, (1,))
        begun(one, 1)
        one.start(0, 1, (0,))
        one.news(News.FAILED, 0, 1)
        assert "half" in one.output(0)
        assert "out of memory" in one.output(0)
        assert not one.runner.known["job1"].over
        one.order(Verb.STOP, 1, 1)
        one.news(News.STOPPED, 1, 1)


def test_a_gang_over_two_slices_trains_by_gloo(tmp_path: Path) -> None:
    with bench(tmp_path, "gpu/8", ddp("--cuda", processes=0), ddp("--cuda")) as one:
        one.start(0, 1, (0, 1))
        one.start(1, 1, (2,))
        for row in (0, 1):
            one.news(News.FINISHED, row, 1)
        assert numbers(one.output(0).replace("[0] ", "")) == pytest.approx(numbers(one.output(1)), rel=1e-3)


def test_a_job_beside_one_that_crashes_on_slices_goes_on_or_is_lost_through_no_fault_of_its_own(tmp_path: Path) -> None:
    with bench(tmp_path, "gpu/8", python("-c", CRASHES), python("-c", GOES_ON), python("-c", TELLS, "0")) as one:
        one.start(1, 1, (1,))
        begun(one, 1)
        one.start(0, 1, (0,))
        one.news(News.FAILED, 0, 1)
        time.sleep(5.0)  # for the others to notice
        beside = one.runner.known["job1"].state
        print("beside it:", {key: beside.get(key) for key in ("phase", "cause", "exit", "why")})
        assert beside.get("exit") is None
        one.start(2, 1, (2,))
        one.news(News.FINISHED, 2, 1)
        assert "trace 2048.0" in one.output(2), "the service is there again"


def test_a_rank_on_slices_that_is_forked_from_a_template_uses_its_gpu(tmp_path: Path) -> None:
    seconds = {}
    for preload in ((), ("torch",)):
        home = tmp_path / (preload[0] if preload else "cold")
        launches = [python("-c", TELLS, "0") for _ in range(2)]
        for launch in launches:
            launch.env.pop("PYTHONPATH")  # type: ignore[attr-defined]  # what a template has of its service
        with bench(home, "gpu/8", *launches, preload=preload) as one:
            for row in (0, 1):
                now = time.monotonic()
                one.start(row, 1, (row,))
                one.news(News.FINISHED, row, 1)
                seconds[preload] = time.monotonic() - now
                assert "trace 2048.0" in one.output(row)
                assert ("warm" if preload else "cold") in one.output(row)
            if preload:
                assert not one.runner.template.failure
        Mps(home).quit()
    print("seconds from start to end, cold and forked:", seconds)
