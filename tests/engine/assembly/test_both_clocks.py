"""What simulation assembles is what live assembles: policy, costs, prices, bounds, regime, placement, admission; for every policy."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import GantlineError
from gantline.core.inputs import Use
from gantline.engine.assembly.from_trace import assemble
from gantline.engine.assembly.run_rules import RunRules
from gantline.engine.assembly.spec import OPTIONS, RunSpec
from gantline.engine.engine import Engine
from gantline.live.scheduler.setup import ONLY_SIMULATED, Setup, make_loop
from gantline.models.model import PerformanceModel
from gantline.policies.registry import make_policy, policy_names
from gantline.traces.trace import Trace

CLUSTER = parse_cluster("v100:2x4")
EVERYTHING: dict[str, Any] = {
    "placement": "consolidated", "admission": "quota:user=3", "regime": "blox", "round": 60.0, "costs": "start=5,resume=30,move=20",
    "min_run": 120.0, "grace": 30.0, "turn": 90.0, "prices": "v100=0.74", "seed": 7, "queues": "research=4",
}  # fmt: skip
FOR_ORDERS: dict[str, Any] = {"victims": "least-lost"}  # refused with policies that assign, and with regimes that say what is stopped


class Knows(PerformanceModel):
    """As listed, so that policies which need curves or pairs are let in."""


class Stopped:
    def now(self) -> float:
        return 0.0


def simulated(policy: str, options: dict[str, Any]) -> tuple[Engine, Any]:
    spec = RunSpec(**options, performance=Knows())
    rules = RunRules.of(spec, CLUSTER)
    jobs = Trace.of([{"job": "a", "arrival": 0.0, "duration": 100.0, "gpus": 1, "deadline": 1000.0}])
    run = assemble(jobs, CLUSTER, make_policy(policy), spec, rules)
    return run.engine, rules.admission


def live(policy: str, options: dict[str, Any]) -> tuple[Engine, Any]:
    loop = make_loop(Setup(policy, **options), None, CLUSTER, None, Stopped())
    return loop.engine, loop.loop.admission


def parts(made: tuple[Engine, Any]) -> dict[str, Any]:
    engine, admission = made
    state, snapshot = engine.state, engine.state.snapshot()
    told = {
        "queues": dict(snapshot.queue_tree),
        "facts": snapshot.facts,
        "regime": snapshot.regime,
        "round": snapshot.round,
        "seed": snapshot.seed,
        "stops": (engine.preemption_grace.grace, engine.preemption_grace.turn),
    }
    return told | {"policy": engine.policy, "way": state.regime, "placement": state.placement, "admission": admission}


def refusal(make: Any, *given: Any) -> str:
    try:
        make(*given)
    except GantlineError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["nothing said", "everything said"])
@pytest.mark.parametrize("policy", policy_names())
def test_both_clocks_assemble_the_same_for_every_policy(policy: str, options: dict[str, Any]) -> None:
    if no := refusal(simulated, policy, options):
        assert refusal(live, policy, options) == no or "a service has no --carbon" in refusal(live, policy, options)
        return
    assert parts(simulated(policy, options)) == parts(live(policy, options))


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in ONLY_SIMULATED])
def test_every_option_acts_on_both_clocks(name: str) -> None:
    """One that a live scheduler took and ignored would leave it as it is without."""
    options, policy = {name: (EVERYTHING | FOR_ORDERS)[name]}, "las" if name in FOR_ORDERS else "elasticflow"
    assert parts(live(policy, options)) == parts(simulated(policy, options))
    assert parts(live(policy, options)) != parts(live(policy, {}))


def test_an_option_is_one_of_both_clocks_or_it_is_said_why_not() -> None:
    assert {item.name for item in fields(Setup)} & (OPTIONS.keys() - ONLY_SIMULATED.keys()) == set(EVERYTHING | FOR_ORDERS)
    assert OPTIONS.keys() == EVERYTHING.keys() | FOR_ORDERS.keys() | ONLY_SIMULATED.keys()


@pytest.mark.parametrize("make", [simulated, live], ids=["simulated", "live"])
def test_victims_are_chosen_only_where_there_is_a_choice(make: Any) -> None:
    assert refusal(make, "las", FOR_ORDERS) == ""
    assert "leave no choice" in refusal(make, "elasticflow", FOR_ORDERS)


@pytest.mark.parametrize("policy", ["tiresias", "elasticflow", "gavel.max_sum_throughput_normalized_by_cost_perf"])
@pytest.mark.parametrize("make", [simulated, live], ids=["simulated", "live"])
def test_a_policy_that_is_switched_to_is_the_one_that_would_have_begun(make: Any, policy: str) -> None:
    engine, _ = make("fifo", EVERYTHING)
    engine.apply(Use(0.0, policy, {}))
    assert engine.policy == make(policy, EVERYTHING)[0].policy


@pytest.mark.parametrize(
    ("policy", "options", "words"),
    [
        ("gaia", {}, "policy 'gaia' needs carbon.*a service has no --carbon: .*simulations"),
        ("fifo", {"placement": "pal"}, "placement 'pal' looks at the speeds of devices .a service has no --device-speeds"),
    ],
)
def test_a_refusal_offers_no_option_that_a_service_lacks(policy: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(GantlineError, match=words):
        live(policy, options)
