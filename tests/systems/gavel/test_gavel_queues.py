"""Policies without a solver: first in first out, AlloX, Gandiva. Small clusters, whole devices, plain memories."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pytest
from tests.systems.gavel.feasible import excess

from gantline.core.errors import UsageError
from gantline.systems.gavel.policies.allocation import Allocation, devices_used
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.plain_policies import allox, fifo, fifo_artifact, fifo_packed, fifo_perf, gandiva, generator, state_of

SPEEDS = [[0.5, 1, 2], [1, 2, 3], [2, 3, 4], [1, 1, 1]]


def cluster(k80: int, p100: int, v100: int, jobs: int = 4, **changes: object) -> Instance:
    given: dict[str, object] = {
        "types": ("k80", "p100", "v100"),
        "capacity": [k80, p100, v100],
        "throughput": SPEEDS[:jobs],
        "steps": [300, 500, 1000, 500][:jobs],
        "elapsed": 0,
    }
    return Instance.of(**(given | changes))  # type: ignore[arg-type]


def where(allocation: Allocation, instance: Instance) -> list[str]:
    """The type of every job, '' if it waits."""
    return [instance.types[int(row.argmax())] if row.any() else "" for row in allocation.share]


def test_aware_fifo_gives_each_job_the_fastest_type_left() -> None:
    instance = cluster(1, 1, 1)
    assert where(fifo_perf(instance), instance) == ["v100", "p100", "k80", ""]


def test_aware_fifo_does_not_backfill() -> None:
    instance = cluster(1, 1, 2, scale=[1, 4, 1, 1])
    assert where(fifo_perf(instance), instance) == ["v100", "", "", ""]


def test_aware_fifo_drops_a_job_that_can_run_on_no_free_type() -> None:
    instance = cluster(1, 0, 1, throughput=[[0.5, 1, 2], [0, 2, 3], [2, 3, 4], [1, 1, 1]])
    assert where(fifo_perf(instance), instance) == ["v100", "", "k80", ""]


def test_the_defective_fifo_lists_only_types_that_have_a_free_device_when_it_is_called() -> None:
    first = cluster(1, 1, 1, jobs=1)
    _, memory = fifo_artifact(first, None, seed=0)
    assert memory["held"] == [[0, "v100"]]
    later = cluster(1, 1, 1, jobs=2)
    assert where(fifo_artifact(later, memory, seed=0)[0], later) == ["v100", "p100"]  # v100 is full: the last listed type is p100


def packed(rate: float, scale: list[int] | int = 1, jobs: int = 3, capacity: tuple[int, int, int] = (0, 0, 2)) -> Instance:
    members = [[i, j] for i in range(jobs) for j in range(i + 1, jobs)]
    speeds = np.array(SPEEDS[:jobs], dtype=float)
    rates = np.array([[speeds[i] * rate, speeds[j] * rate] for i, j in members])
    sizes = np.broadcast_to(scale, jobs)
    rates *= np.array([sizes[i] == sizes[j] for i, j in members])[:, None, None]
    return cluster(*capacity, jobs=jobs, scale=scale, pairs=(members, rates))


def test_packed_fifo_joins_the_queue_to_running_jobs_when_that_is_worth_it() -> None:
    found = fifo_packed(packed(0.8))
    assert found.paired[1].tolist() == [0, 0, 1]  # jobs 0 and 2 share; equal sums go to the job scheduled first
    assert found.share[0].sum() == 0
    assert found.share[1].tolist() == [0, 0, 1]


def test_packed_fifo_leaves_jobs_alone_when_sharing_is_slow() -> None:
    found = fifo_packed(packed(0.75))
    assert found.paired.sum() == 0


def test_packed_fifo_skips_the_head_that_fits_nowhere_while_devices_are_free() -> None:
    # Job 1 needs two devices, one is free: the artifact then pairs from the job behind it on.
    found = fifo_packed(packed(0.8, scale=[1, 2, 1], capacity=(0, 0, 2)))
    assert found.paired[1].tolist() == [0, 0, 1]
    assert devices_used(packed(0.8, scale=[1, 2, 1]), found).tolist() == [0, 0, 1]


def test_agnostic_fifo_never_promises_more_than_there_is() -> None:
    instance = cluster(1, 1, 1)
    for seed in range(10):
        found, _ = fifo(instance, None, seed)
        assert excess(instance, found) == 0.0
        assert sorted(where(found, instance)) == ["", "k80", "p100", "v100"]


def test_agnostic_fifo_draws_different_types_for_different_seeds_and_keeps_who_runs() -> None:
    instance = cluster(2, 2, 2, jobs=2)
    first = {tuple(where(fifo(instance, None, seed)[0], instance)) for seed in range(20)}
    assert len(first) > 3
    once, memory = fifo(instance, None, 7)
    again, _ = fifo(cluster(2, 2, 2), memory, 7)
    assert where(again, instance)[:2] == where(once, instance)


def test_allox_matches_short_jobs_to_fast_devices_and_keeps_who_runs() -> None:
    instance = cluster(3, 1, 2)
    found, memory = allox(instance)
    assert where(found, instance) == ["v100", "v100", "p100", "k80"]
    later = Instance.of(
        types=instance.types,
        capacity=instance.capacity,
        jobs=[1, 2, 3, 4],
        throughput=[*SPEEDS[1:], [1, 2, 4]],
        steps=[500, 1000, 500, 300],
        elapsed=[10, 10, 10, 0],
    )
    assert where(allox(later, memory)[0], later) == ["v100", "p100", "k80", "v100"]


def test_allox_refuses_gangs() -> None:
    with pytest.raises(UsageError, match="job '1': AlloX places single-device jobs only"):
        allox(cluster(1, 1, 1, scale=[1, 2, 1, 1]))


def test_gandiva_packs_only_when_the_cluster_is_full() -> None:
    roomy, full = packed(0.9, capacity=(1, 1, 1)), packed(0.9, capacity=(0, 0, 2))
    assert gandiva(roomy, None, 0)[0].paired.sum() == 0.0
    found, memory = gandiva(full, None, 0)
    assert (found.paired.sum(axis=1) > 0).sum() == 1
    assert len(memory["together"]) == 1
    assert excess(full, found) < 1e-9


def test_gandiva_keeps_a_good_pair_and_drops_one_whose_member_left() -> None:
    instance = packed(0.9)
    _, memory = gandiva(instance, None, 0)
    _, again = gandiva(instance, memory, 0)
    assert again["together"] == memory["together"]
    gone = memory["together"][0][0]
    rest = instance.subset(np.array([i for i in range(3) if i != gone]), np.array([0.0, 0.0, 1.0]))
    _, after = gandiva(rest, memory, 0)
    assert gone not in [job for pair in after["together"] for job in pair]


def test_gandiva_spends_draws_on_gangs_that_do_not_match() -> None:
    found, memory = gandiva(packed(0.9, scale=[1, 2, 4], capacity=(0, 0, 4)), None, 0)
    assert memory["together"] == []
    assert found.share.any(axis=1).all()


def test_memories_survive_json() -> None:
    instance = packed(0.9)
    for policy in (fifo, fifo_artifact, gandiva):
        _, memory = policy(instance, None, 3)  # type: ignore[operator]
        stored = json.loads(json.dumps(memory))
        once, twice = policy(instance, memory, 3), policy(instance, stored, 3)  # type: ignore[operator]
        assert np.array_equal(once[0].share, twice[0].share)
        assert once[1] == twice[1]


def test_draws_continue_where_they_stopped() -> None:
    plain = Random(11)
    expected = [plain.random() for _ in range(6)]
    draws = generator(11, None)
    found = [draws.random() for _ in range(3)]
    draws = generator(11, state_of(draws))
    assert found + [draws.random() for _ in range(3)] == expected
