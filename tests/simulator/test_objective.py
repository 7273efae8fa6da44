"""Objectives in words: how they are written, what they come to, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gantline.core.errors import RefusedError, UsageError
from gantline.simulator.objective import WORDS, Ended, Objective, parse_objectives


def two_jobs(finish: tuple[float, float] = (10.0, 40.0), **others: object) -> Ended:
    """One GPU: a job of 10 s at 0, one of 20 s at 10 that waits for ten seconds."""
    columns = {"arrival": [0.0, 10.0], "first_start": [0.0, 20.0], "finish": finish, "duration": [10.0, 20.0], "gpus": [1.0, 1.0]}
    return Ended(**{name: np.array(values) for name, values in columns.items()}, end=40.0, devices=1.0, **others)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("mean-jct", 20.0),
        ("p95-jct", 29.0),
        ("responsiveness", 5.0),
        ("makespan", 40.0),
        ("worst-rho", 1.5),
        ("dollars", 3.0),
        ("kwh", 2.0),
    ],
)
def test_a_word_is_its_value(word: str, value: float) -> None:
    assert Objective.parse(word).of(two_jobs(dollars=3.0, kwh=2.0)) == pytest.approx(value)


def test_deadlines_are_the_share_that_was_missed() -> None:
    deadlines = Objective.parse("deadlines")
    assert deadlines.of(two_jobs(deadline=np.array([10.0, 30.0]))) == 0.5
    assert deadlines.of(two_jobs(deadline=np.array([math.nan, 50.0]))) == 0.0
    turned_away = two_jobs((10.0, math.nan), deadline=np.array([20.0, 90.0]), lost=np.array([False, True]))
    assert deadlines.of(turned_away) == 0.5
    still_open = two_jobs((10.0, math.nan), deadline=np.array([20.0, 90.0]))
    assert deadlines.of(still_open) == 0.0


def test_a_job_left_behind_counts_up_to_the_end_of_the_run() -> None:
    assert Objective.parse("mean-jct").of(two_jobs((10.0, math.inf))) == Objective.parse("mean-jct").of(two_jobs())
    assert Objective.parse("mean-jct").of(two_jobs((10.0, math.nan), lost=np.array([False, True]))) == 10.0


def test_only_the_jobs_that_count_are_counted() -> None:
    assert Objective.parse("mean-jct").of(two_jobs(counted=np.array([False, True]))) == 30.0


def test_the_terms_of_a_sum_are_in_proportion_to_another_run() -> None:
    both = Objective.parse(" 0.7*mean-jct + 0.3*makespan ")
    assert str(both) == "0.7*mean-jct+0.3*makespan"
    assert both.of(two_jobs(), two_jobs()) == pytest.approx(1.0)
    sooner = two_jobs((10.0, 30.0))
    assert both.of(sooner, two_jobs()) == pytest.approx(0.7 * 15 / 20 + 0.3 * 30 / 40)
    with pytest.raises(ValueError, match="in proportion to another run"):
        both.of(sooner)


def test_a_value_of_zero_to_compare_with_does_not_divide() -> None:
    on_time, late = two_jobs(deadline=np.array([10.0, 40.0])), two_jobs(deadline=np.array([9.0, 40.0]))
    assert Objective.parse("mean-jct+deadlines").of(late, on_time) == pytest.approx(1.0 + 0.5 / WORDS["deadlines"].least)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mean-jtc", "did you mean 'mean-jct'"),
        ("", "names nothing"),
        ("0*mean-jct+makespan", "not a number above 0"),
        ("-1*mean-jct+makespan", "not a number above 0"),
        ("much*mean-jct+makespan", "not a number above 0"),
        ("inf*mean-jct+makespan", "not a number above 0"),
        ("mean-jct+mean-jct", "stands twice"),
        ("2*mean-jct", "weighs it against nothing"),
        ("mean-jct+", "no objective ''"),
    ],
)
def test_a_mistake_is_one_clear_message(text: str, told: str) -> None:
    with pytest.raises(UsageError, match="objective: ") as caught:
        Objective.parse(text)
    assert told in str(caught.value)


def test_what_a_run_cannot_answer_is_refused_with_the_reason() -> None:
    for word, why in (("deadlines", "no job has a deadline"), ("dollars", "give --prices"), ("kwh", "give --power")):
        with pytest.raises(RefusedError, match=why):
            Objective.parse(word).of(two_jobs(deadline=np.array([math.nan, math.nan])))


def test_several_objectives_stand_side_by_side() -> None:
    assert [str(one) for one in parse_objectives("mean-jct,worst-rho")] == ["mean-jct", "worst-rho"]
    with pytest.raises(UsageError, match="twice"):
        parse_objectives("mean-jct,mean-jct")
