"""Futures on a GPU are those of the processor, job by job and to the last bit.

Needs a CUDA GPU and numba-cuda (extra ``gpu``); skipped elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.rollouts import instant

from gantline.core.inputs import Submit
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.drivers.futures.on_gpu import missing
from gantline.simulator.rollout import Futures, rollout

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


def check_equal(found: Futures, oracle: Futures) -> None:
    assert found.counted
    assert oracle.counted
    for name in ("start", "finish", "sums"):
        np.testing.assert_array_equal(getattr(found, name), getattr(oracle, name), err_msg=name)


@pytest.mark.parametrize("more", [{}, {"round": 60.0}, {"regime": "blox", "round": 300.0}], ids=["events", "rounds", "blox"])
@pytest.mark.parametrize("policy", ["fifo", "sjf", "srtf", "srsf", "smallest", "las"])
def test_draws_and_futures_are_equal_to_the_last_bit(policy: str, more: dict[str, Any]) -> None:
    snapshot = decode_snapshot({**encode_snapshot(instant(20, 60)), **more})
    found, oracle = (rollout(snapshot, policy, draws=300, seed=7, device=device)[0] for device in ("cuda", "cpu"))
    check_equal(found, oracle)


def test_work_may_be_given_and_others_may_come() -> None:
    snapshot = instant(20, 60)
    work = np.random.default_rng(1).uniform(50.0, 5000.0, (40, 80))
    check_equal(*(rollout(snapshot, "srtf", draws=work, device=device)[0] for device in ("cuda", "cpu")))

    def others(random: np.random.Generator) -> list[Submit]:
        work = random.integers(60, 600, 5).tolist()
        return [Submit(3600.0 + 100.0 * k, {"id": f"n{k}", "gpus": 2, "estimate": 300.0}, float(work[k])) for k in range(5)]

    check_equal(*(rollout(snapshot, "srtf", draws=40, newcomers=others, device=device)[0] for device in ("cuda", "cpu")))


def test_sums_alone_and_the_choice_of_a_device() -> None:
    snapshot = instant()
    kept = rollout(snapshot, "srtf", draws=12_000, device="auto")  # large: on the GPU
    sums = rollout(snapshot, "srtf", draws=12_000, keep_jobs=False, device="cpu")
    np.testing.assert_array_equal(kept[0].sums, sums[0].sums)
