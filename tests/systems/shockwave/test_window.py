"""The window of Shockwave's planner: against all plans there are, on instances small enough to list them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import FEWER

from gantline.systems.shockwave.imitation.planner import Learner, Predictor
from gantline.systems.shockwave.policies import (
    PlanningWindow,
    fair_window,
    fill_idle,
    pack_rounds,
    plan_counts,
    plan_window,
    priorities,
    value_of,
)


@st.composite
def windows(draw: st.DrawFn) -> PlanningWindow:
    jobs = draw(st.integers(1, 3))
    numbers = st.floats(0.0, 1.0)
    epochs = np.array([float(draw(st.integers(2, 6))) for _ in range(jobs)])
    done = np.array([float(draw(st.integers(0, int(e) - 1))) for e in epochs])
    duration = np.array([20.0 + 200.0 * draw(numbers) for _ in range(jobs)])
    remaining = (epochs - done) * duration * np.array([0.5 + draw(numbers) for _ in range(jobs)])
    weight = np.array([1.0 + 9.0 * draw(numbers) for _ in range(jobs)])
    gang = np.array([draw(st.sampled_from((1, 2))) for _ in range(jobs)], dtype=np.int64)
    return PlanningWindow(gang, epochs, done, duration, remaining, weight, gpus=draw(st.integers(2, 3)), rounds=3, length=120.0, gap=1e-9)


@given(windows())
@FEWER
def test_counts_are_as_good_as_the_best_of_all(w: PlanningWindow) -> None:
    counts, value = plan_counts(w)
    every = [
        value_of(w, np.array(some))
        for some in product(range(w.rounds + 1), repeat=len(w.gang))
        if float(w.gang @ np.array(some)) <= w.gpus * w.rounds
    ]
    assert value == pytest.approx(max(every), rel=1e-6, abs=1e-6)
    assert value_of(w, counts) == pytest.approx(max(every), rel=1e-6, abs=1e-6)


@given(windows())
@FEWER
def test_no_round_is_overbooked_and_no_gpu_idles_beside_a_job_that_fits(w: PlanningWindow) -> None:
    plan = plan_window(w)
    for at in range(w.rounds):
        left = w.gpus - int(w.gang[plan[:, at]].sum())
        assert left >= 0
        assert not any(w.gang[k] <= left for k in np.flatnonzero(~plan[:, at]))


def two_jobs(**more: object) -> PlanningWindow:
    """Two jobs of four epochs of 100 s on one GPU, for three rounds."""
    base = PlanningWindow(np.array([1, 1]), np.full(2, 4.0), np.zeros(2), np.full(2, 100.0), np.full(2, 400.0), np.ones(2), 1, 3)
    return replace(base, **more)  # type: ignore[arg-type]


def test_a_job_that_is_late_is_served_before_all_others() -> None:
    late = priorities(np.array([4.0, 0.9]), np.array([400.0, 400.0]), largest=1.0, power=12.0, length=120.0)
    assert late.tolist() == [4.0**12, 1.0]
    plan = plan_window(two_jobs(priority=late))
    assert plan[0].tolist() == [True, True, True]


def test_of_jobs_that_are_alike_the_first_has_the_earliest_rounds() -> None:
    plan = plan_window(two_jobs())
    assert plan[0].tolist() > plan[1].tolist()


def test_one_about_to_end_counts_more_still() -> None:
    late = priorities(np.array([2.0, 2.0]), np.array([100.0, 400.0]), largest=1.0, power=12.0, length=120.0)
    assert late.tolist() == [2.0**100, 2.0**12]


def test_everybody_keeps_the_fair_finish_time_where_that_is_possible() -> None:
    easy = fair_window(two_jobs(), np.array([2000.0, 700.0]), share=0.5, largest=1.0, end=360.0)
    assert easy is not None
    assert easy.least is not None
    assert easy.least.tolist() == [0.0, 400.0 - 0.5 * 340.0]
    counts, _ = plan_counts(easy)
    assert counts[1] * 120 >= 230
    assert fair_window(two_jobs(), np.array([2000.0, 300.0]), share=0.5, largest=1.0, end=360.0) is None, "its target lies before the end"


def test_counts_that_cannot_be_packed_are_cut_by_priority() -> None:
    w = two_jobs(gang=np.array([2, 2]), gpus=3, priority=np.array([1.0, 5.0]))
    plan = pack_rounds(w, np.array([2, 2]))
    assert plan[1].tolist() == [True, True, False]
    assert plan[0].tolist() == [False, False, True]
    assert fill_idle(w, plan)[:, 2].tolist() == [True, False]


def test_a_prediction_learns_from_the_epochs_seen() -> None:
    """Ten epochs, half of them at each of two batch sizes: 100 s and 50 s."""
    job = Predictor([10] * 5 + [20] * 5, [100.0] * 5 + [50.0] * 5, samples=1000.0)
    assert job.remaining(0) == pytest.approx((10 * 6 / 11 - 1) * 100 * 10 / 10 + (10 * 5 / 11) * 50 * 10 / 10)
    assert job.remaining(9) < job.remaining(5) < job.remaining(0)
    assert job.remaining(10) == 1.0
    assert job.mean(0) == 100.0
    assert job.spent(6) == 550.0


def test_without_being_told_a_job_is_taken_to_go_on_as_it_is() -> None:
    job = Learner(10, lambda batch: 1000.0 / batch, present=10)
    assert job.remaining(0) == 1000.0
    job.observe(20, done=4)
    assert (job.remaining(4), job.spent(4), job.mean(4)) == (300.0, 400.0, 90.0)
