"""The population search: possible allocations, the best of small worlds, the same answer for the same seed."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from itertools import product

import numpy as np
import pytest

from gantline.core.arrays import Ints
from gantline.core.errors import UsageError
from gantline.models.solvers.allocation_search.packed_rows import layout_for
from gantline.models.solvers.allocation_search.search import Demand, Workspace, search


def demand(jobs: int, nodes: int, per_node: int, *, power: float = -1.0, seed: int = 0, present: Ints | None = None) -> Demand:
    """Jobs that scale to different degrees, a little worse across nodes."""
    rng = np.random.default_rng(seed)
    devices = nodes * per_node
    bend = rng.uniform(0.4, 1.0, jobs)
    speedup = np.zeros((jobs, 2, devices + 1))
    speedup[:, 0] = np.arange(devices + 1)[None, :] ** bend[:, None]
    speedup[:, 1] = 0.8 * speedup[:, 0]
    speedup[:, :, 0] = 0.0
    most = rng.integers(1, devices + 1, jobs)
    now = np.zeros((jobs, nodes), dtype=np.int64) if present is None else present
    return Demand(now, most, speedup, rng.uniform(0.5, 1.0, jobs), 1.0 / per_node, power)


def plain_objective(world: Demand, rows: Ints) -> float:
    """The power mean, written down as it is read."""
    values = []
    for j, row in enumerate(rows):
        spans = int((row > 0).sum() > 1)
        value = world.speedup[j, spans, row.sum()] * world.scale
        values.append(value * (1.0 if (row == world.present[j]).all() else world.penalty[j]) + 1e-3)
    if world.power == 0.0:
        return float(-np.exp(np.mean(np.log(values))))
    return float(-(np.mean(np.array(values) ** world.power) ** (1.0 / world.power)))


def is_possible(rows: Ints, capacity: Ints, most: Ints, avoid: bool) -> bool:
    spanning = (rows > 0).sum(axis=1) > 1
    apart = not avoid or bool(((rows[spanning] > 0).sum(axis=0) <= 1).all())
    return bool((rows.sum(axis=0) <= capacity).all() and (rows.sum(axis=1) <= most).all() and apart)


@pytest.mark.parametrize("power", [-1.0, 0.0, 1.0])
def test_the_best_of_a_small_world_is_found(power: float) -> None:
    capacity = np.array([2, 2])
    world = demand(3, 2, 2, power=power, present=np.array([[2, 0], [0, 1], [0, 0]]))
    found = search(world, capacity, 7, size=40, generations=40)
    cells = product(range(3), repeat=6)
    every = (np.array(cell).reshape(3, 2) for cell in cells)
    best = min(plain_objective(world, rows) for rows in every if is_possible(rows, capacity, world.most, True))
    assert found.objective[0] == pytest.approx(best)
    assert plain_objective(world, found.best) == pytest.approx(best)


@pytest.mark.parametrize(("nodes", "per_node"), [(16, 4), (5, 8), (33, 2)])
def test_answers_are_possible_and_depend_on_the_seed_alone(nodes: int, per_node: int) -> None:
    capacity, world = 1 + np.arange(nodes) % per_node, demand(12, nodes, per_node)
    found, again, other = (search(world, capacity, seed, size=20, generations=10) for seed in (3, 3, 4))
    assert is_possible(found.best, capacity, world.most, True)
    assert (found.best == again.best).all()
    assert (found.front == again.front).all()
    assert not (found.front.shape == other.front.shape and (found.front == other.front).all())
    assert found.objective[0] == pytest.approx(plain_objective(world, found.best))


@pytest.mark.parametrize(
    ("nodes", "per_node", "jobs", "told"),
    [(16, 4, 12, "dbed77c2adfa"), (5, 8, 9, "748201c4b148"), (20, 4, 30, "a1f2410d1c6e")],
)
def test_a_seed_means_the_same_search_from_one_version_to_the_next(nodes: int, per_node: int, jobs: int, told: str) -> None:
    capacity, counts = np.full(nodes, per_node), np.arange(nodes * per_node + 1.0)
    speedup = np.stack([[counts / (1.0 + counts / (4 + job)), counts / (1.5 + counts / (4 + job))] for job in range(jobs)])
    world = replace(demand(jobs, nodes, per_node), speedup=speedup)  # numbers that are the same on every machine
    desk = Workspace()
    found = search(world, capacity, 5, size=30, generations=20, workspace=desk)
    found = search(replace(world, present=found.best), capacity, 6, start=found.front, size=30, generations=20, workspace=desk)
    assert sha256(found.front.astype("<i8").tobytes()).hexdigest()[:12] == told


def test_a_search_goes_on_where_the_last_one_ended() -> None:
    capacity, world = np.full(8, 4), demand(10, 8, 4)
    first = search(world, capacity, 1, size=30, generations=10)
    second = search(world, capacity, 2, start=first.front, size=30, generations=10)
    assert second.objective[0] <= first.objective[0]


def test_one_job_with_one_device_ends_when_all_ways_are_known() -> None:
    world = Demand(np.zeros((1, 3), dtype=np.int64), np.array([1]), np.ones((1, 2, 13)), np.ones(1))
    found = search(world, np.full(3, 4), 1, size=10, generations=50)
    assert found.generations < 50
    assert found.best.sum() == 1


@pytest.mark.parametrize("nodes", [4, 20])
def test_who_holds_more_than_it_may_is_cut_back(nodes: int) -> None:
    present = np.zeros((5, nodes), dtype=np.int64)
    present[0] = 2  # everywhere, and it may have three devices and span three nodes
    world = replace(demand(5, nodes, 4, present=present), most=np.full(5, 3))
    found = search(world, np.full(nodes, 4), 1, size=20, generations=10, most_nodes=3)
    assert (found.front.sum(axis=2) <= 3).all()
    assert (found.best > 0).sum(axis=1).max() <= 3


def test_nodes_that_are_too_large_are_refused() -> None:
    with pytest.raises(UsageError, match="a node has 64 devices"):
        layout_for(2, 64)
