"""Comparisons: pairs of the same jobs, over seeds or within one run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gantline.core.errors import NotFoundError, UsageError
from gantline.lab.experiment.compare import Comparison, JobsOfRun, compare, paired_jobs
from gantline.lab.experiment.grid import Grid, PolicyChoice
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import Sweep, run_sweep
from gantline.lab.experiment.trace_source import TraceSource

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
