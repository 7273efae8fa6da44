"""The period of a group: by hand, against a walk over many cycles, and what orders change."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from gantline.models.sharing.stage_cycles import Stages, cycle_period, interleaving_efficiency, longest_cycle, shortest_cycle, usable


def drawn(seed: int, count: int) -> tuple[Stages, ...]:
    return tuple(Stages(*row) for row in np.random.default_rng(seed).uniform(0.05, 1.0, (count, 3)).tolist())


def test_a_job_alone_takes_the_sum_of_its_stages() -> None:
    assert cycle_period((Stages(0.5, 0.25, 0.125),)) == 0.875


def test_two_jobs_alternate_where_that_is_shorter() -> None:
    # one loads for 1 s while the other computes for 1 s, then the other way round for half a second
    assert cycle_period((Stages(1.0, 0.5, 0.0), Stages(0.5, 1.0, 0.0))) == pytest.approx(1.5)


def test_four_jobs_with_a_bottleneck_each_take_one_slot_each() -> None:
    jobs = (Stages(2.0, 1.0, 1.0),) * 4  # loading spans two slots of a second

    assert cycle_period(jobs) == pytest.approx(4.0)
    assert interleaving_efficiency(jobs, 4.0) == pytest.approx(1.0)


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_the_period_is_that_of_a_long_walk_over_the_slots(seed: int, count: int) -> None:
    jobs = drawn(seed, count)
    ends = [0.0]
    for slot in range(400):
        steps = [ends[slot] + jobs[(slot + 1) % 4].network] if (slot + 1) % 4 < count else []
        steps += [ends[slot] + jobs[(slot + 2) % 4].gpu] if (slot + 2) % 4 < count else []
        steps += [ends[slot - 1] + jobs[(slot + 3) % 4].load] if slot and (slot + 3) % 4 < count else []
        ends.append(max(steps))

    assert cycle_period(jobs) == pytest.approx(ends[400] - ends[396], rel=0.1)  # it stops when a period settles, or at the second


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_best_and_the_worst_order_are_the_extremes_of_all(count: int) -> None:
    jobs = drawn(7, count)
    periods = [cycle_period(order) for order in permutations(jobs)]

    best, worst = shortest_cycle(jobs), longest_cycle(jobs)
    assert best.period == min(periods)
    assert worst.period >= max(periods)
    assert cycle_period(tuple(jobs[at] for at in best.order)) == best.period


def test_what_is_no_set_of_stage_times() -> None:
    assert usable(Stages(0.0, 1.0, 0.0))
    assert not usable(Stages(0.0, 0.0, 0.0))
    assert not usable(Stages(-1.0, 2.0, 0.0))
    assert not usable(Stages(float("nan"), 2.0, 0.0))
