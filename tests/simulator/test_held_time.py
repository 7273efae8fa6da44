"""GPU-hours, queueing and utilization come from what was held, whatever changes cost and however time is counted."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import FEWER
from tests.jobs import by_job, held_by
from tests.jobs import job_row as job
from tests.oracles.held_time import assert_accounts_agree, held_time
from tests.probes.scenario import IN_ONE_GROUP
from tests.systems.gavel.tiny_world import table as speeds
from tests.systems.gavel.tiny_world import trace as gavel_trace

from gantline import Node, NodeEvent, simulate
from gantline.lab.report.metrics import measure


def test_a_start_that_costs_time_is_held_and_not_queued_for() -> None:
    run = simulate([job("a", 4)], "1x4", "fifo", costs="start=50", prices="gpu=3600")
    assert run.jobs.select("held", "service", "queueing", "gpu_seconds").row(0) == (150.0, 100.0, 0.0, 600.0)
    assert run.summary["gpu_hours"] == pytest.approx(0.1667, abs=1e-4)
    assert run.summary["cost"] == pytest.approx(600.0)
    assert (run.summary["average_queueing"], run.summary["utilization"]) == (0.0, 1.0)
    assert_accounts_agree(run)


def test_a_job_in_long_rounds_uses_its_cluster_until_it_ends() -> None:
    run = simulate([job("a")], "1x1", "fifo", round=300)
    assert (run.summary["end"], run.summary["utilization"], measure(run)["utilization"]) == (100.0, 1.0, 1.0)


def test_a_preempted_job_waits_only_while_it_holds_nothing() -> None:
    """The long job starts (5 s), is stopped at 10, and pays 20 s for its resume at 35: start and resume are not waiting."""
    jobs = [job("long"), job("short", 1, 20, at=10)]
    run = simulate(jobs, "1x1", "srtf", costs="start=5,resume=20")
    held = by_job(run, "held")
    assert held == {"long": 10.0 + 20.0 + 95.0, "short": 25.0}
    assert run.jobs["queueing"].to_list() == [25.0, 0.0]
    assert_accounts_agree(run)


def test_a_resized_job_is_billed_for_every_size_it_had() -> None:
    jobs = [job("a", 2, 300, min_gpus=1, max_gpus=2), job("b", 1, 30, at=50)]
    run = simulate(jobs, "1x2", "afs", costs="resize=10,start=5")
    assert held_by(run, "a")["gpus"].to_list() == [2, 1, 2]
    assert_accounts_agree(run)


def test_a_shared_device_counts_for_both_jobs_and_once_for_the_cluster() -> None:
    run = simulate([job("a"), job("b", at=50)], "1x2", IN_ONE_GROUP, costs="start=10")
    a, b = run.jobs["held"].to_list()
    assert run.summary["gpu_hours"] * 3600 == pytest.approx(a + b)
    assert run.summary["utilization"] == pytest.approx(0.5)  # one of two devices, from the beginning to the end
    assert_accounts_agree(run)


def test_a_job_that_never_ends_holds_its_devices_until_the_run_is_stopped() -> None:
    run = simulate([job("a", 1, 1e6, at=10), job("b", 1, 5, at=20)], "1x1", "fifo", until=110, costs="start=30")
    assert run.jobs.select("held", "service", "gpu_seconds").rows() == [(100.0, 70.0, 100.0), (0.0, 0.0, 0.0)]
    assert (run.summary["end"], run.summary["utilization"]) == (110.0, 1.0)
    assert_accounts_agree(run)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]], str, dict[str, Any]]:
    """A cluster, rigid and elastic jobs, a policy, and all that makes holding differ from working."""
    nodes, per = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 4]))
    jobs, arrival = [], 0.0
    for number in range(draw(st.integers(1, 8))):
        arrival += draw(st.sampled_from([0.0, 1.0, 50.0, 200.0]))
        gpus = draw(st.integers(1, per))
        more: dict[str, Any] = {"min_gpus": 1, "max_gpus": nodes * per} if draw(st.booleans()) else {"min_gpus": gpus, "max_gpus": gpus}
        jobs.append(job(f"j{number}", gpus, float(draw(st.integers(1, 400))), at=arrival, **more))
    events: list[Any] = []
    if nodes > 1 and draw(st.booleans()):
        down = draw(st.floats(0, 500, allow_nan=False))
        events = [NodeEvent(down, "node0", "down"), NodeEvent(down + draw(st.floats(1, 300)), "node0", "up")]
        events.append(NodeEvent(events[-1].time + 10.0, "late", "join", Node("late", gpus=per)))
    how = {
        "round": draw(st.sampled_from([None, 60.0])),
        "costs": draw(st.sampled_from(["", "30", "start=5,resume=20,resize=12,move=9,checkpoint=100"])),
        "executor": draw(st.sampled_from(["instant", "acknowledged", "measured", "faulty:1", "faulty:4"])),
        "regime": draw(st.sampled_from(["default", "default", "blox", "tiresias"])),
        "until": draw(st.sampled_from([math.inf, 300.0])),
        "track": draw(st.sampled_from([None, (0, 1)])),
        "node_events": tuple(events),
    }
    names = ["fifo", "srtf", "las", "tiresias", "fair-share", "afs", "optimus", "gandiva", "sharing", "themis", "voda.elastic_fifo"]
    return f"{nodes}x{per}", jobs, draw(st.sampled_from(names)), how


@FEWER
@given(worlds())
def test_what_is_told_is_what_the_log_says(world: tuple[str, list[dict[str, Any]], str, dict[str, Any]]) -> None:
    cluster, jobs, policy, how = world
    assert_accounts_agree(simulate(jobs, cluster, policy, **how))


@pytest.mark.parametrize("policy", ["gavel.max_min_fairness", "gavel.max_min_fairness_packed", "gavel.fifo"])
@pytest.mark.parametrize("compat", ["", "gavel"])
def test_gavel_in_its_own_rounds(policy: str, compat: str) -> None:
    jobs = gavel_trace(("big", 400.0, 0.0), ("small", 300.0, 0.0), ("big", 200.0, 10.0), ("small", 90.0, 40.0), ("big", 60.0, 200.0))
    settings = {"compat": compat} if compat else {}
    assert_accounts_agree(simulate(jobs, "v100:1,k80:1", policy, settings=settings, regime="gavel", throughputs=speeds(), round=30.0))


@pytest.mark.parametrize("regime", ["gavel", "default"])
def test_a_share_of_the_time_is_held_and_worth_its_part_of_the_devices(regime: str) -> None:
    jobs = gavel_trace(("big", 400.0, 0.0), ("small", 300.0, 0.0), ("big", 200.0, 10.0))
    how: dict[str, Any] = {"settings": {"ideal": True}, "regime": regime, "throughputs": speeds()}
    run = simulate(jobs, "v100:1,k80:1", "gavel.max_min_fairness", **how)
    length = run.summary["end"] - run.jobs["arrival"].min()
    assert run.summary["utilization"] == pytest.approx(run.jobs["gpu_seconds"].sum() / (2 * length)) == measure(run)["utilization"]
    assert (run.jobs["held"] <= run.jobs["jct"]).all()
    assert run.jobs["held"].to_list() == pytest.approx([seconds for seconds, _ in held_time(run).values()])


@pytest.mark.parametrize("policy", ["elasticflow", "edf", "tiresias", "gandiva", "themis"])
def test_elasticflow_in_its_own_slots(policy: str) -> None:
    jobs = [job(f"j{k}", 2 ** (k % 3), 500.0, at=130.0 * k, deadline=130.0 * k + 4000.0) for k in range(6)]
    assert_accounts_agree(simulate(jobs, "gpu:1x4", policy, regime="elasticflow", round=240))


@pytest.mark.parametrize("policy", ["allox", "allox.srpt", "drf"])
@pytest.mark.parametrize("regime", ["irfsim", "irfsim-known"])
def test_irfsim_with_samples(policy: str, regime: str) -> None:
    jobs = [job(f"j{k}", 1, 100.0 + 40 * k, at=20.0 * k, options=f"gpu:1/0/8={100 + 40 * k}|cpu:0/4/8={300 - 30 * k}") for k in range(6)]
    run = simulate(jobs, "gpu:2x1/0c/64g,cpu:2x0/8c/64g", policy, regime=regime)
    assert_accounts_agree(run)
    assert run.summary["completed"] == 6
