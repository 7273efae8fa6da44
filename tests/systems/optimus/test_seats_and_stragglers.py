"""Where servers and workers sit, what that does to their speed, and workers that are slow where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gantline import simulate
from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import UsageError
from gantline.models.parameter_servers import ServerJob, Straggling, TaskNodes, left_of
from gantline.policies.registry import make_policy
from gantline.systems.optimus.policies.servers_and_workers import JointDemand, JointTask, NodeRoom, balance, deal

SYNC = "sync=1/0.5/4/0/0;batch=8;epochs=40;loss=0.3/1/0.2"
LINKS = "links:10/2/0.5"


def job(name: str, **more: Any) -> dict[str, Any]:
    return {"job": name, "arrival": 0.0, "gpus": 2, "duration": 3000.0, "min_gpus": 1, "max_gpus": 4, "scaling": SYNC, **more}


def test_exchanges_take_as_long_as_those_of_the_server_whose_workers_are_farthest() -> None:
    cluster = parse_cluster(f"gpu:4x4@2/rack,{LINKS}")
    assert TaskNodes((0, 0), (0, 0)).crossed(cluster) == pytest.approx(2 / 10)
    assert TaskNodes((0,), (1, 1)).crossed(cluster) == pytest.approx(1.0)
    assert TaskNodes((0, 1), (0, 1)).crossed(cluster) == pytest.approx((2 / 10 + 1) / 2)
    assert TaskNodes((0, 2), (0, 0)).crossed(cluster) == pytest.approx(2 / 0.5)  # the second server is in another rack
    assert TaskNodes((0, 1), (0, 1)).crossed(parse_cluster("gpu:4x4")) == 1.0


def test_jobs_of_every_policy_go_by_the_links_between_their_nodes() -> None:
    one, two = (simulate([job("a")], f"gpu:{size},{LINKS}", "fifo") for size in ("1x2", "2x1"))
    step = {crossed: 1 * 8 / 2 + 0.5 + 4 * 1 * crossed for crossed in (1.0, 0.2, 0.6)}  # duration speaks of nodes of one rack
    assert one.summary["average_jct"] == pytest.approx(3000 * step[0.2] / step[1.0])
    assert two.summary["average_jct"] == pytest.approx(3000 * step[0.6] / step[1.0])


def test_blocks_are_faster_than_balanced_seats() -> None:
    jobs = [job("a", max_gpus=2), job("b", max_gpus=2)]
    mean = {
        placed: simulate(jobs, f"gpu:4x2/16c/48g,{LINKS}", "optimus.drf", settings={"seats": placed}).summary["average_jct"]
        for placed in ("blocks", "spread")
    }
    assert mean["blocks"] < 0.8 * mean["spread"]


def test_balanced_tasks_go_where_most_is_free() -> None:
    demand = JointDemand((0.0, 3.0, 0.0), (1.0, 2.0, 0.0), (99.0, 99.0, 0.0))
    room = NodeRoom(np.arange(3), np.array([[2, 8, 0], [2, 10, 0], [2, 8, 0]], dtype=np.float64))
    placed = balance(JointTask(2, 3), demand, room, 0)
    assert placed is not None
    assert (placed.workers, placed.servers) == ([1, 2, 2], [0, 1])  # a worker, a server, a worker, ...
    assert room.free.tolist() == [[2, 5, 0], [1, 5, 0], [0, 4, 0]]
    assert balance(JointTask(1, 1), demand, NodeRoom(np.arange(1), np.array([[0.0, 9.0, 0.0]])), 0) is None


def test_a_shunned_node_is_taken_only_where_it_cannot_be_helped() -> None:
    demand = JointDemand((0.0, 3.0, 0.0), (1.0, 2.0, 0.0), (99.0, 99.0, 0.0))
    free = np.array([[4, 16, 0], [2, 10, 0]], dtype=np.float64)
    for task, nodes in ((JointTask(1, 1), {1}), (JointTask(2, 4), {0})):
        room = NodeRoom(np.arange(2), free.copy())
        placed = deal(task, demand, room, 0, [0])
        assert placed is not None
        assert set(placed.workers) | set(placed.servers) == nodes
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
    jobs = [job(name, gpus=3, min_gpus=3, max_gpus=3, duration=9000.0, scaling=f"{SYNC};slow={chance}/0.2")]
    replaced, kept = (
        simulate(jobs, "gpu:4x1/16c/48g", "optimus.drf", settings={"stragglers": how}, costs="30") for how in ("replace", "keep")
    )
    first, *rest = replaced.allocations.sort("start")["nodes"].to_list()
    assert len(rest) == 1
    assert len(set(first) & set(rest[0])) == 2
    assert kept.allocations.height == 1
    healthy = simulate([{**jobs[0], "scaling": SYNC}], "gpu:4x1/16c/48g", "optimus.drf", costs="30").summary["average_jct"]
    assert healthy < replaced.summary["average_jct"] < healthy + 600 + 60  # an interval at a fifth of its speed, and a restart
    assert kept.summary["average_jct"] > 4 * healthy


@pytest.mark.parametrize("text", ["slow=2/0.5", "slow=0.1/0", "slow=0.1"])
def test_stragglers_that_cannot_be_meant_are_told(text: str) -> None:
    with pytest.raises(UsageError, match="slow"):
        ServerJob.parse(f"{SYNC};{text}")
    assert ServerJob.parse(str(ServerJob.parse(f"{SYNC};slow=0.1/0.5"))).slow == (0.1, 0.5)


@pytest.mark.parametrize("setting", [{"seats": "heap"}, {"stragglers": "shout"}])
def test_words_that_nobody_knows_are_told(setting: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=next(iter(setting))):
        make_policy("optimus", setting)
