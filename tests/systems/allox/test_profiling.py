"""Profiling in the default regime: short runs occupy devices, come first, and a job is matched when all of its are made."""

from __future__ import annotations

import polars as pl
import pytest
from tests.jobs import held_by
from tests.systems.allox.hybrid import cluster, job, some_jobs

from gantline.core.errors import UsageError
from gantline.policies.registry import make_policy
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate

ON = {"profile": True}


def spans(run: Run, name: str) -> list[tuple[float, float, str, str]]:
    return held_by(run, name).sort("start").select("start", "end", "type", "reason").rows()


def test_two_short_runs_on_each_device_come_before_the_job() -> None:
    run = simulate([job("a", 1000, 3000)], cluster(1, 1), "allox", settings=ON)
    samples = [(0.0, 10.0, "gpu", "limit"), (10.0, 30.0, "gpu", "limit"), (30.0, 60.0, "cpu", "limit"), (60.0, 120.0, "cpu", "limit")]
    # Three hundredths of the work on either device are done by then.
    assert spans(run, "a")[:4] == samples
    start, end, kind, reason = spans(run, "a")[4]
    assert (start, kind, reason) == (120.0, "gpu", "finished")
    assert end == pytest.approx(120.0 + 940.0)


def test_short_runs_take_at_least_a_second_and_hold_their_device() -> None:
    run = simulate([job("a", 20, 60), job("b", 20, 60)], cluster(1, 1), "allox", settings=ON)
    first = {name: spans(run, name)[0] for name in ("a", "b")}
    assert first["a"] == (0.0, 1.0, "gpu", "limit")
    assert first["b"][0] >= 2.0  # after both of a's runs on the only GPU
    assert run.summary["completed"] == 2
    assert run.summary["incidents"] == 0


def test_every_job_makes_all_its_runs_and_ends() -> None:
    jobs = some_jobs(5, 60)
    run = simulate(jobs, cluster(2, 2), "allox", settings=ON | {"alpha": 0.3}, estimates="sampled:0.1")
    assert run.summary["completed"] == 60
    assert run.summary["incidents"] == 0
    counts = run.allocations.group_by("job").agg(samples=(pl.col("reason") == "limit").sum(), ends=(pl.col("reason") == "finished").sum())
    assert counts["samples"].to_list() == [4] * 60
    assert counts["ends"].to_list() == [1] * 60
    plain = simulate(jobs, cluster(2, 2), "allox", settings={"alpha": 0.3}, estimates="sampled:0.1")
    assert run.summary["average_jct"] > plain.summary["average_jct"]


def test_short_runs_cannot_be_preempted() -> None:
    with pytest.raises(UsageError, match="short runs would be preempted"):
        make_policy("allox.srpt", {"profile": "true"})
    with pytest.raises(UsageError, match="short runs would be preempted"):
        make_policy("allox", {"profile": "true", "preemptive": "true"})
