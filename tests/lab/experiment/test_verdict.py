"""Verdicts: the sentence says what the numbers say, and no more; no verb without an interval."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gantline.lab.experiment.intervals import Interval
from gantline.lab.experiment.verdict import Difference, verdict

NAN = math.nan


def difference(metric: str, value: float, low: float = NAN, high: float = NAN, samples: int = 10, p: float = 0.001) -> Difference:
    known = math.isfinite(low)
    change = Interval(value, low, high, 0.95, samples, error=(high - low) / 4 if known else NAN)
    return Difference("srtf", "fifo", metric, 1.0 + value, 1.0, change, "seeds" if samples > 1 else "", p if known else NAN)


def test_a_clear_win_and_a_tie() -> None:
    tie = replace(difference("makespan", 0.002, -0.004, 0.007, p=0.4), spread=0.009, comparisons=15)
    sentence = verdict([replace(difference("jct_mean", -0.31, -0.35, -0.27), comparisons=15), tie])
    assert sentence == (
        "srtf beats fifo by 31 % mean JCT, 95 % interval 27..35 %; no clear difference in makespan (-0.40..+0.70 %) "
        "(over 10 seeds; tested together with all 15 comparisons of the table). "
        "It needs more seeds: about 293 to tell a change of makespan by +0.20 % from chance."
    )


def test_wins_come_first_and_losses_after_them() -> None:
    sentence = verdict(
        [difference("jct_p99", 0.052, 0.04, 0.061), difference("jct_mean", -0.5, -0.6, -0.4), difference("utilization", 0.2, 0.1, 0.3)]
    )
    assert sentence == (
        "srtf beats fifo by 50 % mean JCT, 95 % interval 40..60 %; 20 % utilization, 95 % interval 10..30 %; "
        "loses 5.2 % 99th percentile of JCT, 95 % interval 4.0..6.1 % (over 10 seeds)."
    )


def test_an_interval_that_excludes_zero_is_not_enough_among_many_comparisons() -> None:
    lucky = difference("jct_mean", -0.1, -0.19, -0.01, p=0.3)
    assert lucky.sign == 0
    assert "shows no clear difference to fifo in mean JCT (-19..-1 %)" in verdict([lucky])
    assert difference("jct_mean", -0.1, -0.21, 0.01, p=0.04).sign == 0


def test_an_end_of_an_interval_that_is_not_zero_is_not_told_as_zero() -> None:
    assert "interval 0.4..58.2 %" in verdict([difference("jct_mean", -0.35, -0.582, -0.004)])
    assert "(-3..+0 %)" not in verdict([difference("jct_mean", -0.35, -0.582, 0.0)])


def test_more_is_better_where_the_catalogue_says_so() -> None:
    assert difference("utilization", 0.2, 0.1, 0.3).sign == 1
    assert difference("jct_mean", 0.2, 0.1, 0.3).sign == -1


def test_one_run_is_numbers_and_how_many_seeds_it_takes() -> None:
    numbers = [replace(difference("jct_mean", -0.2, samples=1), spread=0.1), difference("makespan", 0.03, samples=1)]
    assert verdict(numbers) == (
        "srtf against fifo in one run: mean JCT -20 %, makespan +3.0 %. That decides nothing: a 95 % interval needs 3 seeds, or traces "
        "like this one, at least, and about 5 to tell a change of mean JCT by -20 % from chance, as the stretches of this run vary."
    )
    assert verdict([difference("makespan", 0.03, samples=1)]).endswith("a 95 % interval needs 3 seeds, or traces like this one, at least.")
    assert "in one run, which 5 seeds repeat because nothing in it is random" in verdict([replace(numbers[0], copies=5)])


def test_too_few_seeds_for_the_level_say_how_many() -> None:
    two = replace(difference("jct_mean", -0.2, samples=2), spread=0.1)
    assert verdict([two]).startswith("srtf against fifo over 2 seeds: mean JCT -20 %. That decides nothing: a 95 % interval needs 3 seeds")
    sure = replace(two, change=Interval(-0.2, NAN, NAN, 0.99, 5, error=0.04))
    assert "a 99 % interval needs 10 seeds at least" in verdict([sure])
    assert "beats" not in verdict([two]) + verdict([sure])


def test_what_the_interval_is_over_is_said() -> None:
    clear = difference("jct_mean", -0.5, -0.6, -0.4)
    assert "10 seeds of what is drawn in a run, the jobs being the same" in verdict([replace(clear, over="draws")])
    assert "each stretched to a load of 0.9, so that they differ less than seeds whose load is drawn too" in verdict(
        [replace(clear, load=0.9)]
    )


def test_equal_runs_are_the_same() -> None:
    equal = Interval(0.0, 0.0, 0.0, 0.95, 10, error=0.0)
    same = replace(difference("jct_mean", 0.0), change=equal, p=1.0)
    assert verdict([same]) == "srtf has the same mean JCT as fifo (over 10 seeds)."
    assert "makespan the same" in verdict([difference("makespan", 0.0, samples=1)])


@pytest.mark.parametrize("value", [NAN, math.inf])
def test_nothing_known_is_said_so(value: float) -> None:
    assert verdict([difference("jct_mean", value)]) == "srtf and fifo cannot be compared: no metric is known for both."
    lost = replace(difference("jct_mean", value), doubts="20 of 20 decisions were lost")
    assert verdict([lost]) == "srtf and fifo cannot be compared, because of doubts: srtf: 20 of 20 decisions were lost."


def test_a_doubt_stands_at_the_policy_that_it_is_about() -> None:
    doubted = replace(difference("jct_mean", -0.5, -0.6, -0.4), doubts_against="no steady state in 4 of 5 runs")
    assert doubted.sign == 0
    assert verdict([doubted]) == (
        "srtf against fifo decides nothing (mean JCT -50 %), because of doubts: fifo: no steady state in 4 of 5 runs."
    )
