"""A decision in one call is the decision that is made step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.systems.allox.hybrid import some_jobs

from gantline.core.plan import Plan
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate
from gantline.systems.allox.policies import policy as allox_policy
from gantline.systems.allox.policies.at_once import Answer, answer_at_once
from gantline.systems.allox.policies.policy import AlloX

CLUSTERS = (
    "gpu:2x1/2c/64g,cpu:2x0/20c/64g",
    "gpu:3x2/4c/6g,cpu:2x0/45c/12g",  # memory lasts for one more job, but not on one node
    "gpu:2x2/24c/64g,slow:1x2/4c/64g",  # cores beside GPUs, and no job lists the other type
)


@dataclass(frozen=True)
class Both(AlloX):
    """AlloX that decides in both ways."""

    seen: ClassVar[list[tuple[Any, Any]]] = []

    def decide(self, snapshot: Snapshot) -> Plan:
        plan = super().decide(snapshot)
        self.seen.append((told(plan), told(self._step_by_step(snapshot))))
        return plan


def told(plan: Plan) -> tuple[Any, ...]:
    assert plan.assignments is not None
    return plan.assignments.job.tolist(), plan.assignments.column("option").tolist(), plan.valid_until


@settings(max_examples=settings().max_examples // 3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 999),
    spec=st.sampled_from(CLUSTERS),
    span=st.sampled_from([100.0, 2000.0]),
    alpha=st.sampled_from([0.1, 0.5, 1.0]),
    age=st.sampled_from([np.inf, 150.0]),
    weights=st.sampled_from([(), ("user1=3",)]),
    estimates=st.sampled_from(["oracle", "declared"]),
    gangs=st.sets(st.integers(0, 13), max_size=6),
    patience=st.sampled_from([0.0, 100.0, 1800.0]),
    fill=st.booleans(),
)
def test_both_ways_say_the_same_to_the_same_question(
    monkeypatch: pytest.MonkeyPatch, seed: int, spec: str, span: float, alpha: float, age: float, weights: tuple[str, ...],
    estimates: str, gangs: set[int], patience: float, fill: bool,
) -> None:  # fmt: skip
    quick = []

    def count(*given: Any) -> Answer | None:
        found = answer_at_once(*given)
        quick.append(found is not None)
        return found

    monkeypatch.setattr(allox_policy, "_WORTH_KEEPING", 2)
    monkeypatch.setattr(allox_policy, "answer_at_once", count)
    rng, jobs = np.random.default_rng(seed), some_jobs(seed, 14, span=span)
    for one in jobs:
        one["options"] = one["options"].replace("cpu:0", "gpu:0") if "cpu" not in spec else one["options"]
        one |= {f"{kind}_err": float(rng.uniform(-0.5, 0.5)) for kind in ("gpu", "cpu", "slow") if kind in spec}
    for gang in gangs:
        jobs[gang] |= {"gpus": 2, "options": "gpu:2/2/2=80"}
    Both.seen.clear()
    run = simulate(jobs, spec, Both(alpha=alpha, age=age, weights=weights, patience=patience, fill=fill), estimates=estimates)
    assert not run.incidents
    assert Both.seen
    assert all(one == other for one, other in Both.seen)
    assert any(quick)
