"""Verdicts: the sentence says what the numbers say, and no more."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gantline.experiment.bootstrap import Interval
from gantline.experiment.verdict import Difference, verdict

NAN = math.nan


def difference(
    metric: str, value: float, low: float = NAN, high: float = NAN, over: str = "seeds", samples: int = 10, **more: float
) -> Difference:
    change = Interval(value, low, high, 0.95, samples)
    return Difference("srtf", "fifo", metric, 1.0 + value, 1.0, change, over, more.get("lowest", NAN), more.get("highest", NAN))


def test_a_clear_win_and_a_tie() -> None:
    sentence = verdict([difference("jct_mean", -0.31, -0.35, -0.27), difference("makespan", 0.002, -0.004, 0.007)])
    assert sentence == (
        "srtf beats fifo by 31 % mean JCT, 95 % interval 27..35 %; no clear difference in makespan (-0.40..+0.70 %) (over 10 seeds)."
    )


def test_wins_come_first_and_losses_after_them() -> None:
    sentence = verdict(
        [difference("jct_p99", 0.052, 0.04, 0.061), difference("jct_mean", -0.5, -0.6, -0.4), difference("utilization", 0.2, 0.1, 0.3)]
    )
    assert sentence == (
        "srtf beats fifo by 50 % mean JCT, 95 % interval 40..60 %; 20 % utilization, 95 % interval 10..30 %; "
        "loses 5.2 % 99th percentile of JCT, 95 % interval 4.0..6.1 % (over 10 seeds)."
    )


def test_an_end_of_an_interval_that_is_not_zero_is_not_told_as_zero() -> None:
    assert "interval 0.4..58.2 %" in verdict([difference("jct_mean", -0.35, -0.582, -0.004)])
    assert "(-3..+0 %)" not in verdict([difference("jct_mean", -0.35, -0.582, 0.0)])


def test_more_is_better_where_the_catalogue_says_so() -> None:
    assert difference("utilization", 0.2, 0.1, 0.3).sign == 1
    assert difference("jct_mean", 0.2, 0.1, 0.3).sign == -1


def test_a_few_seeds_are_told_as_a_range() -> None:
    sentence = verdict([difference("jct_mean", -0.2, samples=3, lowest=-0.25, highest=-0.12)])
    assert sentence == "srtf beats fifo by 20 % mean JCT, 12..25 % on single seeds (the range of 3 seeds, too few for an interval)."
    mixed = difference("jct_mean", -0.2, samples=3, lowest=-0.5, highest=0.1)
    assert mixed.sign == 0
    assert "shows no clear difference to fifo in mean JCT (-50..+10 %)" in verdict([mixed])


def test_one_run_is_told_as_such() -> None:
    sentence = verdict([difference("jct_mean", -0.2, -0.3, -0.1, "jobs", samples=1200), difference("makespan", 0.03, over="", samples=1)])
    assert sentence == (
        "srtf beats fifo by 20 % mean JCT, 95 % interval 10..30 %; loses 3.0 % makespan, no interval "
        "(one run; intervals over its 1,200 jobs, which says nothing about other traces)."
    )


def test_equal_runs_are_the_same() -> None:
    assert verdict([difference("makespan", 0.0, over="", samples=1)]) == "srtf has the same makespan as fifo (one run, without intervals)."
    equal = difference("jct_mean", 0.0, 0.0, 0.0, lowest=0.0, highest=0.0)
    assert verdict([equal]) == "srtf has the same mean JCT as fifo (over 10 seeds)."


@pytest.mark.parametrize("value", [NAN, math.inf])
def test_nothing_known_is_said_so(value: float) -> None:
    assert verdict([difference("jct_mean", value)]) == "srtf and fifo cannot be compared: no metric is known for both."
    lost = replace(difference("jct_mean", value), doubts="srtf: 20 of 20 decisions were lost")
    assert verdict([lost]) == "srtf and fifo cannot be compared, because of doubts: srtf: 20 of 20 decisions were lost."
