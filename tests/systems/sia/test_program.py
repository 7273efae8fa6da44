"""Sia's program against another solver and against all answers, ties included."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from tests.examples import FEWER

from gantline.core.arrays import Floats, Ints
from gantline.policies.node_classes import NodeClass
from gantline.systems.sia.policies import program
from gantline.systems.sia.policies.program import TIE, Configurations, choose_configurations

IDLE = 1.1


def a_cluster(*groups: tuple[str, int, int]) -> Configurations:
    classes, first = [], 0
    for kind, nodes, size in groups:
        classes.append(NodeClass(kind, size, tuple(range(first, first + nodes))))
        first += nodes
    return Configurations.of(classes)


def some_costs(seed: int, jobs: int, columns: Configurations) -> Floats:
    """Costs as rows of concave goodputs give them, rounded to hundredths, with configurations that some jobs cannot have."""
    draw = np.random.default_rng(seed)
    speed = draw.uniform(0.5, 6.0, len(columns.classes))
    cost = np.full((jobs, len(columns)), np.inf)
    for job in range(jobs):
        most = 2 ** draw.integers(0, 6)
        goodput = speed[columns.group] * columns.gpus ** draw.uniform(0.5, 1.0)
        offered = columns.gpus <= most
        worth = goodput / goodput[offered].min() * np.where(draw.random(len(columns)) < 0.2, 1.0, draw.uniform(0.4, 1.0))
        cost[job] = np.where(offered, np.round(worth**-0.5, 2), np.inf)
    return cost


def by_another_solver(cost: Floats, columns: Configurations, forced: Ints | None = None) -> float:
    """The same program, whole, by SciPy's branch and bound."""
    jobs, count = cost.shape
    there = np.isfinite(cost)
    price = np.where(there, cost - IDLE, 0.0).ravel()
    one_each = np.kron(np.eye(jobs), np.ones(count))
    fits = np.tile(columns.use.T, jobs)
    low = np.zeros(jobs * count)
    if forced is not None:
        low[[job * count + column for job, column in enumerate(forced.tolist()) if column >= 0]] = 1.0
    found = optimize.milp(
        price,
        integrality=np.ones(jobs * count),
        bounds=optimize.Bounds(low, np.where(there, 1.0, 0.0).ravel()),
        constraints=[
            optimize.LinearConstraint(one_each, -np.inf, np.ones(jobs)),
            optimize.LinearConstraint(fits, -np.inf, columns.bound),
        ],
        options={"mip_rel_gap": 0.0},
    )
    assert found.success, found.message
    return float(found.fun) + IDLE * jobs


@pytest.mark.parametrize(
    ("groups", "seed", "jobs"),
    [
        *(((("rtx", 3, 8), ("dgx-ext", 2, 8), ("quad", 1, 4)), seed, 8 + 2 * seed) for seed in range(3)),
        ((("t4", 12, 4), ("rtx", 6, 8), ("a100", 4, 8)), 7, 110),
        ((("t4", 16, 8),), 3, 80),  # many equal costs, which take branch and bound on everything seconds once ties are to be settled too
    ],
)
def test_the_optimum_is_that_of_another_solver(groups: tuple[tuple[str, int, int], ...], seed: int, jobs: int) -> None:
    columns = a_cluster(*groups)
    cost = some_costs(seed, jobs, columns)
    found = choose_configurations(cost, columns, IDLE)
    assert found.cost == pytest.approx(by_another_solver(cost, columns), abs=1e-6)
    used = columns.use[found.column[found.column >= 0]].sum(axis=0)
    assert np.all(used <= columns.bound)


def test_an_answer_of_few_states_names_how_much_less_another_may_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = a_cluster(("t4", 12, 4), ("rtx", 6, 8), ("a100", 4, 8))
    cost = some_costs(2, 40, columns)
    best = choose_configurations(cost, columns, IDLE, exact=True)
    assert (best.gap, best.note) == (0.0, "")
    monkeypatch.setattr(program, "STATES", 1)
    found = choose_configurations(cost, columns, IDLE)
    assert found.cost - found.gap - TIE <= best.cost <= found.cost
    assert f"others at least {found.cost - found.gap:.2f}" in found.note


def test_nodes_of_any_size_are_never_overcommitted_in_parts() -> None:
    columns = a_cluster(
        ("six", 2, 6),
    )
    four = int(np.flatnonzero(columns.gpus == 4)[0])
    cost = np.full((3, len(columns)), np.inf)
    cost[:, four] = 0.5
    cost[2, 0] = 0.9
    found = choose_configurations(cost, columns, IDLE)
    assert sorted(columns.gpus[found.column].tolist()) == [1, 4, 4], (
        "a node of six has one part of four, so three fours do not fit on two nodes"
    )


@pytest.mark.parametrize("groups", [(("a", 1, 4), ("b", 1, 2)), (("a", 2, 4),)], ids=["two types", "one type"])
@given(seed=st.integers(0, 10_000), jobs=st.integers(1, 4))
@FEWER
def test_ties_go_to_lower_columns_then_to_later_jobs(groups: tuple[tuple[str, int, int], ...], seed: int, jobs: int) -> None:
    """Of all answers of least cost, the one whose weighted column numbers are least."""
    columns = a_cluster(*groups)
    draw = np.random.default_rng(seed)
    cost = np.where(draw.random((jobs, len(columns))) < 0.3, np.inf, np.round(draw.choice([0.5, 0.6, 0.7, 1.0], (jobs, len(columns))), 2))

    def worth(each: tuple[int, ...]) -> tuple[float, float]:
        chosen = [(job, column) for job, column in enumerate(each) if column >= 0]
        total = sum(cost[job, column] for job, column in chosen) + IDLE * (jobs - len(chosen))
        return round(float(total), 9), round(sum((column + 1) * (1 + job / jobs) for job, column in chosen), 9)

    best: tuple[float, float] | None = None
    for each in product(range(-1, len(columns)), repeat=jobs):
        chosen = [(job, column) for job, column in enumerate(each) if column >= 0]
        if any(np.isinf(cost[job, column]) for job, column in chosen):
            continue
        if np.any(sum((columns.use[column] for _, column in chosen), np.zeros(len(columns.bound))) > columns.bound):
            continue
        best = worth(each) if best is None else min(best, worth(each))
    assert worth(tuple(choose_configurations(cost, columns, IDLE).column.tolist())) == best


def test_forced_jobs_keep_their_column_and_the_rest_is_optimal() -> None:
    columns = a_cluster(("rtx", 2, 8), ("quad", 1, 4))
    cost = some_costs(3, 6, columns)
    forced = np.full(6, -1, dtype=np.int64)
    forced[2] = len(columns) - 1
    cost[2, forced[2]] = 1.0
    found = choose_configurations(cost, columns, IDLE, forced)
    assert found.column[2] == forced[2]
    assert found.cost == pytest.approx(by_another_solver(cost, columns, forced), abs=1e-6)


def test_forced_columns_that_do_not_fit_together_leave_the_later_job_out() -> None:
    columns = a_cluster(
        ("rtx", 1, 8),
    )
    whole = len(columns) - 1
    found = choose_configurations(np.ones((2, len(columns))), columns, IDLE, np.array([whole, whole]))
    assert found.column.tolist() == [whole, -1]
