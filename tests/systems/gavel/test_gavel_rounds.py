"""Rounds as Gavel's simulator counts them, on worlds small enough to follow by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.systems.gavel.tiny_world import table, trace

from gantline.core.errors import RefusedError, UsageError
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate

COMPAT = {"compat": "gavel"}


def rounds(jobs: Any, cluster: str = "v100:1", policy: str = "fifo_perf", settings: dict[str, Any] | None = None, **more: Any) -> Run:
    chosen = COMPAT if settings is None else settings
    return simulate(jobs, cluster, f"gavel.{policy}", settings=chosen, throughputs=more.pop("speeds", table()), regime="gavel", **more)


def finishes(run: Run) -> list[float]:
    return [float(value) for value in run.jobs["finish"].to_list()]


def test_a_finish_inside_a_round_is_exact_but_frees_nothing_before_the_round_ends() -> None:
    """0 does 100 steps on the V100 (25 s), 1 works on the P100 for a whole round and then moves up; 2 had to wait for that."""
    run = rounds(trace(("big", 100.0, 0.0), ("big", 1e5, 0.0), ("big", 100.0, 0.0)), "v100:1,p100:1")
    assert finishes(run)[0] == 25.0
    assert finishes(run)[2] == 360.0 + 50.0


def test_a_round_ends_when_everybody_is_done() -> None:
    run = rounds(trace(("big", 100.0, 0.0), ("big", 100.0, 0.0)))
    assert finishes(run) == [25.0, 50.0]
    assert run.summary["rounds"] == 2


def test_a_round_is_as_long_as_whole_steps_take() -> None:
    """'small' does 2.5 steps per second on a P100: 22 whole steps in rounds of 9 s take 8.8 s."""
    run = rounds(trace(("small", 66.0, 0.0)), "p100:1", round=9.0)
    assert run.summary["rounds"] == 3
    assert finishes(run)[0] == pytest.approx(3 * 8.8)


def test_arrivals_wait_for_the_end_of_the_round_and_the_wait_counts() -> None:
    run = rounds(trace(("big", 4 * 500.0, 0.0), ("big", 40.0, 10.0)), "v100:1,k80:1")
    second = run.jobs.row(1, named=True)
    assert second["first_start"] == 360.0
    assert second["finish"] == 360.0 + 40.0
    assert second["jct"] == pytest.approx(390.0)


def test_a_pair_ends_with_its_slower_member_for_both() -> None:
    """Together 'big' needs 30 / 3.2 s and 'small' 90 / 2.4 s."""
    run = rounds(trace(("big", 30.0, 0.0), ("small", 90.0, 0.0)), "v100:1", "fifo_packed")
    assert finishes(run) == pytest.approx([37.5, 37.5])


def test_leases_on_the_same_devices_are_counted() -> None:
    run = rounds(trace(("big", 4 * 360.0 * 5, 0.0)))
    told = run.summary
    assert (told["rounds"], told["lease_extensions"], told["lease_extension_opportunities"]) == (5, 4, 4)
    assert run.allocations.height == 1


def test_the_artifact_drops_a_gang_with_fewer_steps_left_than_workers_and_we_do_not() -> None:
    jobs = trace(("big", 361.0 * 8, 0.0, 2), ("flat", 1.0, 0.0, 2))
    dropped, kept = rounds(jobs, "v100:1x4"), rounds(jobs, "v100:1x4", settings={})
    assert dropped.jobs["state"].to_list() == ["completed", "failed"]
    assert np.isnan(dropped.jobs["jct"][1])
    turns = dropped.allocations.filter(job=dropped.jobs["job"][1])
    assert turns.select("start", "end").rows() == [(0.0, 361.0 + 3 * 0.5)], "held in vain: two turns beside the other, three alone"
    assert kept.jobs["state"].to_list() == ["completed", "completed"]


def test_shares_are_computed_at_most_every_1920_seconds_by_the_artifact() -> None:
    jobs = trace(("big", 4 * 360.0 * 40, 0.0), *(("flat", 60.0, 400.0 * k) for k in range(1, 9)))
    assert rounds(jobs, "v100:1,k80:1", "isolated").summary["allocation_calls"] < 8
    assert rounds(jobs, "v100:1,k80:1", "isolated", settings={}).summary["allocation_calls"] > 8


def test_fifo_of_the_artifact_promises_devices_that_are_not_there() -> None:
    jobs = trace(*(("flat", 3600.0, 0.0) for _ in range(4)))
    promised, honest = rounds(jobs, "v100:1,p100:1,k80:1", "fifo"), rounds(jobs, "v100:1,p100:1,k80:1", "fifo", settings={})
    assert promised.allocations["type"].unique().to_list() == ["v100"]
    assert sorted(honest.allocations["type"].unique().to_list()) == ["k80", "p100", "v100"]
    assert honest.summary["makespan"] < 0.6 * promised.summary["makespan"]


def test_the_agnostic_baseline_of_the_artifact_peeks_at_the_v100() -> None:
    """'fussy' cannot run on the K80 at all: whoever plans with one speed everywhere sends it there in vain."""
    jobs = trace(("fussy", 2 * 3600.0, 0.0), ("flat", 3600.0, 0.0))
    peeks, knows = (rounds(jobs, "v100:1,k80:1", "finish_time_fairness", settings=way) for way in (COMPAT, {}))
    assert knows.summary["average_jct"] <= peeks.summary["average_jct"]
    assert knows.summary["completed"] == peeks.summary["completed"] == 2


def test_speeds_across_nodes_without_a_table_are_refused() -> None:
    with pytest.raises(RefusedError, match=r"--across-nodes: .*none is given .give --throughputs FILE"):
        simulate(trace(("big", 8 * 360.0, 0.0, 2)), "v100:2x1", "fifo", across_nodes=True)


def test_gangs_across_nodes_are_slower_if_the_table_says_so() -> None:
    jobs, speeds = trace(("big", 8 * 360.0, 0.0, 2)), table(across=0.5)
    together = rounds(jobs, "v100:1x2", speeds=speeds, across_nodes=True)
    apart = rounds(jobs, "v100:2x1", speeds=speeds, across_nodes=True)
    ignored = rounds(jobs, "v100:2x1", speeds=speeds)
    assert finishes(together) == finishes(ignored) == [360.0]
    assert finishes(apart) == [720.0]
    engine = simulate(jobs, "v100:2x1", "fifo", throughputs=speeds, across_nodes=True)
    assert finishes(engine) == [720.0]


def test_only_tracked_jobs_are_waited_for_and_the_end_is_exclusive() -> None:
    jobs = trace(*(("big", 4 * 360.0, 100.0 * k) for k in range(20)))
    run = rounds(jobs, track=(2, 4))
    assert run.summary["tracked"] == 2
    assert run.summary["completed"] == 4


def test_it_stops_at_the_time_it_is_told() -> None:
    run = rounds(trace(("big", 4 * 3600.0, 0.0)), until=1000.0)
    assert run.jobs["state"].to_list() == ["running"]
    assert run.summary["end"] == pytest.approx(1080.0)


def test_an_idle_cluster_computes_shares_at_once_however_wide_their_spacing() -> None:
    jobs = trace(("flat", 100.0, 0.0, 2), ("flat", 100.0, 0.0, 2))
    run = rounds(jobs, "v100:1x2", settings={"spacing": 1e9})
    assert finishes(run) == [50.0, 100.0]


def test_any_device_names_do() -> None:
    speeds = table()
    renamed = replace(speeds, types=("h100", "l4", "t4"))
    run = rounds(trace(("big", 400.0, 0.0), ("small", 400.0, 0.0)), "t4:1,h100:1", "max_min_fairness_perf", speeds=renamed)
    assert run.summary["completed"] == 2


def test_a_policy_without_shares_is_refused() -> None:
    with pytest.raises(RefusedError, match="policy 'fifo' gives no shares"):
        simulate(trace(("big", 100.0, 0.0)), "v100:1", "fifo", throughputs=table(), regime="gavel")


def test_allox_of_the_artifact_refuses_gangs_and_ours_lets_them_fill() -> None:
    jobs = trace(("big", 4000.0, 0.0, 2), ("big", 4000.0, 0.0))
    with pytest.raises(UsageError, match="single-device jobs only"):
        rounds(jobs, "v100:1x2", "allox")
    assert rounds(jobs, "v100:1x2", "allox", settings={}).summary["completed"] == 2


FAIR = "max_min_fairness_perf"
WAYS = ({}, {"compat": "gavel", "spacing": 0.0})  # shares are computed anew with every arrival and every end


@pytest.mark.parametrize("settings", WAYS)
def test_what_a_job_is_owed_decides_when_shares_are_computed_anew(settings: dict[str, Any]) -> None:
    """One device, four jobs of equal shares. 0 has its turn before 3 arrives: of its 120 s it has had 360, 1 and 2 have had none."""
    run = rounds(trace(*[("flat", 2000.0, 0.0)] * 3, ("flat", 2000.0, 100.0)), policy=FAIR, settings=settings)
    assert turns(run)[:5] == ["0", "1", "2", "3", "0"]


@pytest.mark.parametrize("settings", WAYS)
def test_what_a_job_is_owed_adds_up(settings: dict[str, Any]) -> None:
    """After the second round 2 is owed 120 + 90 s, 3 is owed 90, 4 nothing; 0 and 1 have had 150 too many, and 0 is first in the list."""
    run = rounds(trace(*[("flat", 3000.0, 0.0)] * 3, ("flat", 3000.0, 100.0), ("flat", 3000.0, 500.0)), policy=FAIR, settings=settings)
    assert turns(run)[:7] == ["0", "1", "2", "3", "4", "0", "1"]


@pytest.mark.parametrize("settings", WAYS)
def test_what_a_job_is_owed_stays_with_it_when_another_leaves(settings: dict[str, Any]) -> None:
    """0 ends in its second turn, with 225 s too many. 1 and 2 are owed 115, and 3 has had five too many."""
    run = rounds(trace(("flat", 700.0, 0.0), *[("flat", 2000.0, 0.0)] * 2, ("flat", 2000.0, 100.0)), policy=FAIR, settings=settings)
    assert turns(run)[:8] == ["0", "1", "2", "3", "0", "1", "2", "3"]


def turns(run: Run) -> list[str]:
    """Whose turn it was, one after the other."""
    return run.allocations.sort("start")["job"].to_list()


@pytest.mark.parametrize(("settings", "late"), [({}, 2), (COMPAT, 1)])
def test_late_jobs_are_those_that_end_after_their_deadline(settings: dict[str, Any], late: int) -> None:
    """On time to the second, a second too late, 15 s too late: the artifact compares the 25 s that the last one took with its instant."""
    jobs = trace(*[("big", 100.0, 0.0)] * 2, ("big", 100.0, 1000.0), deadline=[25.0, 49.0, 1010.0])
    run = rounds(jobs, settings=settings)
    assert finishes(run) == [25.0, 50.0, 1025.0]
    assert run.summary["slo_violations"] == late
    assert rounds(jobs, settings=settings, track=(0, 1)).summary["slo_violations"] == 0, "jobs that are not tracked do not count"
