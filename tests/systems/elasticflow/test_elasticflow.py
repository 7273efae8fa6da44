"""ElasticFlow as the paper means it: whoever is let in is in time, and who is not is told what would be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.jobs import by_job, job_row
from tests.systems.elasticflow.workloads import late, some_jobs

from gantline import simulate
from gantline.core.errors import GantlineError
from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.registry import make_policy
from gantline.simulator.run import Run

Job = dict[str, Any]


def states(run: Run) -> dict[str, str]:
    return by_job(run, "state")


def job(name: str, arrival: float, work: float, deadline: float | None, sizes: tuple[int, ...] = (1, 2, 4), power: float = 0.8) -> Job:
    options = "|".join(f"gpu:{g}={work / g**power!r}" for g in sizes)
    row = job_row(name, sizes[0], work / sizes[0] ** power, at=arrival, max_gpus=sizes[-1])
    return row | {"deadline": deadline, "options": options}


def test_a_node_that_fails_and_returns_in_time_is_no_harm_when_there_is_room() -> None:
    from gantline.core.inputs import NodeEvent

    jobs = [job(f"j{k}", 10.0 * k, 800.0, 10.0 * k + 3000.0) for k in range(4)]
    events = (NodeEvent(100.0, "node1", "down"), NodeEvent(400.0, "node1", "up"))
    assert late(simulate(jobs, "gpu:2x4", "elasticflow", node_events=events)) == []


def test_the_least_size_that_is_in_time_is_reserved() -> None:
    """600 s of work at the speed of one: two GPUs are needed for a deadline of 400 s, one is enough for 700 s."""
    for deadline, size in ((700.0, 1), (400.0, 2), (210.0, 4)):
        only = {"id": "a", "estimate": 600.0, "deadline": deadline, "gpus": 1, "max_gpus": 4}
        only["options"] = [{"gpus": g, "rate": g**0.8} for g in (1, 2, 4)]
        busy = {"id": "b", "estimate": 1e6, "gpus": 4, "locked": 1, "devices": [0, 1, 2, 3], "options": [{"gpus": 4}]}
        snapshot = decode_snapshot({"cluster": "gpu:2x4", "now": 0, "jobs": [only, busy]})
        plan = make_policy("elasticflow").decide(replace(snapshot))
        first = plan.memory["plans"]["0"]
        assert plan[0].gpus == 4  # spare GPUs are used, and given back
        assert not plan.refusals
        without = make_policy("elasticflow", {"spare_order": "least_added"})
        assert without.decide(snapshot).memory["plans"]["0"] == first
        from gantline.policies.elastic.pools import pools
        from gantline.systems.elasticflow.policies.admission_control import AdmissionControl

        control = AdmissionControl(next(iter(pools(snapshot))), make_policy("elasticflow").settled(), [0], {})  # type: ignore[attr-defined]
        control._replan(np.array([0]))
        assert control._plans(np.array([0]))[0][1].tolist() == [size]


def test_a_refusal_offers_a_deadline_that_would_be_kept() -> None:
    for seed in range(2):
        jobs = some_jobs(seed, load=3.0)
        run = simulate(jobs, "gpu:2x8", "elasticflow")
        offers = {run.tables.ids[one.row]: one.offer["deadline"] for one in run.refusals}
        assert offers
        name, due = next(iter(offers.items()))
        again = simulate([one | {"deadline": due} if one["job"] == name else one for one in jobs], "gpu:2x8", "elasticflow")
        assert states(again)[name] == "completed"
        assert late(again) == []


def test_a_newcomer_never_makes_an_admitted_job_late() -> None:
    jobs = [job("first", 0, 1000, 1001, (1,)), job("second", 10, 400, 420, (1,)), job("third", 20, 100, 2000, (1,))]
    run = simulate(jobs, "gpu:1x1", "elasticflow")
    assert states(run) == {"first": "completed", "second": "rejected", "third": "completed"}
    assert run.refusals[0].offer["deadline"] == pytest.approx(1400.0)
    assert late(run) == []


TIED = [
    *(("default", settings) for settings in ({}, {"admission": "group"}, {"admission": "off"})),
    *(("elasticflow", settings) for settings in ({"compat": "elasticflow"}, {"compat": "elasticflow", "admission": "group"})),
]


@pytest.mark.parametrize("policy", ["elasticflow", "edf"])
@pytest.mark.parametrize(("regime", "settings"), TIED)
@pytest.mark.parametrize("together", [True, False])
def test_of_jobs_that_are_due_together_the_first_to_come_goes_first(
    policy: str, regime: str, settings: dict[str, Any], together: bool
) -> None:
    """One GPU has room for four jobs of ten minutes within their common deadline; nobody who runs is stopped for another."""
    jobs = [job(name, 0.0 if together else 60.0 * k, 600, 3000.0, (1,)) for k, name in enumerate(("d", "b", "a", "c"))]
    run = simulate(jobs, "gpu:1x1", policy, settings=settings, regime=regime, round=60.0)
    assert run.allocations.sort("start")["job"].to_list() == ["d", "b", "a", "c"]


def test_jobs_without_a_deadline_live_from_what_is_left_and_are_never_refused() -> None:
    jobs = [job("slow", 0, 4000, None, (1, 2, 4)), job("due", 100, 1000, 100 + 1000 / 4**0.8 + 5, (1, 2, 4))]
    run = simulate(jobs, "gpu:1x4", "elasticflow")
    assert states(run) == {"slow": "completed", "due": "completed"}
    spans = [(one["job"], one["start"], one["gpus"]) for one in run.allocations.sort("start").iter_rows(named=True)]
    assert spans[:2] == [("slow", 0.0, 4), ("due", 100.0, 4)]
    assert late(run) == []


def test_spare_gpus_go_first_to_who_adds_least() -> None:
    """One job scales well, the other hardly: two spare GPUs go to the first, by the artifact's order to the second."""
    good = {
        "id": "good",
        "estimate": 1000.0,
        "deadline": 5000.0,
        "gpus": 1,
        "max_gpus": 2,
        "options": [{"gpus": 1}, {"gpus": 2, "rate": 1.95}],
    }
    bad = {
        "id": "bad",
        "estimate": 1000.0,
        "deadline": 5000.0,
        "gpus": 1,
        "max_gpus": 2,
        "options": [{"gpus": 1}, {"gpus": 2, "rate": 1.1}],
    }
    snapshot = decode_snapshot({"cluster": "gpu:1x3", "now": 0, "jobs": [bad, good]})

    def sizes(order: str) -> dict[str, int]:
        plan = make_policy("elasticflow", {"spare_order": order}).decide(snapshot)
        return {snapshot.jobs.ids[item.job]: item.gpus for item in plan.assignments or ()}

    assert sizes("least_added") == {"good": 2, "bad": 1}
    assert sizes("artifact") == {"good": 1, "bad": 2}


