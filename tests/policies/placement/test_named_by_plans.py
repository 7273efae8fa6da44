"""A ranking may name the placement rule for the gangs that it starts; without a name the run's rule counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.engine.assigning import watched
from tests.jobs import job_row

from gantline.core.plan import Plan
from gantline.core.plan_json import decode_plan, encode_plan
from gantline.core.snapshot import Snapshot
from gantline.engine.drivers.journal import plan_hash
from gantline.policies.order import ShortestRemainingTimeFirst
from gantline.policies.placement.rules import placement_rules
from gantline.simulator.roll_forward import carry_out
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace

JOBS = [
    job_row(f"j{k}", (1, 3, 2, 4, 6)[k % 5], 200.0 + 37.0 * (k % 5), at=30.0 * k, model=model)
    for k, model in enumerate(["vgg16", "resnet50", "alexnet", "vgg19", "googlenet"] * 6)
]
TRACE = Trace.from_records(JOBS)


@dataclass(frozen=True)
class Named(ShortestRemainingTimeFirst):
    """Shortest first, placed by a rule of its own choice."""

    where: str = "consolidated:preferred"

    def decide(self, snapshot: Snapshot) -> Plan:
        plan = super().decide(snapshot)
        assert plan.ranking is not None
        return replace(plan, ranking=replace(plan.ranking, placement=self.where))


@dataclass(frozen=True)
class Alternating(ShortestRemainingTimeFirst):
    """One decision by one rule, the next by the other."""

    def decide(self, snapshot: Snapshot) -> Plan:
        plan = super().decide(snapshot)
        assert plan.ranking is not None
        return replace(plan, ranking=replace(plan.ranking, placement="skew:0.1" if snapshot.decision % 2 else None))


def held(run: Run) -> str:
    return run.allocations.select("job", "start", "end", "devices").sort("start", "job").rows().__repr__()


@pytest.mark.parametrize("rule", [*(name for name, rule in placement_rules().items() if not rule.picks), "skew:0.65", "packed-sticky"])
def test_a_plan_that_names_a_rule_is_placed_as_a_run_with_that_rule(rule: str) -> None:
    ours = simulate(TRACE, "3x4", Named(where=rule), round=45.0)
    theirs = simulate(TRACE, "3x4", "srtf", placement=rule, round=45.0)
    assert held(ours) == held(theirs)


def test_each_decision_may_name_another_rule() -> None:
    mixed = held(simulate(TRACE, "3x4", Alternating(), placement="consolidated:preferred"))
    assert mixed not in {held(simulate(TRACE, "3x4", "srtf", placement=one)) for one in ("skew:0.1", "consolidated:preferred")}


def test_it_is_written_down_and_read_back() -> None:
    plan = Plan.rank([1.0, 2.0], placement="consolidated")
    again = decode_plan(encode_plan(plan))
    assert again.ranking is not None
    assert again.ranking.placement == "consolidated"
    assert plan_hash(plan) == plan_hash(again) != plan_hash(Plan.rank([1.0, 2.0]))
    assert "placement" not in encode_plan(Plan.rank([1.0]))["ranking"]


def test_what_a_plan_would_do_is_told_with_its_rule() -> None:
    jobs = [job_row("a", 1, 90.0), job_row("b", 2)]
    outcome: list[Any] = []

    def look(snapshot: Snapshot) -> None:
        outcome.append([one.devices for one in carry_out(snapshot, Plan.rank([0.0, 1.0], placement="consolidated"))])

    simulate(jobs, "2x2", watched(ShortestRemainingTimeFirst, look))
    assert outcome[0] == [(0,), (2, 3)]


def test_a_rule_that_does_not_exist_costs_the_turn_and_is_named() -> None:
    run = simulate(TRACE, "3x4", Named(where="consolidatd"), until=500.0)
    assert run.summary["incidents"] > 0
    assert any("no placement 'consolidatd'" in str(one) for one in run.incidents)


def test_a_placement_that_is_no_name_costs_the_turn() -> None:
    wrong: Any = 3
    run = simulate(TRACE, "3x4", Named(where=wrong), until=500.0)
    assert any("the ranking's placement is a int" in str(one) for one in run.incidents)
