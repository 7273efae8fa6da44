"""Estimates by a model of jobs that have ended: what it learns, when it is fitted again, and what the summary shows of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.jobs import job_row

from gantline.models.boosted_estimates import fit_additive
from gantline.simulator.simulate import simulate

SECONDS = {"ada": 2000.0, "ben": 60.0, "eva": 400.0}


def jobs(count: int, gap: float = 100.0) -> list[dict[str, Any]]:
    """Run times that hang on the user and, a little, on the number of GPUs."""
    draw, users = np.random.default_rng(5), list(SECONDS)
    rows = []
    for k in range(count):
        user, gpus = users[int(draw.integers(3))], int(draw.choice((1, 2)))
        duration = SECONDS[user] * gpus**0.5 * float(draw.uniform(0.8, 1.25))
        rows.append(job_row(f"j{k}", gpus, duration, at=gap * k, user=user))
    return rows


def test_two_curves_whose_sum_is_the_target_are_found() -> None:
    draw = np.random.default_rng(1)
    table = np.stack([draw.integers(0, 5, 400), draw.uniform(0, 1, 400), draw.uniform(0, 1, 400)], axis=1).astype(np.float64)
    target = 3.0 * table[:, 0] + np.where(table[:, 1] > 0.5, 2.0, 0.0)

    model = fit_additive(table, target, ("kind", "level", "noise"))

    assert np.abs(model.predict(table) - target).mean() < 0.25
    assert model.importances()["kind"] == pytest.approx(12.0, abs=0.6)
    assert model.importances()["noise"] < 0.6


def test_what_users_usually_run_decides_the_order_without_being_told() -> None:
    """With estimates that have been learned, short jobs pass long ones nearly as well as with the truth."""
    found = {known: simulate(jobs(150), "1x8", "qssf", estimates=known).summary["average_jct"] for known in ("oracle", "boosted")}
    blind = simulate(jobs(150), "1x8", "fifo").summary["average_jct"]

    assert found["boosted"] < 0.9 * blind
    assert found["boosted"] < 1.25 * found["oracle"]


def test_the_model_is_fitted_again_whenever_twice_as_much_has_ended_and_says_what_it_goes_by() -> None:
    shown = simulate(jobs(150), "4x8", "qssf", estimates="boosted").summary["estimator"]

    assert shown["fits"] == 4  # after 16, 32, 64 and 128
    assert next(iter(shown["features"])) == "user"
    assert "boosting" in shown["kind"]


def test_where_interpret_is_installed_the_model_is_its_explainable_boosting_machine() -> None:
    pytest.importorskip("interpret.glassbox", reason="interpret is not installed (pip install '.[explain]')")
    run = simulate(jobs(150), "1x8", "qssf", estimates="boosted")
    shown = run.summary["estimator"]

    assert (shown["kind"], next(iter(shown["features"]))) == ("explainable boosting machine", "user")
    assert run.summary["average_jct"] < 0.9 * simulate(jobs(150), "1x8", "fifo").summary["average_jct"]


def test_a_week_later_it_is_fitted_to_all_that_has_ended() -> None:
    late = [*jobs(40), job_row("late", 1, 60.0, at=700_000.0, user="ben")]

    assert simulate(late, "4x8", "qssf", estimates="boosted").summary["estimator"]["examples"] == 40


def test_a_second_run_of_the_same_options_begins_anew() -> None:
    from gantline.models.estimate_chain import find_estimates

    estimates = find_estimates("boosted")
    first = simulate(jobs(60), "1x8", "qssf", estimates=estimates)
    simulate(jobs(60, gap=7.0), "1x8", "qssf", estimates=estimates)

    assert simulate(jobs(60), "1x8", "qssf", estimates=estimates).summary["log_hash"] == first.summary["log_hash"]


def test_until_enough_has_ended_jobs_are_taken_for_an_hour_each() -> None:
    assert "estimator" not in simulate(jobs(12), "1x8", "qssf", estimates="boosted").summary
