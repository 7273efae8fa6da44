"""Pollux and Optimus on the engine, where sizes and speeds are listed."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from tests.jobs import held_by

from gantline.core.errors import UsageError
from gantline.simulator.simulate import simulate
from gantline.systems.pollux.policies import Pollux

SMALL = {"size": 20, "generations": 15}


def elastic(name: str, arrival: float, duration: float, curve: dict[int, float]) -> dict[str, Any]:
    """A job whose duration on so many devices is listed."""
    options = "|".join(f"gpu:{gpus}={duration / speed:g}" for gpus, speed in curve.items())
    return {"job": name, "arrival": arrival, "gpus": min(curve), "duration": duration, "options": options,
            "min_gpus": min(curve), "max_gpus": max(curve)}  # fmt: skip


LINEAR = {gpus: float(gpus) for gpus in range(1, 9)}
FLAT = {gpus: 1.0 + 0.02 * (gpus - 1) for gpus in range(1, 9)}


def sizes(run: Any, name: str) -> list[int]:
    return held_by(run, name)["gpus"].to_list()


@pytest.mark.parametrize(("policy", "settings"), [("optimus", {}), ("pollux", {**SMALL, "p": 1.0})])
def test_devices_go_where_they_help(policy: str, settings: dict[str, Any]) -> None:
    run = simulate(
        [elastic("scales", 0.0, 4000.0, LINEAR), elastic("stays", 0.0, 4000.0, FLAT)], "2x4", policy, settings=settings, round=60.0
    )
    assert max(sizes(run, "scales")) > max(sizes(run, "stays")[:1])
    assert run.summary["completed"] == 2


def test_a_job_alone_gets_the_whole_cluster() -> None:
    for policy, settings in (("optimus", {}), ("pollux", SMALL)):
        run = simulate([elastic("alone", 0.0, 4000.0, LINEAR)], "2x4", policy, settings=settings, round=60.0)
        assert sizes(run, "alone")[-1] == 8


def test_a_bound_on_the_work_holds_however_many_jobs_there_are() -> None:
    """A search for two jobs has all of its thirty generations, one for twelve what the rows allow; at least one is made."""
    bounded = Pollux(size=20, generations=30, work=1200)
    assert [bounded.affordable(jobs) for jobs in (1, 2, 12, 1000)] == [30, 30, 5, 1]
    assert Pollux(size=20, generations=30).affordable(1000) == 30
    jobs = [elastic(f"job{k}", 30.0 * k, 600.0, LINEAR) for k in range(12)]
    run = simulate(jobs, "4x2", bounded, round=60.0)
    whole = simulate(jobs, "4x2", "pollux", settings={"size": 20, "generations": 30}, round=60.0)
    few = simulate(jobs, "4x2", "pollux", settings={"size": 20, "generations": 30, "work": 20 * 30 * 12}, round=60.0)
    assert run.summary["completed"] == 12
    assert run.summary["log_hash"] != whole.summary["log_hash"] == few.summary["log_hash"]


def test_a_high_power_serves_the_sum_and_a_low_one_the_slowest() -> None:
    work = 3000.0
    jobs = [elastic("scales", 0.0, work, LINEAR), *(elastic(f"stays{k}", 0.0, work, FLAT) for k in range(3))]
    first = {p: simulate(jobs, "2x4", "pollux", settings={**SMALL, "p": p}, round=60.0) for p in (-5.0, 1.0)}
    assert sizes(first[1.0], "scales")[0] >= sizes(first[-5.0], "scales")[0]


def test_jobs_that_span_nodes_keep_apart() -> None:
    jobs = [elastic(f"wide{k}", 0.0, 6000.0, {4: 4.0}) for k in range(3)]
    run = simulate(jobs, "6x2", "pollux", settings={"size": 40, "generations": 40}, round=60.0)
    begin = run.allocations.filter(pl.col("start") == 0.0)
    nodes = [node for row in begin["nodes"].to_list() for node in row]
    assert len(nodes) == len(set(nodes)) == 6


def test_and_jobs_that_do_want_more() -> None:
    run = simulate([elastic("scales", 0.0, 3000.0, LINEAR)], "2x2", "adaptdl", settings=SMALL, round=60.0)
    assert sizes(run, "scales")[0] == 4
    assert any("2 nodes" in note and "4 would be right" in note for note in run.notices)


def test_a_band_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match=r"a band from 0\.7 to 0\.6"):
        simulate([elastic("a", 0.0, 10.0, LINEAR)], "1x4", "adaptdl", settings={"low": 0.7, "high": 0.6})


@pytest.mark.parametrize("settings", [{"size": 1}, {"interference": 1.0}, {"restart": -1.0}, {"work": -1}])
def test_impossible_parameters_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="policy 'pollux'"):
        simulate([elastic("a", 0.0, 10.0, LINEAR)], "1x4", "pollux", settings=settings)
