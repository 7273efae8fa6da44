"""Single decisions of the artifact: every recorded objective to 1e-4, every allocation feasible and as good.

Objective values are unique, allocations of degenerate programs are not; so shares are compared only where the policy
uses no solver or the reference says that the answer is unique.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.systems.gavel.feasible import excess

from gantline.systems.gavel.policies.allocation import Allocation, effective_throughput, isolated, proportional
from gantline.systems.gavel.policies.fair_policies import max_min_fairness, normaliser, strategy_proof, water_filling
from gantline.systems.gavel.policies.finish_policies import finish_time_fairness, makespan
from gantline.systems.gavel.policies.instance import Entity, Instance
from gantline.systems.gavel.policies.optimised import speed_of, unit_speed
from gantline.systems.gavel.policies.plain_policies import allox, fifo_artifact, gandiva
from gantline.systems.gavel.policies.solving import ARTIFACT
from gantline.systems.gavel.policies.sum_policies import max_throughput_per_cost

FILE = Path(__file__).parents[3].parent / "shared/reference/gavel/reference/policy_golden_values.json"
CASES: list[dict[str, Any]] = json.loads(FILE.read_text()) if FILE.exists() else []
LIKE = ARTIFACT

pytestmark = pytest.mark.skipif(not CASES, reason=f"the artifact's recorded decisions are not at {FILE}")


def cases(*policies: str) -> Any:
    chosen = [case for case in CASES if case["policy"].split("(")[0] in policies]
    ids = [f"{number}-{case['case']}" for number, case in enumerate(chosen)]
    return pytest.mark.parametrize("case", chosen, ids=ids)


def question(case: dict[str, Any], **changes: Any) -> Instance:
    """The recorded inputs as an instance; types in the artifact's (alphabetical) order."""
    inputs = case["inputs"]
    types = sorted(inputs["cluster"])
    rows = inputs["throughputs"]
    jobs = [job for job in rows if "+" not in job]

    def column(name: str, default: float) -> list[float]:
        return [inputs.get(name, {}).get(job, default) for job in jobs]

    pairs = None
    together = [row for row in rows if "+" in row]
    if together:
        members = [[jobs.index(member) for member in row.split("+")] for row in together]
        pairs = (members, [[[rows[row][t][side] for t in types] for side in (0, 1)] for row in together])
    costs = inputs.get("costs") or dict.fromkeys(types, 1.0)
    names = list(inputs.get("entity_weights", {}))
    given: dict[str, Any] = {
        "types": types,
        "capacity": [inputs["cluster"][t] for t in types],
        "jobs": [int(job) for job in jobs],
        "throughput": [[rows[job][t] for t in types] for job in jobs],
        "scale": column("scale_factors", 1),
        "weight": column("priority_weights", 1),
        "pairs": pairs,
        "steps": column("steps_remaining", 0),
        "elapsed": column("times_since_start", 0),
        "price": [costs[t] for t in types],
        "deadline": column("SLOs", np.inf),
        "entities": [Entity(name, inputs["entity_weights"][name], inputs["reweighting"][name]) for name in names],
        "entity": [next(i for i, n in enumerate(names) if int(job) in inputs["entity_to_job"][n]) for job in jobs] if names else None,
    }
    return Instance.of(**(given | changes))


def recorded(case: dict[str, Any], instance: Instance) -> Allocation:
    """The artifact's shares."""
    table = case["allocation"]
    share = [[table[str(job)][t] for t in instance.types] for job in instance.jobs]
    paired = [] if instance.pairs is None else [[table["0+1"][t] for t in instance.types]]
    return Allocation(np.array(share), np.array(paired).reshape(-1, len(instance.types)))


def objective(case: dict[str, Any]) -> float:
    return float(case["solves"][-1]["objective"])


@cases("isolated")
def test_isolated_shares_are_equal(case: dict[str, Any]) -> None:
    instance = question(case)
    assert isolated(instance).share == pytest.approx(recorded(case, instance).share, abs=1e-5)


@cases("proportional")
def test_proportional_shares_are_equal(case: dict[str, Any]) -> None:
    instance = question(case)
    assert proportional(instance).share == pytest.approx(recorded(case, instance).share, abs=1e-5)


@cases("max_min_fairness", "max_min_fairness_perf", "max_min_fairness_packed")
def test_max_min_fairness(case: dict[str, Any]) -> None:
    instance = question(case)
    seen = unit_speed(instance) if case["policy"] == "max_min_fairness" else instance
    found = max_min_fairness(seen, LIKE)
    assert found.objective == pytest.approx(objective(case), abs=1e-4)
    assert excess(seen, found) < 1e-9
    assert (effective_throughput(seen, found) / normaliser(seen)).min() == pytest.approx(objective(case), abs=1e-4)


