"""A parameter that is set changes a run, or the run is refused: of every order, in every regime that the engine runs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from tests.engine.imitations.test_scope import other_value
from tests.records.worlds import Job, some_jobs

from gantline.core.errors import RefusedError
from gantline.engine.imitations.registry import imitated_regimes
from gantline.engine.regime import regime_names
from gantline.policies.registry import find_policy, policy_names
from gantline.simulator.simulate import simulate

REGIMES = [name for name in regime_names() if name not in imitated_regimes()]
ORDERS = [name for name in policy_names() if find_policy(name).ranks and name != "synthesizer"]
WORLDS: list[tuple[list[Job], str]] = [(some_jobs(5, 40, longest=4000), "4x4"), (some_jobs(1, 40, gap=200), "2x4")]
OTHER: dict[str, Any] = {"by": "queue", "half_life": 50.0, "promote": 2.0, "limits": (60.0,)}
#: what a parameter is told beside: on its own it has nothing to act on
BESIDE: dict[str, dict[str, Any]] = {"sample": {"gittins": True}}


def run(policy: str, settings: dict[str, Any], regime: str, world: tuple[list[Job], str]) -> str:
    return str(simulate(*world, policy, settings=settings, regime=regime).summary["log_hash"])


def refusal(policy: str, settings: dict[str, Any], regime: str) -> str:
    """In what words the run is refused; empty: it is not."""
    try:
        run(policy, settings, regime, WORLDS[0])
    except RefusedError as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("policy", [name for name in ORDERS if fields(find_policy(name))])
def test_every_parameter_changes_a_run_or_is_refused(policy: str, regime: str) -> None:
    for item in fields(find_policy(policy)):
        value = OTHER.get(item.name) or (regime == "blox" and item.name == "compat" and "none") or other_value(policy, item)
        beside = BESIDE.get(item.name, {})
        told = refusal(policy, beside | {item.name: value}, regime)
        if told:
            assert any(f"'{name}'" in told for name in (item.name, *beside))
            continue
        acts = any(run(policy, beside | {item.name: value}, regime, world) != run(policy, beside, regime, world) for world in WORLDS)
        assert acts, f"{policy} in regime {regime}: {item.name}={value} says nothing"


@pytest.mark.parametrize(
    ("policy", "settings"),
    [("tiresias", {one: value}) for one, value in (("limits", (60.0,)), ("service", "time"), ("gittins", True), ("promote", 2.0))]
    + [("fair-share", {"preempt": False}), ("fifo", {"backfill": "easy"})],
)
def test_blox_refuses_what_it_does_not_read(policy: str, settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(RefusedError, match=rf"--regime blox.*'{name}' of policy '{policy}' says nothing.*leave {name} out"):
        run(policy, settings, "blox", WORLDS[0])
    assert run(policy, settings, "default", WORLDS[0])


def test_what_nothing_reads_beside_the_others_is_refused_in_the_default_too() -> None:
    for settings in ({"sample": (1.0,)}, {"interference": 0.5}, {"compat": "blox", "limits": (60.0,)}):
        with pytest.raises(RefusedError, match="says nothing"):
            run("tiresias", settings, "default", WORLDS[0])
    assert run("tiresias", {"compat": "none", "limits": (60.0,)}, "blox", WORLDS[0])


def test_a_policy_of_a_portfolio_is_refused_what_it_does_not_read() -> None:
    member = {"portfolio": ("las", "fair-share(preempt=false)")}
    with pytest.raises(RefusedError, match=r"--regime blox.*'preempt' of policy 'fair-share' says nothing"):
        run("synthesizer", member, "blox", WORLDS[0])
    assert run("synthesizer", member, "default", WORLDS[0])


@pytest.mark.parametrize("regime", REGIMES)
def test_what_policies_that_assign_are_told_acts_in_every_regime(regime: str) -> None:
    with pytest.raises(RefusedError, match="'sigma' of policy 'synthesizer' says nothing"):
        run("synthesizer", {"sigma": 3.0}, regime, WORLDS[0])
    for policy, name, value in (
        ("gandiva", "slice", 1200.0),
        ("sharing", "order", "las"),
        ("equal-share", "layout", "packed"),
        ("voda.tiresias", "limit", 7200.0),
    ):
        assert any(run(policy, {name: value}, regime, world) != run(policy, {}, regime, world) for world in WORLDS), (policy, name)
