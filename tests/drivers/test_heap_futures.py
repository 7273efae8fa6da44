"""The loop over a heap gives what the general loop over futures gives, to the last bit; work is drawn alike wherever it is drawn."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.errors import RefusedError, UsageError
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot
from gantline.drivers.futures import batch, on_gpu
from gantline.simulator.rollout import Futures, rollout
from gantline.simulator.uncertainty import Uncertainty


def instant(seed: int, running: int, waiting: int, **more: Any) -> Snapshot:
    """Gangs of 1 to 8 devices on nodes of eight; those that run have done part of their work."""
    random = np.random.default_rng(seed)
    jobs: list[dict[str, Any]] = []
    free = 0
    for k in range(running + waiting):
        gpus, estimate = int(random.choice([1, 1, 2, 4, 8])), float(random.integers(10, 400))
        job = {"id": f"j{k}", "arrival": float(k // 3), "gpus": gpus, "estimate": estimate, "priority": int(random.integers(0, 3))}
        if k < running:
            job |= {"devices": list(range(free, free + gpus)), "since": 50.0, "done": float(random.integers(0, 40))}
            free += gpus
        jobs.append(job)
    nodes = -(-free // 8) or 1
    return decode_snapshot({"now": 100.0, "cluster": f"{nodes}x8", "jobs": jobs, **more})


def by_general_loop(snapshot: Snapshot, policy: str, monkeypatch: pytest.MonkeyPatch, **how: Any) -> Futures:
    with monkeypatch.context() as patched:
        patched.setattr(batch, "takes_heap", lambda case, newcomers: False)
        return rollout(snapshot, policy, **how)[0]


@given(
    seed=st.integers(0, 10**6),
    running=st.integers(0, 8),
    waiting=st.integers(1, 25),
    policy=st.sampled_from(["fifo", "sjf", "srtf", "srsf", "smallest"]),
    until=st.sampled_from([np.inf, 400.0]),
    more=st.sampled_from([{}, {"round": 60.0}, {"regime": "blox", "round": 300.0}]),
)
def test_both_loops_agree_to_the_last_bit(seed: int, running: int, waiting: int, policy: str, until: float, more: dict[str, Any]) -> None:
    snapshot = instant(seed, running, waiting, **more)
    how = {"draws": 6, "seed": seed, "until": until, "uncertainty": Uncertainty(sigma=1.0)}
    with pytest.MonkeyPatch.context() as patch:
        oracle = by_general_loop(snapshot, policy, patch, **how)
    found = rollout(snapshot, policy, **how)[0]
    assert found.counted
    assert oracle.counted
    for name in ("start", "finish", "sums"):
        np.testing.assert_array_equal(getattr(found, name), getattr(oracle, name), err_msg=name)


def test_gangs_stop_and_come_back_in_such_futures(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the agreement above rests on happens: estimates prove too low, and gangs stop for others more than once."""
    found = rollout(instant(5, 8, 200), "srtf", draws=40, uncertainty=Uncertainty(sigma=1.0))[0]
    oracle = by_general_loop(instant(5, 8, 200), "srtf", monkeypatch, draws=40, uncertainty=Uncertainty(sigma=1.0))
    np.testing.assert_array_equal(found.finish, oracle.finish)
    assert found.sums is not None
    stopped = found.sums[:, batch.p.SUM_STOPPED]
    assert stopped.min() >= 1
    assert stopped.max() > 20


def test_sums_alone_are_those_of_the_jobs() -> None:
    snapshot = instant(1, 4, 30)
    kept, sums = (rollout(snapshot, "srtf", draws=3000, keep_jobs=keep) for keep in (True, False))
    np.testing.assert_array_equal(kept[0].sums, sums[0].sums)
    np.testing.assert_allclose(kept.jct(), sums.jct())
    assert len(sums[0]) == 3000
    assert not len(sums[0].finish)
    with pytest.raises(RefusedError, match="keep_jobs"):
        list(sums[0])


def test_draws_are_the_same_in_parts_as_at_once() -> None:
    draws = Uncertainty().draws(instant(2, 3, 9), seed=4, first=0, count=50)
    np.testing.assert_array_equal(np.concatenate([draws[:17].lines(), draws[17:].lines()]), draws.lines())
    assert asdict(draws[17:])["first"] == 17
    assert draws.shape == (50, 12)


def test_a_device_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for policies in ("srtf", ["srtf", "afs"]):
        with pytest.raises(UsageError, match="auto, cpu, cuda"):
            rollout(instant(2, 3, 9), policies, draws=2, device="tpu")  # type: ignore[arg-type]
    monkeypatch.setattr(on_gpu, "missing", lambda: "no CUDA device is visible")
    with pytest.raises(RefusedError, match="no CUDA device is visible"):
        rollout(instant(2, 3, 9), "srtf", draws=2, device="cuda")
    monkeypatch.setattr(batch, "_HUGE", 1)
    assert len(rollout(instant(2, 3, 9), "srtf", draws=2, device="auto")[0]) == 2  # the processor does it


def test_a_gpu_is_not_accepted_for_futures_that_only_the_engine_can_roll_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_gpu, "missing", lambda: "")
    with pytest.raises(RefusedError, match="'afs' are rolled forward by the engine"):
        rollout(instant(2, 3, 9), "afs", draws=2, device="cuda")
