"""The interior-point method against cvxpy with Clarabel, and its answer against the analytic centre."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from gantline.core.arrays import Floats
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.program import Program, apart, constraints, kinds
from gantline.systems.gavel.policies.solving import (
    maximise_gain,
    maximise_level,
    maximise_welfare,
    throughput_of,
)


def model(program: Program) -> tuple[cp.Variable, cp.Expression, list[cp.Constraint]]:
    """The same limits in cvxpy: columns, throughput per kind, constraints."""
    x = cp.Variable(len(program.row), nonneg=True)
    shape = (len(program.bound), len(program.row))
    rows = sparse.csc_array((program.value, program.index, program.start), shape=shape) @ x
    n = program.size
    return x, -rows[1 : 2 * n : 2], [rows[0 : 2 * n : 2] <= 1, rows[2 * n :] <= program.bound[2 * n :]]


def demands(program: Program, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).uniform(0.5, 3.0, program.size)


def best(goal: cp.Maximize | cp.Minimize, limits: list[cp.Constraint]) -> float:
    return float(cp.Problem(goal, limits).solve(solver="CLARABEL"))


def test_the_largest_gain_above_floors_is_that_of_clarabel(instance: Instance) -> None:
    program = constraints(instance, kinds(instance))
    gain = np.random.default_rng(1).uniform(0.1, 1.0, len(program.row)) * program.column_weight
    floor = 0.6 * throughput_of(program, maximise_level(program, demands(program)).x)
    x, throughput, limits = model(program)
    point = maximise_gain(program, gain, floor)
    assert point.solved
    assert point.level == pytest.approx(best(cp.Maximize(gain @ x), [*limits, throughput >= floor]), rel=1e-6)


def test_nash_welfare_is_that_of_clarabel(instance: Instance) -> None:
    program = constraints(instance, kinds(instance))
    fit = np.flatnonzero(program.reach > 0)
    weight = demands(program)
    _, throughput, limits = model(program)
    expected = best(cp.Maximize(weight[fit] @ cp.log(throughput[fit])), limits)
    point = maximise_welfare(program, weight)
    assert point.solved
    assert weight[fit] @ np.log(throughput_of(program, point.x)[fit]) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_kinds_and_single_jobs_have_the_same_central_answer(instance: Instance) -> None:
    demand = instance.throughput.max(axis=1)
    answers = []
    for chosen in (kinds(instance), apart(instance)):
        program = constraints(instance, chosen)
        answers.append(program.spread(maximise_level(program, demand[chosen.first]).x))
    assert answers[0][0] == pytest.approx(answers[1][0], abs=1e-5)
    assert answers[0][1] == pytest.approx(answers[1][1], abs=1e-5)


def test_the_answer_is_the_analytic_centre_of_the_optimal_face() -> None:
    # Job 0 is a gang of four on 4 + 4 + 4 devices, job 1 a single device, both equally fast everywhere. Job 1 sets
    # the level and job 0 is free: its share a on each type maximises the product of all slacks of the face.
    instance = Instance.of(types="kpv", capacity=[4, 4, 4], throughput=np.ones((2, 3)), scale=[4, 1])
    program = constraints(instance, apart(instance))
    share, _ = program.spread(maximise_level(program, 1.0 / instance.scale).x)
    a = np.linspace(0.1, 0.33, 100_000)
    slacks = 3 * np.log(a) + np.log(1 - 3 * a) + np.log(12 * a - 1) + 3 * np.log(4 - 4 * a - 1 / 3)
    assert share[1] == pytest.approx([1 / 3] * 3, abs=1e-6)
    assert share[0] == pytest.approx([a[slacks.argmax()]] * 3, abs=2e-3)


def test_a_spent_budget_is_admitted() -> None:
    instance = Instance.of(types="kpv", capacity=[3, 2, 1], throughput=[[0.5, 1, 2], [1, 2, 3]])
    point = maximise_level(constraints(instance, apart(instance)), np.ones(2), budget=2)
    assert not point.solved
    assert point.iterations == 2