@cases("finish_time_fairness", "finish_time_fairness_perf", "finish_time_fairness_packed")
def test_finish_time_fairness(case: dict[str, Any]) -> None:
    instance = question(case)
    if case["policy"] == "finish_time_fairness":
        instance = speed_of(instance, "v100")
    memory = None
    if case["inputs"]["steps_remaining"]["0"] == 200:  # the second of two successive calls
        _, memory = finish_time_fairness(replace(instance, steps=np.array([300.0, 500.0])), None, LIKE)
    found, _ = finish_time_fairness(instance, memory, LIKE)
    assert found.objective == pytest.approx(objective(case), abs=1e-4)
    assert excess(instance, found) < 1e-9


@cases("min_total_duration", "min_total_duration_perf", "min_total_duration_packed")
def test_makespan(case: dict[str, Any]) -> None:
    instance = question(case)
    (steps,) = instance.needing("steps")
    theirs = float((steps / effective_throughput(instance, recorded(case, instance))).max())
    seen = speed_of(instance, "v100") if case["policy"] == "min_total_duration" else instance
    like, exact = makespan(seen, LIKE, bisection=True), makespan(seen)
    assert excess(seen, like) < 1e-9
    assert exact.objective <= like.objective <= 1.05 * exact.objective
    assert (effective_throughput(seen, like) >= steps / like.objective * (1 - 1e-6)).all()
    if seen is instance:
        assert exact.objective <= theirs * (1 + 1e-6)
        assert theirs <= like.objective * (1 + 1e-4)  # the artifact stops at the same horizon
    assert like.share == pytest.approx(recorded(case, instance).share, abs=0.03)  # and ends near the centre as well


@cases(
    "max_sum_throughput_normalized_by_cost_perf",
    "max_sum_throughput_normalized_by_cost_perf_SLOs",
    "max_sum_throughput_normalized_by_cost_packed_SLOs",
)
def test_throughput_per_cost(case: dict[str, Any]) -> None:
    instance = question(case)
    found = max_throughput_per_cost(instance, LIKE, deadlines="SLOs" in case["policy"])
    assert found.objective == pytest.approx(objective(case), abs=1e-4)
    assert found.missing == ()
    assert excess(instance, found) < 1e-9


@cases("max_min_fairness_water_filling_perf", "max_min_fairness_water_filling_packed")
def test_water_filling_gives_every_job_the_same_throughput(case: dict[str, Any]) -> None:
    instance = question(case)
    found = water_filling(instance, LIKE)
    expected = [case["effective_throughput"][str(job)] for job in instance.jobs]
    assert effective_throughput(instance, found) == pytest.approx(expected, abs=1e-4)
    assert excess(instance, found) < 1e-9


@cases("max_min_fairness_strategy_proof")
def test_strategy_proof_shares(case: dict[str, Any]) -> None:
    instance = question(case)
    found, discount = strategy_proof(instance, LIKE)
    assert found.objective == pytest.approx(objective(case), abs=1e-4)
    assert discount == pytest.approx(case["discount_factors"], abs=1e-4)
    assert found.share == pytest.approx(recorded(case, instance).share, abs=2e-4)


@cases("allox")
def test_allox_matches_the_same_jobs_to_the_same_types(case: dict[str, Any]) -> None:
    instance = question(case)
    assert allox(instance)[0].share.tolist() == recorded(case, instance).share.tolist()


@cases("gandiva")
def test_gandiva_packs_the_same_jobs(case: dict[str, Any]) -> None:
    instance = question(case)
    memory = None
    for _ in range(case["inputs"]["call"]):
        found, memory = gandiva(instance, memory, case["inputs"]["seed"])
    assert found.share == pytest.approx(recorded(case, instance).share, abs=1e-5)
    assert found.paired == pytest.approx(recorded(case, instance).paired, abs=1e-5)


@cases("fifo")
def test_the_defect_of_agnostic_fifo_can_be_had(case: dict[str, Any]) -> None:
    instance = question(case)
    found, _ = fifo_artifact(instance, None, case["inputs"]["seed"])
    assert found.share.tolist() == recorded(case, instance).share.tolist()


def test_no_recorded_policy_is_left_out() -> None:
    tested: set[str] = set()
    for name, value in globals().items():
        if name.startswith("test_") and hasattr(value, "pytestmark"):
            tested |= _policies(value)
    assert {case["policy"] for case in CASES} == tested


def _policies(test: Callable[..., None]) -> set[str]:
    marks: Any = test.pytestmark  # type: ignore[attr-defined]
    return {case["policy"] for mark in marks if mark.name == "parametrize" for case in mark.args[1]}
