"""The warm-up: what is left out is the beginning, the same for all policies, and no more than half."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gantline import compare, simulate
from gantline.cli.main import main
from gantline.core.errors import UsageError
from gantline.lab.experiment.grid import Grid, policies_of
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import run_sweep, with_common_warmup
from gantline.lab.experiment.trace_source import TraceSource
from gantline.simulator.summary import mser5

LEVEL = np.random.default_rng(0).normal(100.0, 10.0, 400)
SOURCE = TraceSource(generator="generic", settings={"jobs": 150, "gpus": 8, "load": 0.95, "durations": "weibull(scale=1h, shape=1)"})


def test_a_ramp_before_a_level_is_left_out() -> None:
    ramp = np.concatenate([np.linspace(0.0, 95.0, 60), LEVEL])
    assert 40 <= mser5(ramp) <= 70
    assert mser5(LEVEL) <= 30
    assert mser5(np.arange(400.0)) == 200  # half is the most
    assert mser5(np.zeros(400)) == 0
    assert mser5(np.ones(7)) == 0


def test_a_run_measures_what_comes_after_the_warm_up() -> None:
    jobs = [{"job": f"j{k}", "arrival": 10.0 * k, "gpus": 1, "duration": 12.0} for k in range(40)]
    whole, late = simulate(jobs, "1x1", "fifo"), simulate(jobs, "1x1", "fifo", warmup=100)
    assert late.summary["log_hash"] == whole.summary["log_hash"]  # the same run, measured otherwise
    assert (late.summary["warmup"], late.summary["track"], late.summary["tracked"]) == (100.0, [10, 40], 30)
    assert late.summary["average_jct"] == pytest.approx(whole.jobs["jct"][10:].mean())
    with pytest.raises(UsageError, match="all jobs arrive within the warm-up"):
        simulate(jobs, "1x1", "fifo", warmup=1000)
    with pytest.raises(UsageError, match="'soon' is not a time"):
        simulate(jobs, "1x1", "fifo", warmup="soon")


def test_a_warm_up_that_is_found_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    trace = ["--trace-set", "jobs=150", "--trace-set", "gpus=8", "--trace-set", "load=0.97"]
    assert main(["simulate", "generic", *trace, "--cluster", "2x4", "--policy", "fifo", "--warmup", "auto", "--seed", "3"]) == 0
    told = capsys.readouterr()
    assert "warm-up: the first" in told.err
    assert "average_jct" in told.out


def test_policies_are_compared_over_the_same_jobs(tmp_path: Path) -> None:
    base = Setting(SOURCE, "2x4", "fifo", warmup="auto")
    cases = Grid(base, policies_of(["fifo,srtf,las"]), seeds=(0, 1)).cases()
    alone = run_sweep(cases, tmp_path / "alone")
    found = with_common_warmup(cases, lambda some: run_sweep(some, tmp_path / "together"))
    for seed in (0, 1):
        own = [record.summary["warmup"] for case, record in zip(alone.cases, alone.records) if case.axes["seed"] == seed]
        common = {record.summary["warmup"] for case, record in zip(found.cases, found.records) if case.axes["seed"] == seed}
        assert common == {max(own)}
    assert found.results["jobs"].n_unique() <= 2


def test_clusters_are_compared_over_the_same_jobs_too(tmp_path: Path) -> None:
    base = Setting(SOURCE, "1x4", "fifo", warmup="auto")
    cases = Grid(base, policies_of(["fifo"]), vary={"cluster": ["2x4", "8x8"]}).cases()
    alone = run_sweep(cases, tmp_path / "alone")
    own = [record.summary["warmup"] for record in alone.records]
    assert own[0] != own[1]
    found = with_common_warmup(cases, lambda some: run_sweep(some, tmp_path / "together"))
    assert [record.summary["warmup"] for record in found.records] == [max(own)] * 2


def test_a_comparison_says_what_it_left_out() -> None:
    found = compare({"generate": "generic", "settings": dict(SOURCE.settings)}, "2x4", "fifo,srtf", seeds=3, warmup="2h")
    assert any("the first" in remark and "left out as warm-up" in remark for remark in found.remarks)
    assert found.frame["samples"].unique().to_list() == [3]
