"""Batches, rates and noise: the numbers of the goodput models, without their libraries."""

from __future__ import annotations

import importlib.util
import math
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gantline.models.goodput.batch import BatchLimits, gain, split_batch
from gantline.train import BatchPlan, NoiseMeter, NoiseScale, Order, Position, Sampler


@given(base=st.integers(1, 300), growth=st.integers(1, 20), local=st.integers(1, 300), world=st.integers(1, 16), share=st.floats(0, 1))
def test_a_batch_is_split_as_the_goodput_models_split_it(base: int, growth: int, local: int, world: int, share: float) -> None:
    most = base * growth
    total = round(base + share * (most - base))
    assert BatchPlan(base, most, local).split(total, world) == split_batch(total, world, BatchLimits(base, most, 1, local))


def test_the_total_follows_the_allocation_within_limits() -> None:
    fixed = BatchPlan(64)
    assert [fixed.total(world) for world in (1, 3, 8)] == [64, 64, 64]
    assert fixed.total(4, asked=512) == 64  # nobody said that it may grow
    assert BatchPlan(64, most=256).total(4, asked=512) == 256
    assert BatchPlan(64, most=256).total(4, asked=100) == 100
    assert BatchPlan(64, most=256).total(4, asked=10) == 64
    wide = BatchPlan(32, follow="replicas")
    assert [wide.total(world) for world in (1, 3)] == [32, 96]
    assert BatchPlan(32, most=64, follow="replicas").total(3) == 64


@pytest.mark.parametrize("wrong", [{"base": 0}, {"base": 8, "most": 4}, {"base": 8, "local_most": -1}, {"base": 8, "follow": "moon"}])
def test_impossible_batches_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        BatchPlan(**wrong)  # type: ignore[arg-type]


@given(square=st.floats(0, 10), variance=st.floats(0.001, 10), scale=st.floats(1, 100))
def test_gain_is_the_goodput_models_gain(square: float, variance: float, scale: float) -> None:
    meter = NoiseMeter(square, variance, 1.0, False)
    assert meter.gain(scale) == pytest.approx(gain(square, variance, scale), rel=1e-12)


def _vectors(rng: random.Random, truth: list[float], spread: float, count: int) -> list[list[float]]:
    return [[value + rng.gauss(0.0, spread) for value in truth] for _ in range(count)]


def _square(vector: list[float]) -> float:
    return math.fsum(value * value for value in vector)


def _mean(vectors: list[list[float]]) -> list[float]:
    return [math.fsum(column) / len(vectors) for column in zip(*vectors)]


def test_noise_between_parts_finds_gradient_and_variance() -> None:
    """Parts of a quarter of the base batch: a gradient at that size has four times the variance it has at the base batch."""
    rng, truth = random.Random(1), [0.5] * 40  # |g|^2 = 10
    meter = NoiseMeter()
    for _ in range(500):
        parts = _vectors(rng, truth, 1.0, 4)  # trace of covariance of a part: 40; of the mean of four, at the base batch: 10
        meter.add(math.fsum(map(_square, parts)) / 4, _square(_mean(parts)), 4, scale=1.0)
    assert meter.square == pytest.approx(10.0, rel=0.1)
    assert meter.variance == pytest.approx(10.0, rel=0.1)
    assert meter.noise_scale(128) == pytest.approx(128, rel=0.2)
    again = NoiseMeter.of(meter.state())
    assert (again.square, again.variance, again.biased) == (meter.square, meter.variance, False)


def test_noise_between_steps_counts_until_parts_are_seen() -> None:
    rng, truth = random.Random(2), [0.5] * 40
    meter, before = NoiseMeter(), None
    for _ in range(500):
        (now,) = _vectors(rng, truth, 0.5, 1)  # at the base batch: trace 10
        if before is not None:
            meter.add_pair(_square(before), _square(now), _square(_mean([before, now])), scale=1.0)
        before = now
    assert meter.biased
    assert meter.square == pytest.approx(10.0, rel=0.1)
    assert meter.variance == pytest.approx(10.0, rel=0.1)
    meter.add(5.0, 4.0, 2, 1.0)
    assert not meter.biased
    assert meter.square == pytest.approx(3.0)  # what the pairs told is forgotten
    meter.add_pair(100.0, 100.0, 0.0, 1.0)
    assert meter.square == pytest.approx(3.0)


