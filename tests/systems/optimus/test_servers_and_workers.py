"""Optimus with parameter servers: sizes against a plain greedy, seats against brute force, whole runs, links and stragglers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jobs import by_job, job_row

from gantline import simulate
from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import UsageError
from gantline.models.parameter_servers import ServerJob, ServerSpeed, Straggling, TaskNodes, left_of
from gantline.policies.registry import make_policy
from gantline.systems.optimus.policies.servers_and_workers import (
    Belief,
    JointDemand,
    JointTask,
    NodeRoom,
    TaskPlacement,
    balance,
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
    assert by_job(run, "first_start") == {"j0": 0.0, "j1": 100.0}


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
    mixed = [*jobs(1), job_row("other", 1, 10, at=20.0, scaling="sample=1")]
    with pytest.raises(UsageError, match="'other': other jobs train with parameter servers"):
        simulate(mixed, "gpu:1x4", "optimus")


def test_a_wrong_interval_is_refused() -> None:
    with pytest.raises(UsageError, match="interval"):
        make_policy("optimus", {"interval": 0.0})


# Where servers and workers sit, what that does to their speed, and workers that are slow where they are.

LINKED_SYNC = "sync=1/0.5/4/0/0;batch=8;epochs=40;loss=0.3/1/0.2"
LINKS = "links:10/2/0.5"


def one_job(name: str, **more: Any) -> dict[str, Any]:
    return {"job": name, "arrival": 0.0, "gpus": 2, "duration": 3000.0, "min_gpus": 1, "max_gpus": 4, "scaling": LINKED_SYNC, **more}


def test_exchanges_take_as_long_as_those_of_the_server_whose_workers_are_farthest() -> None:
    cluster = parse_cluster(f"gpu:4x4@2/rack,{LINKS}")
    assert TaskNodes((0, 0), (0, 0)).crossed(cluster) == pytest.approx(2 / 10)
    assert TaskNodes((0,), (1, 1)).crossed(cluster) == pytest.approx(1.0)
    assert TaskNodes((0, 1), (0, 1)).crossed(cluster) == pytest.approx((2 / 10 + 1) / 2)
    assert TaskNodes((0, 2), (0, 0)).crossed(cluster) == pytest.approx(2 / 0.5)  # the second server is in another rack
    assert TaskNodes((0, 1), (0, 1)).crossed(parse_cluster("gpu:4x4")) == 1.0


def test_jobs_of_every_policy_go_by_the_links_between_their_nodes() -> None:
    one, two = (simulate([one_job("a")], f"gpu:{size},{LINKS}", "fifo") for size in ("1x2", "2x1"))
    step = {crossed: 1 * 8 / 2 + 0.5 + 4 * 1 * crossed for crossed in (1.0, 0.2, 0.6)}  # duration speaks of nodes of one rack
    assert one.summary["average_jct"] == pytest.approx(3000 * step[0.2] / step[1.0])
    assert two.summary["average_jct"] == pytest.approx(3000 * step[0.6] / step[1.0])


def test_blocks_are_faster_than_balanced_seats() -> None:
    jobs = [one_job("a", max_gpus=2), one_job("b", max_gpus=2)]
    mean = {
        seats: simulate(jobs, f"gpu:4x2/16c/48g,{LINKS}", "optimus.drf", settings={"seats": seats}).summary["average_jct"]
        for seats in ("blocks", "spread")
    }
    assert mean["blocks"] < 0.8 * mean["spread"]


def test_balanced_tasks_go_where_most_is_free() -> None:
    demand = JointDemand((0.0, 3.0, 0.0), (1.0, 2.0, 0.0), (99.0, 99.0, 0.0))
    room = NodeRoom(np.arange(3), np.array([[2, 8, 0], [2, 10, 0], [2, 8, 0]], dtype=np.float64))
    seats = balance(JointTask(2, 3), demand, room, 0)
    assert seats is not None
    assert (seats.workers, seats.servers) == ([1, 2, 2], [0, 1])  # a worker, a server, a worker, ...
    assert room.free.tolist() == [[2, 5, 0], [1, 5, 0], [0, 4, 0]]
    assert balance(JointTask(1, 1), demand, NodeRoom(np.arange(1), np.array([[0.0, 9.0, 0.0]])), 0) is None


def test_a_shunned_node_is_taken_only_where_it_cannot_be_helped() -> None:
    demand = JointDemand((0.0, 3.0, 0.0), (1.0, 2.0, 0.0), (99.0, 99.0, 0.0))
    free = np.array([[4, 16, 0], [2, 10, 0]], dtype=np.float64)
    for task, nodes in ((JointTask(1, 1), {1}), (JointTask(2, 4), {0})):
        room = NodeRoom(np.arange(2), free.copy())
        seats = deal(task, demand, room, 0, [0])
        assert seats is not None
        assert set(seats.workers) | set(seats.servers) == nodes
        assert room.free.sum() == pytest.approx(free.sum() - 3 * task.servers - 3 * task.workers)


def test_a_synchronous_job_is_as_slow_as_its_slowest_worker_an_asynchronous_one_as_the_mean() -> None:
    assert left_of([1.0, 0.25, 1.0, 0.75], "sync") == 0.25
    assert left_of([1.0, 0.25, 1.0, 0.75], "async") == 0.75
    slow = Straggling(0.3, 0.25)
    drawn = [slow.on("j", node) for node in range(2000)]
    assert set(drawn) == {0.25, 1.0}
    assert drawn.count(0.25) / 2000 == pytest.approx(0.3, abs=0.05)
    assert drawn == [slow.on("j", node) for node in range(2000)]


def test_a_straggler_is_replaced_at_the_next_decision() -> None:
    """Three workers on three nodes, of which one is slow; a fourth node is idle. Afterwards the job never goes back there."""
    chance = 0.25
    name = next(
        f"j{k}" for k in range(200) if [Straggling(chance, 0.2).on(f"j{k}", node) for node in range(4)] in ([1, 1, 0.2, 1], [1, 0.2, 1, 1])
    )
    jobs = [one_job(name, gpus=3, min_gpus=3, max_gpus=3, duration=9000.0, scaling=f"{LINKED_SYNC};slow={chance}/0.2")]
    replaced, kept = (
        simulate(jobs, "gpu:4x1/16c/48g", "optimus.drf", settings={"stragglers": how}, costs="30") for how in ("replace", "keep")
    )
    first, *rest = replaced.allocations.sort("start")["nodes"].to_list()
    assert len(rest) == 1
    assert len(set(first) & set(rest[0])) == 2
    assert kept.allocations.height == 1
    healthy = simulate([{**jobs[0], "scaling": LINKED_SYNC}], "gpu:4x1/16c/48g", "optimus.drf", costs="30").summary["average_jct"]
    assert healthy < replaced.summary["average_jct"] < healthy + 600 + 60  # an interval at a fifth of its speed, and a restart
    assert kept.summary["average_jct"] > 4 * healthy


@pytest.mark.parametrize("text", ["slow=2/0.5", "slow=0.1/0", "slow=0.1"])
def test_stragglers_that_cannot_be_meant_are_told(text: str) -> None:
    with pytest.raises(UsageError, match="slow"):
        ServerJob.parse(f"{LINKED_SYNC};{text}")
    assert ServerJob.parse(str(ServerJob.parse(f"{LINKED_SYNC};slow=0.1/0.5"))).slow == (0.1, 0.5)
