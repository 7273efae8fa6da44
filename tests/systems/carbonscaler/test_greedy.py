"""CarbonScaler's greedy plan against every plan there is, and against recorded ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.references import reference

from gantline.systems.carbonscaler.policies import ServerProfile, greedy


def _grams(profile: ServerProfile, plan: tuple[int, ...] | list[int], carbon: list[float]) -> float:
    power = dict(zip(profile.servers, profile.power)) | {0: 0.0}
    return sum(power[size] * level for size, level in zip(plan, carbon))


@given(
    carbon=st.lists(st.integers(1, 50), min_size=1, max_size=4),
    gains=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    share=st.floats(0.05, 1.0),
)
def test_no_other_plan_of_whole_server_slots_emits_less_for_the_work_it_does(carbon: list[int], gains: list[int], share: float) -> None:
    """With work per watt that falls, the plan that the greedy stops at is the cleanest of those that do as much."""
    falling = sorted(gains, reverse=True)
    profile = ServerProfile(
        list(range(1, len(gains) + 1)), np.cumsum(falling).astype(float).tolist(), [float(k + 1) for k in range(len(gains))]
    )
    levels = [float(level) for level in carbon]
    work = share * profile.throughput[-1] * len(levels)

    plan = greedy(profile, work, np.array(levels), np.ones(len(levels)), np.full(len(levels), 99))

    assert plan is not None
    speed = dict(zip(profile.servers, profile.throughput)) | {0: 0.0}
    done = sum(speed[size] for size in plan)
    assert done >= work
    every = product([0, *profile.servers], repeat=len(levels))
    as_much = [other for other in every if sum(speed[size] for size in other) >= done - 1e-9]
    assert _grams(profile, plan, levels) <= min(_grams(profile, other, levels) for other in as_much) + 1e-9


def test_a_deadline_that_is_too_tight_has_no_plan() -> None:
    profile = ServerProfile([1, 2], [1.0, 1.8], [1.0, 2.0])

    assert greedy(profile, 3.7, np.array([5.0, 1.0]), np.ones(2), np.array([2, 2])) is None
    assert greedy(profile, 3.6, np.array([5.0, 1.0]), np.ones(2), np.array([2, 2])) == [2, 2]


def test_servers_that_others_hold_are_not_planned_with() -> None:
    profile = ServerProfile([1, 2], [1.0, 2.0], [1.0, 2.0])

    assert greedy(profile, 2.0, np.array([1.0, 9.0]), np.ones(2), np.array([1, 2])) == [1, 1]


def test_recorded_plans_are_equal() -> None:
    profiles = pl.read_csv(reference("carbon/carbonscaler_profiles.csv"))
    plans = pl.read_csv(reference("carbon/carbonscaler_plans.csv"))

    for plan in plans.iter_rows(named=True):
        series = pl.read_csv(reference(f"carbon/ci_{plan['zone']}_2022.csv.gz"))["lca"].to_numpy()
        carbon = series[plan["first_hour"] : plan["first_hour"] + plan["deadline"]]
        rows = profiles.filter(pl.col("profile") == plan["profile"], pl.col("nodes").is_between(plan["min"], min(8, plan["max"])))
        profile = ServerProfile(rows["nodes"].to_list(), rows["throughput"].to_list(), rows["power_w"].to_list())
        found = greedy(profile, plan["work"], carbon, np.full(len(carbon), 3600.0), np.full(len(carbon), 8))
        assert found == [int(size) for size in plan["schedule"].split()], plan["id"]

    assert len(plans) == 18
