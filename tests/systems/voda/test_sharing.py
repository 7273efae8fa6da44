"""Who gets how many devices: against brute force, plain re-implementations and the rules that must hold for every input."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jobs import held_by

from gantline import simulate
from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.elastic.policies import grow_in_turns, in_order
from gantline.policies.elastic.pools import Curves, pools
from gantline.policies.registry import make_policy
from gantline.systems.afs.policies import apathetic_shares
from gantline.systems.ffdl.policies import best_sum

Job = dict[str, Any]


def curves_of(*jobs: dict[int, float]) -> Curves:
    """Speeds by size, one mapping per job."""
    sizes = [sorted(job) for job in jobs]
    first = np.concatenate(([0], np.cumsum([len(each) for each in sizes]))).astype(np.int64)
    size = np.array([size for each in sizes for size in each], dtype=np.int64)
    rate = np.array([job[size] for job, each in zip(jobs, sizes) for size in each])
    return Curves(first, size, rate, np.full(len(size), -1))


speeds = st.floats(0.1, 8.0).map(lambda value: round(value, 2))
a_curve = st.dictionaries(st.integers(1, 5), speeds, min_size=1, max_size=4)


@given(st.lists(a_curve, min_size=1, max_size=4), st.integers(0, 11))
def test_ffdl_finds_the_greatest_sum_of_speedups(jobs: list[dict[int, float]], capacity: int) -> None:
    curves = curves_of(*jobs)
    first, _ = in_order(np.arange(len(jobs)), curves.least, capacity)
    kept = np.flatnonzero(first)
    grants = best_sum(curves, kept, capacity)
    unit = curves.unit
    choices = [[(size, job[size] / unit[k]) for size in job] for k, job in enumerate(jobs) if k in kept]
    best = max((sum(v for _, v in c) for c in itertools.product(*choices) if sum(s for s, _ in c) <= capacity), default=0.0)
    assert sum(jobs[k][int(grants[k])] / unit[k] for k in kept) == pytest.approx(best)
    assert grants.sum() <= capacity
    assert not grants[np.setdiff1d(np.arange(len(jobs)), kept)].any()


@given(st.lists(st.floats(0.5, 0.99), min_size=1, max_size=5), st.integers(0, 14))
def test_steps_and_the_dynamic_program_agree_on_curves_that_bend_down(fractions: list[float], capacity: int) -> None:
    jobs = [{g: 1.0 / (1.0 - f + f / g) for g in range(1, 7)} for f in fractions]
    bent = curves_of(*jobs)
    gap = curves_of(*jobs, {1: 1.0, 3: 1e-9})  # a job with a gap sends the same question through the program
    kept = np.arange(min(len(jobs), capacity))
    more = np.append(kept, len(jobs))
    quick, exact = best_sum(bent, kept, capacity), best_sum(gap, more, capacity + 1)

    def total(grants: Any) -> float:
        return sum(jobs[k][int(grants[k])] for k in kept)

    assert total(quick) == pytest.approx(total(exact))


def plain_afs(jobs: list[dict[int, float]], remaining: list[float], capacity: int) -> list[int]:
    """AFS-L from its rule: a champion against each challenger, every job judged by its own devices."""
    unit = [job[min(job)] / min(job) for job in jobs]
    speed = [{0: 0.0} | {size: rate / unit[k] for size, rate in job.items()} for k, job in enumerate(jobs)]
    have = [0] * len(jobs)

    def following(k: int) -> int | None:
        return min((size for size in jobs[k] if size > have[k]), default=None)

    free = capacity
    while True:
        open_to = [k for k in range(len(jobs)) if (to := following(k)) and to - have[k] <= free and speed[k][to] > speed[k][have[k]]]
        stuck = [k for k in range(len(jobs)) if (to := following(k)) and speed[k][to] <= speed[k][have[k]]]
        assert not set(stuck) & set(open_to)
        if free == 0 or not open_to:
            return have
        best = open_to[0]
        for other in open_to[1:]:
            if have[best] == have[other] == 0:
                ends = [remaining[k] / speed[k][min(jobs[k])] for k in (best, other)]
                best = other if ends[1] < ends[0] else best
                continue
            ends = [remaining[k] / speed[k][have[k]] if have[k] else np.inf for k in (best, other)]
            a, b = (best, other) if ends[0] <= ends[1] else (other, best)
            step = {k: following(k) - have[k] for k in (a, b)}  # type: ignore[operator]
            more = {k: speed[k][have[k] + step[k]] for k in (a, b)}
            gain_b = (more[b] - speed[b][have[b]]) / more[b] / step[b]
            gain_a = (more[a] - speed[a][have[a]]) / speed[a][have[a]] / step[a] if have[a] else np.inf
            best = b if gain_b > gain_a else a
        free -= following(best) - have[best]  # type: ignore[operator]
        have[best] = following(best)  # type: ignore[assignment]


@given(st.lists(st.tuples(a_curve, st.integers(1, 500)), min_size=1, max_size=6), st.integers(0, 16))
def test_afs_is_its_rule_read_aloud(drawn: list[tuple[dict[int, float], int]], capacity: int) -> None:
    jobs, remaining = [curve for curve, _ in drawn], [float(left) for _, left in drawn]
    found = apathetic_shares(curves_of(*jobs), np.array(remaining), capacity)
    assert found.tolist() == plain_afs(jobs, remaining, capacity)


def test_growth_goes_round_and_skips_steps_that_do_not_fit() -> None:
    curves = curves_of({1: 1, 2: 2, 3: 3}, {2: 1, 8: 2}, {1: 1, 2: 2})
    assert grow_in_turns(curves, np.array([0, 1, 2]), np.array([1, 2, 1]), 3).tolist() == [3, 2, 2]
    assert grow_in_turns(curves, np.array([2, 0, 1]), np.array([1, 2, 1]), 1).tolist() == [1, 2, 2]


def job(name: str, arrival: float, gpus: int, least: int, most: int, work: float, **more: Any) -> Job:
    options = "|".join(f"gpu:{g}={work / g**0.8:.6f}" for g in range(1, most + 1))
    row = {"job": name, "arrival": arrival, "gpus": gpus, "duration": work / gpus**0.8, "min_gpus": least, "max_gpus": most}
    return row | {"options": options} | more


def test_when_many_wait_demoted_jobs_shrink_to_their_minimum() -> None:
    """The compaction case: three old jobs of four and thirteen new ones of thirteen on twelve GPUs."""
    options = [{"type": "gpu", "gpus": g, "rate": g**0.9} for g in range(1, 14)]
    old = [
        {"id": f"old{k}", "gpus": 4, "min_gpus": 1, "max_gpus": 4, "priority": -1, "first_start": k, "options": options} for k in range(3)
    ]
    new = [{"id": f"new{k}", "arrival": 1, "gpus": 13, "min_gpus": 2, "max_gpus": 13, "options": options} for k in range(13)]
    snapshot = decode_snapshot({"cluster": "gpu:1x12", "now": 10, "jobs": [*old, *new]})

    def sizes(name: str) -> dict[str, int]:
        return {snapshot.jobs.ids[item.job]: item.gpus for item in make_policy(name, {"compat": "voda"}).decide(snapshot).assignments or ()}

    assert sizes("voda.tiresias") == {"old0": 4, "old1": 4, "old2": 4}
    assert sizes("voda.elastic_tiresias") == {"old0": 2, "old1": 1, "old2": 1, "new0": 2, "new1": 2, "new2": 2, "new3": 2}


@pytest.mark.parametrize("name", ["tiresias", "elastic_tiresias"])
def test_an_hour_of_gpu_time_demotes_long_waiting_promotes_and_every_promotion_counts_from_the_one_before(name: str) -> None:
    """900 s of four GPUs demote `long`, then `late`; then the first started goes on; after 1,800 s `late` has waited twice its run.

    An hour of GPU-time more demotes it again, and as long a wait promotes it again, time after time.
    """
    jobs = [job("long", 0, 4, 4, 4, 40000), job("late", 100, 4, 4, 4, 40000)]
    run = simulate(jobs, "gpu:1x4", f"voda.{name}", settings={"promote": 2.0})
    assert run.allocations.sort("start").head(4)["job"].to_list() == ["long", "late", "long", "late"]
    late = held_by(run, "late").sort("start").head(5)
    assert late["start"].to_list() == pytest.approx([900, 3600, 6300, 9000, 11700])
    assert late["end"].to_list() == pytest.approx([1800, 4500, 7200, 9900, 12600])


def test_a_decision_is_kept_until_something_happens() -> None:
    """Voda reschedules when jobs come or go, not on a timer: in rounds the shares of a quiet stretch do not change."""
    jobs = [job("a", 0, 2, 1, 8, 9000), job("b", 0, 2, 1, 8, 3000), job("c", 0, 2, 1, 8, 6000)]
    run = simulate(jobs, "gpu:1x8", "voda.afs_l", round=60)
    assert run.allocations.height <= 6


def test_types_are_shared_separately_and_flexible_jobs_go_where_there_is_room() -> None:
    jobs = [{"id": "a", "gpus": 2, "options": [{"type": "big", "gpus": 2}]}, {"id": "b", "arrival": 1, "gpus": 2}]
    snapshot = decode_snapshot({"cluster": "big:1x2,small:1x4", "now": 5, "jobs": jobs})
    plan = make_policy("voda.fifo").decide(snapshot)
    assert [(item.job, snapshot.cluster.types[item.type]) for item in plan.assignments or ()] == [(0, "big"), (1, "small")]
    assert [pool.capacity for pool in pools(snapshot)] == [2, 4]
