"""Estimates that may be wrong, differently on different device types: policies see them, the clock does not."""

from __future__ import annotations

import pytest
from tests.jobs import by_job, job_row
from tests.systems.allox.hybrid import cluster, job, some_jobs

from gantline.core.errors import TraceError, UsageError
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate


def last_types(run: Run) -> dict[str, str]:
    return dict(run.allocations.select("job", "type").iter_rows())


def test_declared_errors_reach_the_policy_while_the_truth_drives_progress() -> None:
    fine, wrong = job("fine", 100, 300), job("wrong", 100, 300)
    believed = [fine | {"cpu_err": 0.0, "gpu_err": 0.0}, wrong | {"cpu_err": -0.9, "gpu_err": 0.0}]
    as_known, as_declared = (simulate(believed, cluster(1, 1), "allox", estimates=way) for way in ("oracle", "declared"))
    assert last_types(as_known)["wrong"] == "gpu"
    assert last_types(as_declared) == {"fine": "gpu", "wrong": "cpu"}
    assert as_declared.jobs["service"].to_list() == [100.0, 300.0]
    assert as_declared.summary["estimates"] == "declared"


def test_an_error_on_the_type_that_is_asked_for_shows_in_the_work_too() -> None:
    short = job_row("short", 1, 50.0, v100_err=4.0)
    longer = job_row("longer", v100_err=0.0)
    for name in ("sjf", "allox.sjf", "allox"):
        run = simulate([short, longer], "v100:1x1", name, estimates="declared")
        assert by_job(run, "first_start") == {"longer": 0.0, "short": 100.0}


def test_errors_that_mean_nothing_are_named() -> None:
    with pytest.raises(TraceError, match="leaves no time at all"):
        simulate([job("a", 10, 20, gpu_err=-1.0)], cluster(1, 1), "allox", estimates="declared")
    with pytest.raises(UsageError, match="does not say how its estimates err"):
        simulate([job("a", 10, 20)], cluster(1, 1), "allox", estimates="declared")


def test_sampled_estimates_are_exact_without_noise_and_repeat_with_it() -> None:
    jobs = some_jobs(3, 40, span=300.0)
    known, exact, noisy, again = (
        simulate(jobs, cluster(2, 2), "allox", estimates=way) for way in ("oracle", *["sampled:0"], *["sampled:0.2"] * 2)
    )
    assert exact.jobs["finish"].to_list() == pytest.approx(known.jobs["finish"].to_list())
    assert noisy.summary["log_hash"] == again.summary["log_hash"] != known.summary["log_hash"]
