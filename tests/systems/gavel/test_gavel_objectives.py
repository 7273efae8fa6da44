"""The objectives on random instances: optimal by cvxpy with Clarabel, feasible, and equal with and without kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from tests.systems.gavel.feasible import excess

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.systems.gavel.policies.allocation import Allocation, effective_throughput, isolated_throughput
from gantline.systems.gavel.policies.fair_policies import max_min_fairness, normaliser
from gantline.systems.gavel.policies.finish_policies import finish_time_fairness, last_feasible_probe, makespan
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.solving import ARTIFACT, Solving
from gantline.systems.gavel.policies.sum_policies import max_sum_throughput, max_throughput_per_cost

EFFICIENT = Solving(tie="efficient")
APART = Solving(by_kinds=False)


def model(instance: Instance) -> tuple[cp.Variable, cp.Expression, list[cp.Constraint], cp.Expression]:
    """Section 3.1 written out job by job, independently of the product: shares, throughputs, limits, pair shares."""
    m, k = instance.throughput.shape
    usable = (instance.throughput > 0) & (instance.scale[:, None] <= instance.capacity)
    x = cp.Variable((m, k), nonneg=True)
    throughput = [instance.throughput[i] @ x[i] for i in range(m)]
    time = [cp.sum(x[i]) for i in range(m)]
    devices = [instance.scale @ x[:, j] for j in range(k)]
    limits = [x[~usable] == 0] if not usable.all() else []
    paired: cp.Expression = cp.Constant(np.zeros((1, k)))
    if instance.pairs is not None and len(instance.pairs):
        paired = cp.Variable((len(instance.pairs), k), nonneg=True)
        can = (instance.pairs.throughput > 0).all(axis=1)
        can &= instance.scale[instance.pairs.members[:, :1]] <= instance.capacity
        if not can.all():
            limits.append(paired[~can] == 0)
        for p, members in enumerate(instance.pairs.members):
            for side, i in enumerate(members):
                throughput[i] = throughput[i] + instance.pairs.throughput[p, side] @ paired[p]
                time[i] = time[i] + cp.sum(paired[p])
            for j in range(k):
                devices[j] = devices[j] + instance.scale[members[0]] * paired[p, j]
    limits += [t <= 1 for t in time] + [d <= n for d, n in zip(devices, instance.capacity)]
    return x, cp.hstack(throughput), limits, paired


def best(goal: cp.Maximize | cp.Minimize, limits: list[cp.Constraint]) -> float:
    return float(cp.Problem(goal, limits).solve(solver="CLARABEL"))


def fitting(instance: Instance) -> np.ndarray:  # type: ignore[type-arg]
    return np.flatnonzero(((instance.throughput > 0) & (instance.scale[:, None] <= instance.capacity)).any(axis=1))


def test_max_min_fairness_is_optimal(instance: Instance) -> None:
    fit, normal = fitting(instance), normaliser(instance)
    _, throughput, limits, _ = model(instance)
    expected = best(cp.Maximize(cp.min(cp.multiply(1 / normal[fit], throughput[fit]))), limits)
    found = max_min_fairness(instance)
    assert found.objective == pytest.approx(expected, rel=1e-5)
    assert (effective_throughput(instance, found) / normal)[fit].min() == pytest.approx(expected, rel=1e-5)


def test_finish_time_fairness_is_optimal(instance: Instance) -> None:
    fit = fitting(instance)
    steps, elapsed = instance.needing("steps", "elapsed")
    total = steps / isolated_throughput(instance)
    _, throughput, limits, _ = model(instance)
    ratio = cp.multiply(1 / total, elapsed)[fit] + cp.multiply((steps / total)[fit], cp.inv_pos(throughput[fit]))
    expected = best(cp.Minimize(cp.max(ratio)), limits)
    found, _ = finish_time_fairness(instance)
    assert found.objective == pytest.approx(expected, rel=1e-4)
    reached = (elapsed + steps / np.maximum(effective_throughput(instance, found), 1e-12)) / total
    assert reached[fit].max() == pytest.approx(expected, rel=1e-4)


def test_makespan_is_optimal(instance: Instance) -> None:
    fit = fitting(instance)
    (steps,) = instance.needing("steps")
    _, throughput, limits, _ = model(instance)
    speed = best(cp.Maximize(cp.min(cp.multiply(1 / steps[fit], throughput[fit]))), limits)
    found = makespan(instance)
    assert found.objective == pytest.approx(1 / speed, rel=1e-5)
    assert (steps[fit] / effective_throughput(instance, found)[fit]).max() == pytest.approx(1 / speed, rel=1e-5)


def test_sum_of_throughput_is_optimal(instance: Instance) -> None:
    _, throughput, limits, _ = model(instance)
    found = max_sum_throughput(instance)
    assert found.objective == pytest.approx(best(cp.Maximize(cp.sum(throughput)), limits), rel=1e-6)
    assert effective_throughput(instance, found).sum() == pytest.approx(found.objective, rel=1e-6)


POLICIES: dict[str, Callable[[Instance, Solving], Allocation]] = {
    "max_min_fairness": max_min_fairness,
    "finish_time_fairness": lambda instance, solving: finish_time_fairness(instance, None, solving)[0],
    "makespan": makespan,
    "makespan by bisection": lambda instance, solving: makespan(instance, solving, bisection=True),
    "max_sum_throughput": max_sum_throughput,
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))
@pytest.mark.parametrize("solving", [Solving(), EFFICIENT, APART, ARTIFACT], ids=["central", "efficient", "apart", "artifact"])
def test_every_answer_keeps_the_limits(instance: Instance, policy: Callable[[Instance, Solving], Allocation], solving: Solving) -> None:
    found = policy(instance, solving)
    assert found.status == "optimal"
    assert excess(instance, found) < 1e-9


def test_efficient_ties_keep_the_objective_and_waste_nothing(instance: Instance) -> None:
    central, efficient = max_min_fairness(instance), max_min_fairness(instance, EFFICIENT)
    low = effective_throughput(instance, central) * (1 - 1e-6)
    high = effective_throughput(instance, efficient)
    assert efficient.objective == pytest.approx(central.objective, rel=1e-6)
    assert (high >= low).all()
    # Nobody can have more while all others keep theirs.
    _, throughput, limits, _ = model(instance)
    more = best(cp.Maximize(cp.sum(throughput)), [*limits, throughput >= high * (1 - 1e-9)])
    assert more == pytest.approx(high.sum(), rel=1e-4)


def priced(deadline: Floats | list[float], **changes: object) -> Instance:
    given: dict[str, object] = {
        "types": ("slow", "fast"),
        "capacity": [1, 1],
        "jobs": ["a", "b"],
        "throughput": [[1.0, 2.0], [1.0, 2.0]],
        "steps": [100.0, 100.0],
        "price": [1.0, 4.0],
        "deadline": deadline,
    }
    return Instance.of(**(given | changes))  # type: ignore[arg-type]


def test_without_deadlines_cheap_devices_are_best() -> None:
    found = max_throughput_per_cost(priced([np.inf, np.inf]), deadlines=True)
    assert found.objective == pytest.approx(1.5, abs=1e-6)  # one job on each type: 1/1 + 2/4
    assert found.missing == ()


def test_a_deadline_buys_the_fast_device() -> None:
    found = max_throughput_per_cost(priced([50.0, np.inf]), deadlines=True)
    assert found.share[0] == pytest.approx([0.0, 1.0], abs=1e-4)
    assert found.missing == ()


def test_of_two_deadlines_that_cannot_both_be_met_one_is_kept_and_the_other_named() -> None:
    instance = priced([50.0, 50.0])
    found = max_throughput_per_cost(instance, deadlines=True)
    assert len(found.missing) == 1
    assert effective_throughput(instance, found).max() == pytest.approx(2.0, abs=1e-4)
    assert max_throughput_per_cost(instance, deadlines=True, drop="all").missing != ()


def test_impossible_and_past_deadlines_are_named_and_the_rest_kept() -> None:
    instance = priced([10.0, 90.0, -5.0], throughput=[[1, 2]] * 3, steps=[100, 100, 100], jobs=["a", "b", "c"])
    found = max_throughput_per_cost(instance, deadlines=True)
    assert found.missing == ("a", "c")
    assert effective_throughput(instance, found)[1] >= 100 / 90 - 1e-5


def test_prices_are_asked_for() -> None:
    with pytest.raises(UsageError, match="prices are not given"):
        max_throughput_per_cost(replace(priced([np.inf, np.inf]), price=None))


def test_the_bisection_walks_as_the_artifact_does() -> None:
    assert last_feasible_probe(10.0) <= 105.0  # below the window everything is feasible
    probe = last_feasible_probe(2.5e6)  # beyond it the window is moved up
    assert 2.5e6 <= probe <= 1.05 * 2.5e6


def test_a_job_that_fits_nowhere_gets_nothing_and_hinders_nobody() -> None:
    instance = Instance.of(types=("a",), capacity=[2], throughput=[[1.0], [1.0]], scale=[1, 4], steps=1e4, elapsed=0)
    for policy in POLICIES.values():
        found = policy(instance, Solving())
        assert found.share[1].tolist() == [0.0]
        assert found.share[0] == pytest.approx([1.0], abs=0.06)


def test_a_spent_budget_falls_back_and_says_so() -> None:
    instance = Instance.of(types="kpv", capacity=[3, 2, 1], throughput=[[0.5, 1, 2], [1, 2, 3]], steps=9, elapsed=0)
    short = Solving(budget=1, pivots=1_000)
    second = max_min_fairness(instance, short)  # simplex is asked
    assert second.objective == pytest.approx(1.548387, abs=1e-5)
    fallback, _ = finish_time_fairness(instance, None, short)
    assert "isolated shares, because the solver stopped after 1 steps" in fallback.status
    assert fallback.share == pytest.approx(np.tile([1 / 2, 1 / 3, 1 / 6], (2, 1)))


@pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))
@pytest.mark.parametrize("capacity", [[2, 2], [0, 0]], ids=["no jobs", "no devices"])
def test_nothing_to_do_is_no_mistake(policy: Callable[[Instance, Solving], Allocation], capacity: list[int]) -> None:
    jobs = 0 if capacity[0] else 2
    instance = Instance.of(types="ab", capacity=capacity, throughput=np.ones((jobs, 2)), steps=np.ones(jobs), elapsed=np.zeros(jobs))
    found = policy(instance, Solving())
    assert found.status == "optimal"
    assert found.share.tolist() == np.zeros((jobs, 2)).tolist()
