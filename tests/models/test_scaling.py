"""Scaling curves made of step times: formulas, batches against brute force, and runs on them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jobs import by_job, job_row

from gantline import simulate
from gantline.core.errors import UsageError
from gantline.models.links.slowest_link_scaling import Scaling, ScalingModel

STEP = Scaling(fixed=0.1, sample=0.01, within=0.2, across=0.6, batch=16, least_batch=8, most_batch=64, local=16)


def test_a_step_is_a_fixed_part_samples_and_the_exchange_of_gradients() -> None:
    assert STEP.step(1, 1, 16) == pytest.approx(0.1 + 0.16)
    assert STEP.step(4, 1, 16) == pytest.approx(0.1 + 0.04 + 2 * 3 / 4 * 0.2)
    assert STEP.step(4, 2, 16) == pytest.approx(0.1 + 0.04 + 2 * 3 / 4 * 0.6)
    assert STEP.step(3, 1, 16) == pytest.approx(0.1 + 0.06 + 2 * 2 / 3 * 0.2)  # six samples on the busiest GPU
    assert STEP.speed(1, 1) == pytest.approx(16 / 0.26)
    assert STEP.speed(1, 1, 17) == 0.0  # sixteen fit on a GPU
    assert STEP.speed(17, 3) == 0.0  # a GPU without a sample


def test_a_curve_is_written_and_read() -> None:
    assert Scaling.parse(str(STEP), 16) == STEP
    assert Scaling.parse("sample=0.5") == Scaling(sample=0.5)
    assert Scaling.parse("fixed=1;batch=32", None).batch == 32


@given(
    st.floats(0.001, 1.0),
    st.floats(0.0, 0.1),
    st.floats(0.0, 1.0),
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(0, 9),
    st.integers(1, 9),
)
def test_the_best_batch_is_the_best_of_all(fixed: float, sample: float, within: float, low: int, more: int, local: int, gpus: int) -> None:
    curve = Scaling(fixed, sample, within, 3 * within, low, low, low + more, local)
    batch, speed = (float(found[0]) for found in curve.best_batches(np.array([gpus]), np.array([1])))
    best = max(curve.speed(gpus, 1, size) for size in range(low, low + more + 1))
    assert speed == pytest.approx(best)
    assert batch == 0 if best == 0.0 else low <= batch <= low + more
    assert best == 0.0 or curve.speed(gpus, 1, int(batch)) == pytest.approx(best)


def test_speed_one_is_the_request_on_few_nodes_and_gangs_go_by_the_nodes_they_span() -> None:
    jobs = [job_row("a", 4, batch_size=16, scaling=str(STEP))]
    packed = simulate(jobs, "gpu:1x4", "fifo")
    spread = simulate(jobs, "gpu:4x1", "fifo")
    assert packed.summary["average_jct"] == pytest.approx(100.0)
    assert spread.summary["average_jct"] == pytest.approx(100.0)  # no node holds more than one: that is as few as can be
    mixed = simulate([job_row("b", 2, 1000), *jobs], "gpu:2x4", "fifo")
    slower = STEP.step(4, 2, 16) / STEP.step(4, 1, 16)
    assert by_job(mixed, "jct")["a"] == pytest.approx(100.0 * slower)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("speed=3", "there is no 'speed=3'"),
        ("sample=fast", "not a number"),
        ("fixed=-1", "fixed is -1"),
        ("within=1", "takes no time"),
        ("sample=1;batch=32-64", "batch 16 is not within 32-64"),
        ("sample=1;batch=64-16", "not within"),
        ("sample=1;batch=8-64;local=4", "does not fit on the 2 GPUs"),
    ],
)
def test_a_curve_that_cannot_be_meant_is_told_with_its_job(text: str, told: str) -> None:
    good = job_row("good", 2, batch_size=16, scaling="sample=0.1")
    with pytest.raises(UsageError, match=told) as found:
        simulate([good, {**good, "job": "bad", "scaling": text}], "gpu:1x4", "fifo")
    assert "'bad'" in str(found.value)
    assert ":3" in str(found.value)


def test_jobs_without_a_curve_keep_the_speeds_of_their_options() -> None:
    model = ScalingModel.of(["a", "b"], [STEP, None], [1, 1], [4])
    assert model.rate("b", 0, 2) is None
    assert model.best_batches("b", 0, 2) is None
    assert model.rate("a", 0, 1) == pytest.approx(1.0)
