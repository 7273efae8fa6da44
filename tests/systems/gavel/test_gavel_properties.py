"""What the paper promises of its policies (section 4.4), on any instance hypothesis finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import FEWER
from tests.systems.gavel.feasible import excess

from gantline.systems.gavel.policies.allocation import effective_throughput, isolated
from gantline.systems.gavel.policies.fair_policies import max_min_fairness, normaliser, strategy_proof, water_filling
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.optimised import unit_speed
from gantline.systems.gavel.policies.solving import Solving

EFFICIENT = Solving(tie="efficient")

speed = st.floats(0.1, 10.0).map(lambda value: round(value, 2))


@st.composite
def instances(draw: st.DrawFn, *, gangs: bool = True, types: int | None = None) -> Instance:
    k = types or draw(st.integers(1, 3))
    m = draw(st.integers(2, 6))
    rows = draw(st.lists(st.lists(speed, min_size=k, max_size=k), min_size=m, max_size=m))
    scale = draw(st.lists(st.sampled_from([1, 1, 2]), min_size=m, max_size=m)) if gangs else 1
    capacity = draw(st.lists(st.integers(2, 5), min_size=k, max_size=k))
    return Instance.of(types=[f"t{j}" for j in range(k)], capacity=capacity, throughput=rows, scale=scale)


@given(instances(gangs=False))
def test_sharing_is_worth_it_nobody_is_worse_off_than_on_an_equal_part(instance: Instance) -> None:
    shared = effective_throughput(instance, max_min_fairness(instance))
    alone = effective_throughput(instance, isolated(instance))
    # The normaliser is the mix of the cluster, so an equal part gives every job the same normalised throughput.
    assert (shared >= alone * (1 - 1e-6)).all()


@given(instances())
def test_efficient_shares_leave_no_room_for_anybody(instance: Instance) -> None:
    found = max_min_fairness(instance, EFFICIENT)
    have = effective_throughput(instance, found)
    for job in range(len(instance)):
        # Ask for one percent more for this job while all others keep what they have: no level reaches 1.
        request = have * (1 - 1e-7)
        request[job] *= 1.01
        assert _together(instance, request) < 1.0


def _together(instance: Instance, request: np.ndarray) -> float:  # type: ignore[type-arg]
    """The largest multiple of the requests which all jobs can have at once."""
    from gantline.systems.gavel.policies.program import apart, constraints
    from gantline.systems.gavel.policies.solving import maximise_level

    return maximise_level(constraints(instance, apart(instance)), request).level


@given(instances(types=1), st.integers(2, 3))
def test_with_identical_types_aware_equals_agnostic(instance: Instance, types: int) -> None:
    same = Instance.of(
        types=[f"t{j}" for j in range(types)],
        capacity=np.repeat(instance.capacity, types),
        throughput=np.repeat(instance.throughput, types, axis=1),
        scale=instance.scale,
    )
    aware, agnostic = max_min_fairness(same), max_min_fairness(unit_speed(same))
    assert aware.objective == pytest.approx(agnostic.objective, rel=1e-6)
    assert aware.share == pytest.approx(agnostic.share, abs=1e-4)


@given(instances(), st.sampled_from([0.5, 2.0, 1000.0]))
def test_scaling_all_throughputs_changes_no_share(instance: Instance, factor: float) -> None:
    scaled = replace(instance, throughput=instance.throughput * factor)
    assert max_min_fairness(scaled).share == pytest.approx(max_min_fairness(instance).share, abs=1e-4)


@given(instances(), st.randoms(use_true_random=False))
def test_the_order_of_jobs_does_not_matter(instance: Instance, shuffler: object) -> None:
    order = list(range(len(instance)))
    shuffler.shuffle(order)  # type: ignore[attr-defined]
    turned = instance.subset(np.array(order))
    assert max_min_fairness(turned).share == pytest.approx(max_min_fairness(instance).share[order], abs=1e-4)


@given(instances())
def test_water_filling_is_never_below_max_min_for_the_worst_job_and_wastes_nothing(instance: Instance) -> None:
    filled, level = water_filling(instance), max_min_fairness(instance)
    normal = effective_throughput(instance, filled) / normaliser(instance)
    assert excess(instance, filled) < 1e-9
    assert normal.min() == pytest.approx(level.objective, rel=1e-4)
    have = effective_throughput(instance, filled)
    for job in range(len(instance)):
        request = have * (1 - 1e-6)  # one job's crumbs may be another's feast, so crumbs must be small
        request[job] = have[job] * 1.05
        assert _together(instance, request) < 1.0


@FEWER
@given(instances(gangs=False), st.integers(0, 5), st.lists(speed, min_size=3, max_size=3))
def test_lying_about_throughputs_does_not_pay_under_the_discount(instance: Instance, liar: int, lie: list[float]) -> None:
    liar %= len(instance)
    honest, discount = strategy_proof(instance)
    claimed = instance.throughput.copy()
    claimed[liar] = lie[: len(instance.types)]
    lied, _ = strategy_proof(replace(instance, throughput=claimed))
    truth = instance.throughput[liar] @ honest.share[liar]
    gain = instance.throughput[liar] @ lied.share[liar]
    assert gain <= truth * (1 + 2e-3)
    assert (discount <= 1.0).all()
    assert (discount > 1 / np.e - 1e-3).all()  # the mechanism never takes more than the e-th part (Cole et al., theorem 3)


def test_floors_that_rounding_puts_out_of_reach_do_not_freeze_everybody() -> None:
    """Jobs 2 and 4 meet on the second type; job 3 can go on to run all the time. Once it was left at 0.93."""
    throughput = np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 0.5], [1.0, 3.0, 1.0], [1.0, 1.0, 1.0], [1.0, 2.0, 0.5]])
    instance = Instance.of(types=["t0", "t1", "t2"], capacity=[3, 2, 2], throughput=throughput, scale=[1, 1, 1, 2, 2])
    assert effective_throughput(instance, water_filling(instance))[3] == pytest.approx(1.0, rel=1e-5)
