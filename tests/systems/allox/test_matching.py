"""The matching reaches the least total completion time, and names its choice among equals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.oracles.scheduling import first_of_the_best, least_total
from tests.systems.allox import reference
from tests.systems.allox.from_scratch import match_from_scratch
from tests.systems.allox.in_seconds import match

from gantline.core.errors import UsageError
from gantline.systems.allox.policies.matching import match as match_ticks


def test_only_heads_of_idle_machines_start() -> None:
    found, _ = match(np.array([[5.0], [7.0], [9.0]]), np.array([0, 0]), np.array([0.0, 4.0]))
    assert found.starting(idle=np.array([True, False])).tolist() == [0]
    assert found.starting(idle=np.array([False, False])).tolist() == []


def test_within_a_class_the_earliest_arrival_is_served_first() -> None:
    found, _ = match(np.full((3, 1), 10.0), np.zeros(3, int), np.array([20.0, 0.0, 10.0]))
    assert found.begin.tolist() == [0.0, 10.0, 10.0]
    assert found.machine.tolist() == [1, 1, 2]


@pytest.mark.parametrize("seed", range(15))
def test_matching_equals_brute_force_up_to_seven_jobs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    machines = int(rng.integers(1, 4))
    types = int(rng.integers(1, 4))
    kinds = rng.integers(0, types, machines)
    jobs = int(rng.integers(1, 8)) if machines < 3 else int(rng.integers(1, 6))
    times = rng.uniform(0.1, 60.0, (jobs, types)) if seed % 2 else rng.integers(1, 9, (jobs, types)).astype(float)
    release = rng.choice([0.0, 3.0, 17.5, 40.0], machines)
    found, _ = match(times, kinds, release)
    assert found.total == pytest.approx(least_total(times, kinds.tolist(), release), abs=1e-4)
    ends = found.begin + times[np.arange(jobs), kinds[found.machine]]
    assert ends.sum() == pytest.approx(found.total, abs=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_among_equals_the_stated_rule_decides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = np.sort(rng.integers(0, 2, 3))
    times = rng.integers(1, 4, (4, 2)).astype(float)
    release = rng.integers(0, 3, 3).astype(float)
    found, _ = match(times, kinds, release)
    placed = [(int(kinds[m]), int(k)) for m, k in zip(found.machine, found.position)]
    assert placed == first_of_the_best(times, kinds.tolist(), release)


def test_offline_optima_of_the_original_are_reached() -> None:
    cases = json.loads(reference.path("allox_offline_cases.json").read_text())
    assert len(cases) == 20
    for case in cases:
        times = np.array(case["processing_time_job_by_machine"], dtype=float)
        release, machines = np.array(case["available_at"], dtype=float), times.shape[1]
        found, _ = match(times, np.arange(machines), release)
        least = found.total - sum(case["arrival"])
        assert least == pytest.approx(case["min_total_completion_time"]), case["id"]


def test_scipy_over_all_slots_agrees_at_a_larger_size() -> None:
    rng = np.random.default_rng(5)
    kinds = rng.integers(0, 3, 12)
    times, release = rng.lognormal(4.0, 1.0, (25, 3)), rng.exponential(50.0, 12)
    found, _ = match(times, kinds, release)
    assert found.total == pytest.approx(match_from_scratch(times, kinds, release)[0], abs=1e-3)


def test_types_a_job_cannot_use_are_left_out() -> None:
    times = np.array([[np.inf, 50.0], [3.0, np.nan]])
    found, _ = match(times, np.array([0, 1]), np.array([0.0, 0.0]))
    assert found.machine.tolist() == [1, 0]


def test_no_jobs_match_nothing() -> None:
    found, state = match(np.empty((0, 2)), np.array([0, 1]), np.array([0.0, 0.0]))
    assert found.total == 0.0
    assert found.machine.size == 0
    again, _ = match(np.array([[1.0, 2.0]]), np.array([0, 1]), np.array([0.0, 0.0]), state=state)
    assert again.total == 1.0


def test_a_job_that_can_run_on_none_of_the_machines_has_no_matching() -> None:
    ticks = np.array([[1, -1], [1, 4]])
    assert match_ticks(ticks, np.array([0]), np.array([0]), np.array([True]), np.arange(2), None) is None


def test_mistakes_are_named() -> None:
    one_cpu = np.array([0])
    with pytest.raises(UsageError, match="row 1 has a duration of zero or below"):
        match(np.array([[1.0], [0.0]]), one_cpu, np.array([0.0]))
    with pytest.raises(UsageError, match="machine 0 has no release time"):
        match(np.array([[1.0]]), one_cpu, np.array([np.inf]))
    with pytest.raises(UsageError, match="too long"):
        match(np.array([[1e15]]), one_cpu, np.array([0.0]))
