"""Optimus with parameter servers: sizes against a plain greedy, seats against brute force, and whole runs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline import simulate
from gantline.core.errors import UsageError
from gantline.models.parameter_servers import ServerSpeed
from gantline.policies.registry import make_policy
from gantline.systems.optimus.policies.servers_and_workers import (
    Belief,
    JointDemand,
    JointTask,
    NodeRoom,
    TaskPlacement,
    by_gain,
    by_share,
    deal,
)

DEMAND = JointDemand((0.0, 3.0, 9.0), (1.0, 2.0, 8.0), (8.0, 32.0, 96.0))
SYNC = "sync=1.02/2.78/4.92/0/0.02;batch=20;epochs=30;loss=0.3/1/0.2"
a_term = st.floats(0.01, 5.0)
a_belief = st.builds(
    lambda left, terms: Belief(left, ServerSpeed("sync", tuple(terms), 20.0), {}),
    st.floats(1.0, 100.0),
    st.lists(a_term, min_size=5, max_size=5),
)


def plainly(beliefs: list[Belief], demand: JointDemand, most: list[int]) -> list[JointTask]:
    """Every step looks at every task that fits, and takes the one that saves most per dominant share."""
    left, found = list(demand.capacity), [JointTask(0, 0)] * len(beliefs)

    def take(*wanted: tuple[float, float, float]) -> bool:
        total = [sum(amounts) for amounts in zip(*wanted)]
        if any(need > have + 1e-9 for need, have in zip(total, left)):
            return False
        left[:] = [have - need for need, have in zip(total, left)]
        return True

    for job in range(len(beliefs)):
        if take(*demand.parts):
            found[job] = JointTask(1, 1)
    while True:
        options = []
        for job, (p, w) in enumerate(found):
            for kind, grown in ((1, JointTask(p, w + 1)), (0, JointTask(p + 1, w))):
                fits = all(need <= have + 1e-9 for need, have in zip(demand.parts[kind], left))
                if p and fits and grown.workers <= most[job]:
                    saved = (beliefs[job].time(p, w) - beliefs[job].time(*grown)) / demand.share(demand.parts[kind])
                    options.append((saved, -job, kind, grown))
        best = max(options, default=(0.0, 0, 0, JointTask(0, 0)), key=lambda option: option[:3])
        if best[0] <= 0.0:
            return found
        take(demand.parts[best[2]])
        found[-best[1]] = best[3]


@given(st.lists(a_belief, min_size=1, max_size=5), st.integers(1, 6))
def test_sizes_are_those_of_the_plain_greedy(beliefs: list[Belief], most: int) -> None:
    assert by_gain(beliefs, DEMAND, [most] * len(beliefs)) == plainly(beliefs, DEMAND, [most] * len(beliefs))


def test_equal_shares_are_pairs_until_something_runs_out() -> None:
    assert by_share(DEMAND, [8, 8]) == [JointTask(3, 3), JointTask(2, 2)]  # 96 GB carry five pairs of 17
    assert by_share(DEMAND, [1, 8]) == [JointTask(1, 1), JointTask(4, 4)]


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4), st.integers(2, 12), st.integers(1, 4))
def test_seats_are_on_the_fewest_nodes_that_can_be_dealt_to(servers: int, workers: int, gpus: int, cpus: int, nodes: int) -> None:
    """Brute force on equal nodes: equal numbers (within one) of each kind, on as few as can be."""
    demand = JointDemand((0.0, 3.0, 0.0), (1.0, 2.0, 0.0), (99.0, 99.0, 0.0))
    room = NodeRoom(np.arange(nodes), np.array([[gpus, cpus, 0.0]] * nodes, dtype=np.float64))
    before = room.free.copy()
    found = deal(JointTask(servers, workers), demand, room, 0)
    assert (room.free >= -1e-9).all()
    least = next((k for k in range(1, min(nodes, servers + workers) + 1) if _deals(servers, workers, gpus, cpus, k)), None)
    if least is not None:
        assert found is not None
        assert found.task == JointTask(servers, workers)
        assert len({*found.servers, *found.workers}) == least
    elif found is None:
        assert (room.free == before).all()
    else:
        assert 1 <= len(found.servers) <= servers
        assert 1 <= len(found.workers) <= workers


def _deals(servers: int, workers: int, gpus: int, cpus: int, count: int) -> bool:
    """Whether some dealing of both kinds in equal numbers, within one, fits on so many nodes."""
    lists = [itertools.product((number // count, -(-number // count)), repeat=count) for number in (servers, workers)]
    even = [[each for each in found if sum(each) == number] for found, number in zip(lists, (servers, workers))]
    return any(all(w <= gpus and 3 * p + 2 * w <= cpus for p, w in zip(*pair)) for pair in itertools.product(*even))


def test_seats_are_dealt_on_the_nodes_with_most_cpus_free() -> None:
    """CPUs count before GPUs, because every server and every worker needs some."""
    run = simulate(jobs(1, max_gpus=1), "gpu:1x4/8c/64g,gpu:1x2/32c/64g", "optimus")
    assert run.allocations["nodes"].to_list() == [[1]]
    room = NodeRoom(np.arange(3), np.array([[4.0, 8.0, 64.0], [1.0, 16.0, 64.0], [2.0, 16.0, 64.0]]))
    assert deal(JointTask(1, 1), DEMAND, room, 0) == TaskPlacement(0, [2], [2]), "of two with as many CPUs the one with more GPUs"


def jobs(count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"job": f"j{k}", "arrival": 10.0 * k, "gpus": 1, "duration": 6000, "max_gpus": 6, "scaling": SYNC, **more} for k in range(count)
    ]


@pytest.mark.parametrize("policy", ["optimus", "optimus.drf"])
def test_everybody_trains_with_servers_and_workers_and_ends(policy: str) -> None:
    run = simulate(jobs(6), "gpu:4x2/16c/48g", policy, costs="30")
    assert run.summary["completed"] == 6
    assert run.summary["lost_turns"] == 0
    assert run.allocations["gpus"].max() > 1


def test_one_job_alone_goes_at_the_speed_of_what_it_was_given() -> None:
    run = simulate(jobs(1), "gpu:1x4/16c/64g", "optimus.drf")  # three pairs: 15 CPUs of 16
    speed = ServerSpeed("sync", (1.02, 2.78, 4.92, 0.0, 0.02), 20.0)
    assert run.allocations["gpus"].to_list() == [3]
    assert run.summary["average_jct"] == pytest.approx(6000 * speed.speed(1, 1) / speed.speed(3, 3))


def test_newcomers_wait_for_the_next_interval() -> None:
    run = simulate(jobs(2), "gpu:2x2/16c/48g", "optimus", settings={"interval": 100.0})
    assert dict(run.jobs.select("job", "first_start").iter_rows()) == {"j0": 0.0, "j1": 100.0}


def test_plain_gangs_have_a_server_for_every_worker() -> None:
    run = simulate(jobs(1, gpus=2), "gpu:1x4", "fifo")
    assert run.summary["average_jct"] == pytest.approx(6000.0)
    grown = simulate(jobs(1, min_gpus=1), "gpu:1x4", "equal-share")
    speed = ServerSpeed("sync", (1.02, 2.78, 4.92, 0.0, 0.02), 20.0)
    assert grown.summary["average_jct"] == pytest.approx(6000 * speed.speed(1, 1) / speed.speed(4, 4))


def test_what_was_learned_of_a_job_grows_with_its_epochs() -> None:
    run = simulate(jobs(3), "gpu:4x2/16c/48g", "optimus")
    assert run.summary["completed"] == 3
    resized = run.allocations.filter(pl.col("reason") == "resized")
    assert resized.height > 0  # sizes follow what is left


def test_curves_of_both_kinds_in_one_trace_are_refused() -> None:
    mixed = [*jobs(1), {"job": "other", "arrival": 20.0, "gpus": 1, "duration": 10, "scaling": "sample=1"}]
    with pytest.raises(UsageError, match="'other': other jobs train with parameter servers"):
        simulate(mixed, "gpu:1x4", "optimus")


def test_a_wrong_interval_is_refused() -> None:
    with pytest.raises(UsageError, match="interval"):
        make_policy("optimus", {"interval": 0.0})


def test_seats_say_their_task() -> None:
    assert TaskPlacement(0, [1, 2], [1, 2, 2]).task == JointTask(2, 3)