def test_before_anything_is_measured_every_sample_counts_fully() -> None:
    meter = NoiseMeter()
    assert not meter.is_known
    assert meter.gain(8.0) == pytest.approx(8.0)
    with pytest.raises(ValueError, match="add_pair"):
        meter.add(1.0, 1.0, 1, 1.0)


def test_kungfus_noise_scale() -> None:
    """g_s = G + S/b and g_B = G + S/B give back G = 2 and S = 60."""
    scale = NoiseScale()
    assert math.isnan(scale.value)
    for _ in range(3):
        assert scale.add(16, 64, 2 + 60 / 16, 2 + 60 / 64) == pytest.approx(30.0)
    scale.add(16, 64, 2 + 600 / 16, 2 + 600 / 64)
    assert scale.value == pytest.approx((0.9 * 60 + 0.1 * 600) / 2)
    with pytest.raises(ValueError, match="part of the global"):
        scale.add(64, 64, 1.0, 1.0)


# Every sample once per epoch, whatever the number of replicas and however often it changes.


@settings(max_examples=settings().max_examples // 3)
@given(size=st.integers(1, 400), seed=st.integers(0, 5), epoch=st.integers(0, 5))
def test_an_order_is_a_permutation(size: int, seed: int, epoch: int) -> None:
    order = Order(size, seed, epoch)
    assert sorted(order[i] for i in range(size)) == list(range(size))


def test_orders_differ_by_seed_and_epoch_and_look_shuffled() -> None:
    def drawn(seed: int, epoch: int) -> list[int]:
        order = Order(1000, seed, epoch)
        return [order[i] for i in range(1000)]

    first = drawn(0, 0)
    assert first == drawn(0, 0)
    assert first != drawn(1, 0)
    assert first != drawn(0, 1)
    # neighbours stay neighbours about as often as in a fair shuffle: twice in a thousand
    assert sum(abs(a - b) == 1 for a, b in pairwise(first)) < 12
    assert sum(i == sample for i, sample in enumerate(first)) < 8
    assert 200 < sum(sample < 500 for sample in first[:500]) < 300


def test_a_place_in_a_billion_samples_costs_no_memory() -> None:
    order = Order(10**9, 0, 0)
    assert len({order[place] for place in range(0, 10**9, 10**7)}) == 100


@given(
    size=st.integers(1, 200),
    shuffle=st.booleans(),
    legs=st.lists(st.tuples(st.integers(1, 7), st.integers(1, 40), st.integers(1, 6)), min_size=1, max_size=8),
)
def test_resizing_covers_every_sample_once_per_epoch(size: int, shuffle: bool, legs: list[tuple[int, int, int]]) -> None:
    """Legs of (replicas, total batch, steps), over and over, for two epochs."""
    seen: dict[int, Counter[int]] = {0: Counter(), 1: Counter()}
    at, leg = Position(), 0
    while at.epoch < 2:
        world, batch, steps = legs[leg % len(legs)]
        leg += 1
        ranks = [Sampler(size, 7, shuffle, rank, world) for rank in range(world)]
        for _ in range(steps):
            if at.epoch >= 2:
                break
            shares = [rank.step(at, batch) for rank in ranks]
            assert len({taken for _, taken in shares}) == 1
            assert max(len(own) for own, _ in shares) - min(len(own) for own, _ in shares) <= 1
            for own, _ in shares:
                seen[at.epoch].update(own)
            at = ranks[0].after(at, shares[0][1])
    for counts in seen.values():
        assert counts == Counter(range(size))


def test_the_samples_of_a_step_do_not_depend_on_the_number_of_replicas() -> None:
    def step(world: int) -> set[int]:
        return {i for rank in range(world) for i in Sampler(50, 3, True, rank, world).step(Position(2, 17), 12)[0]}

    assert step(1) == step(2) == step(5)
    assert len(step(1)) == 12


def test_an_epoch_ends_with_a_short_step() -> None:
    assert [len(own) for own in Sampler(10, shuffle=False).epoch(Position(), 4)] == [4, 4, 2]
    assert [len(own) for own in Sampler(9, rank=1, world=2).epoch(Position(0, 8), 4)] == [0]


@pytest.mark.parametrize(("size", "rank", "world"), [(0, 0, 1), (5, 1, 1), (5, -1, 2), (5, 0, 0)])
def test_impossible_samplers_are_refused(size: int, rank: int, world: int) -> None:
    with pytest.raises(ValueError, match="not possible"):
        Sampler(size, rank=rank, world=world)


# The examples run: by themselves, stopped and resumed, and as gangs that are resized.

ROOT = Path(__file__).parents[2]
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed; it is an extra")


def _start(example: str, *words: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GANTLINE")}
    clean |= {"PYTHONPATH": str(ROOT / "src"), "GANTLINE_CHECKPOINT": str(folder / "checkpoint"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "examples" / example), *words]
    return subprocess.Popen(command, env=clean | environment, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _run(example: str, *words: str, folder: Path, code: int = 0, **environment: str) -> str:
    folder.mkdir(exist_ok=True)
    process = _start(example, *words, folder=folder, **environment)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, err
    return out


def test_the_plain_example_ends_at_the_same_weights_after_a_stop(tmp_path: Path) -> None:
    whole = _run("train_plain.py", folder=tmp_path / "whole")
    assert "after 64 steps" in whole
    (tmp_path / "parts").mkdir()
    process = _start("train_plain.py", "--pause", "0.3", folder=tmp_path / "parts")  # twenty seconds, if nobody stops it
    checkpoints = tmp_path / "parts" / "checkpoint"
    while process.poll() is None and not any(checkpoints.glob("0*")):
        if _listens(process.pid):
            process.send_signal(signal.SIGUSR1)
        time.sleep(0.02)
    process.terminate()
    process.communicate(timeout=300)
    assert process.returncode == 143
    steps = max(int(path.name.split(".")[0]) for path in checkpoints.iterdir())
    assert 0 < steps < 64
    assert _run("train_plain.py", folder=tmp_path / "parts") == whole


def test_the_library_imports_nothing_but_the_standard_library() -> None:
    code = "import sys, gantline.train; print(sorted({'torch','numpy','numba','httpx','pydantic'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, text=True, capture_output=True, check=True
    )
    assert done.stdout.strip() == "[]"


@needs_torch
def test_the_gpu_example_runs_on_what_there_is(tmp_path: Path) -> None:
    assert "after 12 steps" in _run("train_gpu.py", "--steps", "12", "--batch", "16", folder=tmp_path)


def _gang(world: int, epoch: int, folder: Path, leave_after: int) -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GANTLINE_EPOCH": str(epoch)}
    words = ("--samples", "100", "--epochs", "3", "--leave-after", str(leave_after))
    ranks = [_start("train_ddp.py", *words, folder=folder, RANK=str(rank), **common) for rank in range(world)]
    told = [rank.communicate(timeout=300) for rank in ranks]
    for rank, (_, err) in zip(ranks, told):
        assert rank.returncode == (143 if leave_after else 0), err
    return told[0][0]


@needs_torch
def test_a_gang_is_resized_from_two_to_four_to_one_to_three(tmp_path: Path) -> None:
    """As often as it is resized, it ends where a gang that was left alone ends: 15 steps of the same samples."""
    for name in ("alone", "resized"):
        (tmp_path / name).mkdir()
    alone = _gang(2, 1, tmp_path / "alone", 0)
    assert "after 15 steps" in alone
    for epoch, world in enumerate((2, 4, 1), start=1):
        _gang(world, epoch, tmp_path / "resized", 4)
    resized = _gang(3, 4, tmp_path / "resized", 0)
    for one, other in zip(_numbers(alone), _numbers(resized), strict=True):
        assert one == pytest.approx(other, rel=1e-4)


def _numbers(line: str) -> list[float]:
    words = line.split()
    return [float(words[1]), float(words[3])]


def _listens(pid: int) -> bool:
    """Whether the process catches SIGUSR1 already: it would end a process that does not."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGUSR1 - 1) & 1)
