"""Comparisons: pairs of the same jobs, over seeds or within one run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from gantline.core.errors import NotFoundError, UsageError
from gantline.lab.experiment.compare import Comparison, JobsOfRun, compare, paired_jobs
from gantline.lab.experiment.grid import Grid, PolicyChoice
from gantline.lab.experiment.intervals import Interval, change_interval, fewest_samples, holm, mean_interval, seeds_needed
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import Sweep, run_sweep
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.experiment.verdict import Difference, judged_together, verdict

CROWDED = TraceSource(generator="day", settings={"jobs": 80, "gpus": 16, "load": 1.0})


def sweep_of(folder: Path, *policies: str, **axes: object) -> Sweep:
    grid = Grid(Setting(CROWDED, "4x4", "fifo"), tuple(PolicyChoice(name) for name in policies), **axes)  # type: ignore[arg-type]
    return run_sweep(grid.cases(), folder)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    (found,) = compare(sweep_of(tmp_path_factory.mktemp("seeds"), "fifo", "srtf", seeds=(1, 2, 3, 4, 5, 6)))
    return found


def test_pairs_join_the_same_job_of_the_same_seed(seeds: Comparison) -> None:
    assert seeds.pairs.height == 6 * 80
    assert seeds.pairs.group_by("seed").len()["len"].unique().to_list() == [80]
    assert np.allclose(seeds.pairs["difference"], seeds.pairs["jct"] - seeds.pairs["jct_against"])


def test_one_run_is_a_number_without_a_verdict(tmp_path: Path) -> None:
    (found,) = compare(sweep_of(tmp_path, "fifo", "srtf"), metrics=["jct_mean", "makespan"])
    mean, span = found.differences
    assert (mean.over, mean.change.samples, mean.change.known) == ("", 1, False)
    assert (mean.sign, span.sign) == (0, 0)
    assert mean.spread > 0
    assert mean.change.value == pytest.approx(found.pairs["jct"].mean() / found.pairs["jct_against"].mean() - 1)  # type: ignore[operator]
    assert (span.over, span.change.known) == ("", False)
    assert "srtf against fifo in one run: mean JCT -" in found.verdicts[0]
    assert "beats" not in found.verdicts[0]


def test_every_place_of_the_other_axes_gets_its_own_comparison(tmp_path: Path) -> None:
    found = compare(sweep_of(tmp_path, "fifo", "las", loads=(0.2, 1.0)), against="las")
    assert [comparison.place for comparison in found] == [{"load": 0.2}, {"load": 1.0}]
    assert {difference.policy for comparison in found for difference in comparison.differences} == {"fifo"}
    frame = pl.concat([comparison.frame for comparison in found])
    assert frame.select("load", "metric").unique().height == 6


def test_only_jobs_that_ended_under_both_make_a_pair() -> None:
    def jobs(jct: list[float]) -> Callable[[], pl.DataFrame]:
        state = ["completed" if value == value else "waiting" for value in jct]
        columns = {"job": ["a", "b", "c"], "jct": jct, "queueing": 0.0, "responsiveness": 0.0, "duration": 1.0, "state": state}
        return lambda: pl.DataFrame({**columns, "tracked": [True, True, False]})

    nan = float("nan")
    pairs = paired_jobs([JobsOfRun("fifo", 0, jobs([5.0, nan, 7.0])), JobsOfRun("srtf", 0, jobs([3.0, 4.0, 6.0]))], "fifo")
    assert pairs.select("job", "difference").rows() == [("a", -2.0)]


def test_mistakes_are_refused(tmp_path: Path) -> None:
    two = sweep_of(tmp_path / "two", "fifo", "las")
    with pytest.raises(NotFoundError, match="did you mean 'jct_mean'"):
        compare(two, metrics=["jct_meen"])
    with pytest.raises(NotFoundError, match="no policy 'fiffo' among those compared"):
        compare(two, against="fiffo")
    with pytest.raises(UsageError, match="only one policy"):
        compare(sweep_of(tmp_path / "one", "fifo"))


# Intervals over seeds: they cover what they say, repeat, know when they know nothing, and promise no level that was not measured.


def test_the_middle_is_students_interval_where_nothing_is_skewed() -> None:
    values = stats.norm.ppf((np.arange(30) + 0.5) / 30) + 10.0
    found = mean_interval(values)
    low, high = stats.t.interval(0.95, 29, loc=values.mean(), scale=stats.sem(values))
    assert found.low <= low
    assert found.high >= high
    assert found.high - found.low < 1.1 * (high - low)
    assert Interval(1.0, 0.0, 2.0, 0.95, 30, error=0.5).p == pytest.approx(2 * stats.t.sf(2.0, 29))


def coverage(size: int, confidence: float) -> float:
    """How often the interval of a paired change holds the truth: seeds differ heavily, the second policy takes 0.7 of the time or so."""
    generator, hits = np.random.default_rng(20), 0
    for _ in range(400):
        baseline = generator.lognormal(3.0, 0.8, size)
        found = change_interval(baseline, 0.7 * baseline * generator.lognormal(-0.02, 0.2, size), confidence)
        hits += found.low <= -0.3 <= found.high
    return hits / 400


@pytest.mark.parametrize(("size", "confidence", "least"), [(3, 0.95, 0.9), (5, 0.95, 0.92), (20, 0.95, 0.92), (10, 0.99, 0.965)])
def test_intervals_of_a_paired_change_cover_what_they_say(size: int, confidence: float, least: float) -> None:
    assert coverage(size, confidence) >= least


def test_a_long_tail_is_followed_on_its_side() -> None:
    values = np.array([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 9.0])
    found = mean_interval(values)
    assert found.high - found.value > 2 * (found.value - found.low)


def test_pairing_makes_the_interval_narrow() -> None:
    generator = np.random.default_rng(1)
    baseline = generator.lognormal(3.0, 0.8, 20)
    better = 0.8 * baseline * (1 + 0.02 * generator.normal(size=20))
    paired, shuffled = change_interval(baseline, better), change_interval(baseline, generator.permutation(better))
    assert paired.value == pytest.approx(shuffled.value)
    assert paired.high - paired.low < 0.1 * (shuffled.high - shuffled.low)
    assert paired.p < 1e-6 < shuffled.p


def test_the_same_seeds_give_the_same_bounds() -> None:
    values = np.random.default_rng(2).exponential(1.0, 40)
    assert mean_interval(values) == mean_interval(values)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_fewer_than_three_seeds_give_a_value_without_bounds(size: int) -> None:
    found = change_interval(np.arange(1.0, 1.0 + size), np.arange(2.0, 2.0 + size))
    assert not found.known
    assert math.isnan(found.p)
    assert math.isnan(found.value) == (size == 0)


def test_a_level_that_few_seeds_cannot_reach_is_not_printed() -> None:
    old, new = np.arange(1.0, 6.0), np.arange(2.0, 7.0)
    assert change_interval(old, new, 0.95).known
    assert not change_interval(old, new, 0.99).known
    assert fewest_samples(0.99) == 10
    for level, message in ((1.0, "not between 0 and 1"), (0.999, "99.9 % have not been measured")):
        with pytest.raises(UsageError, match=message):
            mean_interval(old, level)


def test_equal_columns_do_not_differ_and_nothing_falls_by_more_than_all() -> None:
    zeros = change_interval(np.zeros(10), np.zeros(10))
    assert (zeros.value, zeros.low, zeros.high, zeros.p) == (0.0, 0.0, 0.0, 1.0)
    always = change_interval(np.ones(4), np.full(4, 0.5))
    assert (always.value, always.p) == (-0.5, 0.0)
    assert change_interval(np.array([9.0, 1.0, 1.0]), np.array([0.1, 1.0, 0.1])).low >= -1.0
    assert change_interval(np.zeros(3), np.ones(3)).value == math.inf


# Many comparisons in one table: Holm's p-values, and how many seeds a change would need.


def test_holm_by_hand() -> None:
    """The smallest of three times three, the next times two, the last once, and none below the one before it."""
    assert holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.5, math.nan, 0.9])[0] == 1.0
    assert math.isnan(holm([0.5, math.nan, 0.9])[1])
    assert holm([]) == []


def test_the_seeds_that_are_said_to_be_needed_tell_the_change_four_times_in_five() -> None:
    """By simulation: a change of 0.1 that varies by 0.15 from seed to seed, in a table of five comparisons."""
    count = seeds_needed(0.1, 0.15, 0.95, 5)
    drawn = np.random.default_rng(0).normal(0.1, 0.15, (4000, count))
    told = stats.ttest_1samp(drawn, 0.0, axis=1).pvalue < 0.05 / 5
    assert 0.76 < told.mean() < 0.84


def test_more_comparisons_and_a_smaller_change_need_more_seeds() -> None:
    few, many, small = seeds_needed(0.2, 0.1, 0.95, 1), seeds_needed(0.2, 0.1, 0.95, 15), seeds_needed(0.05, 0.1, 0.95, 1)
    assert few < many < small
    assert seeds_needed(0.001, 1.0, 0.95, 1) is None
    assert seeds_needed(0.0, 1.0, 0.95, 1) is None
    assert seeds_needed(0.5, 0.01, 0.99, 1) == 10


def test_tables_are_judged_together() -> None:
    def one(error: float) -> Difference:
        return Difference("b", "a", "jct_mean", 0.9, 1.0, Interval(-0.1, -0.2, -0.01, 0.95, 10, error), "seeds")

    (alone,), (crowded, *_) = judged_together([[one(0.04)]])[0], judged_together([[one(0.04), *[one(1.0)] * 9]])[0]
    assert alone.p == pytest.approx(2 * stats.t.sf(2.5, 9))
    assert crowded.p == pytest.approx(10 * alone.p)
    assert (alone.sign, crowded.sign) == (1, 0)
    assert crowded.comparisons == 10


# Verdicts: the sentence says what the numbers say, and no more; no verb without an interval.

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
