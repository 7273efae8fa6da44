"""FfDL with the batch knob: against brute force over batches and GPUs, and in runs."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jobs import job_row

from gantline import simulate
from gantline.core.errors import GantlineError
from gantline.core.snapshot_json import decode_snapshot
from gantline.models.links.slowest_link_scaling import Scaling, ScalingModel
from gantline.policies.registry import make_policy

a_curve = st.builds(
    lambda fixed, sample, within, low, more, local: Scaling(fixed, sample, within, 4 * within, low, low, low + more, max(local, low)),
    st.floats(0.01, 1.0),
    st.floats(0.001, 0.1),
    st.floats(0.0, 1.0),
    st.integers(1, 4),
    st.integers(1, 8),
    st.integers(1, 6),
)


@given(st.lists(a_curve, min_size=1, max_size=3), st.integers(1, 6))
def test_no_batches_and_sizes_have_a_greater_sum_of_speedups(curves: list[Scaling], capacity: int) -> None:
    ids = [f"j{k}" for k in range(len(curves))]
    model = ScalingModel.of(ids, curves, [1] * len(ids), [4])
    jobs = [{"id": name, "arrival": float(k), "gpus": 1, "min_gpus": 1, "max_gpus": 4, "estimate": 100.0} for k, name in enumerate(ids)]
    snapshot = decode_snapshot({"cluster": f"gpu:{-(-capacity // 4)}x4", "now": 10.0, "jobs": jobs}, model)
    gpus = snapshot.cluster.gpus
    plan = make_policy("ffdl").decide(snapshot)
    found = {item.job: (item.gpus, item.batch) for item in plan.assignments or ()}

    def worth(curve: Scaling, size: int, batch: int) -> float:
        one = max(curve.speed(1, 1, b) for b in range(curve.least_batch, curve.most_batch + 1))
        return curve.speed(size, -(-size // 4), batch) / one

    kept = curves[:gpus]  # first come, first served: everybody needs one GPU
    ways = [[(size, worth(c, size, b)) for size in range(1, 5) for b in range(c.least_batch, c.most_batch + 1)] for c in kept]
    ways = [[way for way in each if way[1] > 0.0] for each in ways]
    best = max(sum(v for _, v in pick) for pick in itertools.product(*ways) if sum(s for s, _ in pick) <= gpus)
    assert sorted(found) == list(range(len(kept)))
    assert sum(size for size, _ in found.values()) <= gpus
    assert sum(worth(curves[k], *found[k]) for k in found) == pytest.approx(best)


def run(batch: str) -> float:
    job = job_row("a", 1, 360, min_gpus=1, max_gpus=4, batch_size=4)
    job["scaling"] = "fixed=1;sample=0.1;within=0.5;batch=4-64;local=8"
    return float(simulate([job], "gpu:1x4", "ffdl", settings={"batch": batch}).summary["average_jct"])


def test_a_job_runs_at_the_speed_of_its_batch() -> None:
    alone = 4 / 1.4  # samples per second as asked for
    assert run("fixed") == pytest.approx(360.0)  # four GPUs for four samples gain nothing on one: 4 / 1.85
    assert run("adaptive") == pytest.approx(360.0 * alone / (32 / (1 + 0.8 + 2 * 3 / 4 * 0.5)))


def test_sizes_that_the_own_batch_cannot_fill_are_open_to_an_adaptive_one() -> None:
    job = job_row("a", max_gpus=4, batch_size=2, scaling="sample=0.1;batch=2-8")
    sizes = {b: simulate([job], "gpu:1x4", "ffdl", settings={"batch": b}).allocations["gpus"].max() for b in ("fixed", "adaptive")}
    assert sizes == {"fixed": 2, "adaptive": 4}


def test_without_curves_of_batches_it_is_the_dynamic_program_alone() -> None:
    listed = [{"gpus": 1, "rate": 1.0}, {"gpus": 2, "rate": 1.8}, {"gpus": 4, "rate": 2.0}]
    jobs = [{"id": name, "gpus": 1, "max_gpus": 4, "estimate": 100.0, "options": listed} for name in "ab"]
    snapshot = decode_snapshot({"cluster": "gpu:1x4", "jobs": jobs})
    for name in ("ffdl", "voda.ffdl"):
        plan = make_policy(name).decide(snapshot)
        assert [(item.job, item.gpus, item.batch) for item in plan.assignments or ()] == [(0, 2, 0), (1, 2, 0)]


def test_a_wrong_setting_is_refused() -> None:
    with pytest.raises(GantlineError, match="resize_cost"):
        make_policy("ffdl", {"resize_cost": -1.0})