def test_admission_of_groups_refuses_all_who_arrive_together() -> None:
    jobs = [job("fits", 0, 100, 150, (1,)), job("never", 0, 1000, 150, (1,))]
    assert states(simulate(jobs, "gpu:1x2", "elasticflow")) == {"fits": "completed", "never": "rejected"}
    group = simulate(jobs, "gpu:1x2", "elasticflow", settings={"admission": "group"})
    assert states(group) == {"fits": "rejected", "never": "rejected"}
    off = simulate(jobs, "gpu:1x2", "elasticflow", settings={"admission": "off"})
    assert states(off) == {"fits": "completed", "never": "completed"}


def test_edf_serves_deadlines_in_order_each_as_wide_as_it_may_be() -> None:
    jobs = [job("late", 0, 1000, 9000, (1, 2, 4)), job("soon", 100, 400, 1000, (1, 2))]
    run = simulate(jobs, "gpu:1x4", "edf")
    spans = [(one["job"], one["gpus"]) for one in run.allocations.sort("start", "job").iter_rows(named=True)]
    assert spans[0] == ("late", 4)
    assert set(spans[1:3]) == {("late", 2), ("soon", 2)}


def test_edf_with_admission_keeps_its_promises_and_elasticflow_lets_more_in() -> None:
    admitted = {"edf": 0, "elasticflow": 0}
    for seed in range(2):
        jobs = some_jobs(seed, load=2.0)
        for name in admitted:
            run = simulate(jobs, "gpu:2x8", name, settings={"admission": "single"})
            assert late(run) == [] or name == "edf"
            admitted[name] += run.jobs.filter((pl.col("state") == "completed") & pl.col("deadline").is_not_nan()).height
    assert admitted["elasticflow"] > admitted["edf"]


def test_a_plan_that_cannot_be_made_anew_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """When planning from nothing would leave somebody late, the plans of the last decision go on."""
    from gantline.systems.elasticflow.policies import admission_control as control

    kept = 0
    fresh = control.AdmissionControl._replan

    def counted(self: Any, order: Any) -> None:
        nonlocal kept
        fresh(self, order)
        kept += self.late[order].any() and len(self._plans(order)) == len(order)

    monkeypatch.setattr(control.AdmissionControl, "_replan", counted)
    for seed in range(12):
        assert late(simulate(some_jobs(seed, load=3.0), "gpu:2x8", "elasticflow")) == []
        if kept > 2:
            break
    assert kept > 0


def test_an_overhead_below_zero_is_refused() -> None:
    with pytest.raises(GantlineError, match="'overhead' is '-3'"):
        make_policy("elasticflow", {"overhead": "-3"})
