"""Resizes, migrations, time lost, jobs across nodes, deadlines met: counted by hand on small runs."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gantline import simulate
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.lab.report.metrics import measure


class Dance(Policy):
    """One device, then two, then two on another node, then four over both."""

    name = "dance"

    def decide(self, snapshot: Snapshot) -> Plan:
        steps = [(0.0, (0,)), (100.0, (0, 1)), (200.0, (2, 3)), (300.0, (0, 1, 2, 3))]
        devices = [step for step in steps if step[0] <= snapshot.now][-1][1]
        later = min((step[0] for step in steps if step[0] > snapshot.now), default=math.inf)
        return Plan.assign([Assignment(k, devices=devices) for k in range(len(snapshot.jobs))], valid_until=later)


def job(name: str, **more: Any) -> dict[str, Any]:
    return {"job": name, "arrival": 0.0, "gpus": 1, "duration": 1000.0, "min_gpus": 1, "max_gpus": 4, **more}


def test_every_change_is_counted_and_paid() -> None:
    run = simulate([job("a")], "gpu:2x2", Dance(), costs="start=5,resume=7,resize=10,move=20")
    found = measure(run)
    assert (found["resizes"], found["migrations"]) == (2, 1)
    assert found["time_lost"] == pytest.approx(5 + 10 + 20 + 10)
    assert found["cross_node"] == 1.0
    assert {name: run.summary[name] for name in ("resizes", "migrations", "cross_node_jobs", "time_lost")} == {
        "resizes": 2,
        "migrations": 1,
        "cross_node_jobs": 1,
        "time_lost": pytest.approx(45.0),
    }


def test_what_a_gang_did_not_live_to_pay_is_not_counted() -> None:
    run = simulate([job("a")], "gpu:2x2", Dance(), costs="resize=500", until=150.0)
    assert run.summary["time_lost"] == pytest.approx(50.0)


def test_rigid_jobs_within_nodes_change_nothing() -> None:
    run = simulate([job("a", min_gpus=1, max_gpus=1), job("b", max_gpus=1)], "gpu:2x2", "fifo")
    found = measure(run)
    assert (found["resizes"], found["migrations"], found["cross_node"], found["time_lost"]) == (0, 0, 0.0, 0.0)
    assert math.isnan(found["deadline_satisfaction"])


def test_deadlines_met_are_a_share_of_those_decided() -> None:
    jobs = [job("in time", deadline=1500.0), job("late", deadline=900.0), job("none")]
    run = simulate(jobs, "gpu:1x4", "fifo")
    assert measure(run)["deadline_satisfaction"] == run.summary["deadline_satisfaction"] == 0.5
    cut = simulate([*jobs, job("open", deadline=5000.0)], "gpu:1x2", "fifo", until=950.0)  # two run, one waits, one deadline is to come
    assert measure(cut)["deadline_satisfaction"] == cut.summary["deadline_satisfaction"] == 0.0
    assert "deadline_satisfaction" not in simulate([job("none")], "gpu:1x4", "fifo").summary


def test_a_model_with_costs_of_its_own_is_not_guessed_at() -> None:
    from gantline.models.model import PerformanceModel

    class Own(PerformanceModel):
        def cost(self, gangs: Any) -> Any:
            return [3.0] * len(gangs)

    assert simulate([job("a")], "gpu:1x4", "fifo", performance=Own()).summary["time_lost"] is None
