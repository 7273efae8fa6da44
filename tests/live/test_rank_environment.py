"""What ranks find in their environment: torchrun's names, true for gangs over several nodes, and a port that no other gang has."""

from __future__ import annotations

import pytest

from gantline.core.grant import Grant
from gantline.core.plan import Assignment
from gantline.engine.executor import Order, Verb
from gantline.live.jobs.launch import PER_NODE, Launch
from gantline.live.runners.job_environment import free_port, gang_ranks, job_environment
from gantline.live.runners.local.orders import rank_environments
from gantline.live.runners.runner_context import Task


def gang(processes: int, **places: int) -> list[tuple[str, ...]]:
    """Node, RANK, LOCAL_RANK, LOCAL_WORLD_SIZE and NODE_RANK of each rank."""
    found = gang_ranks(Launch(("train",), processes=processes), {node: range(count) for node, count in places.items()}, "10.0.0.7", 4000)
    assert {(rank.env["MASTER_ADDR"], rank.env["MASTER_PORT"]) for rank in found} == {("10.0.0.7", "4000")}
    assert {(rank.env["WORLD_SIZE"], rank.env["NNODES"]) for rank in found} == {(str(len(found)), str(len(places)))}
    assert all(rank.env["GPUS_PER_NODE"] == str(max(places[rank.node], 1)) for rank in found)
    names = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK")
    return [(rank.node, *(rank.env[name] for name in names)) for rank in found]


def test_a_rank_per_device_over_two_nodes_of_different_sizes() -> None:
    assert gang(0, b=1, a=2) == [("b", "0", "0", "1", "0"), ("a", "1", "0", "2", "1"), ("a", "2", "1", "2", "1")]


def test_a_process_on_each_node_is_a_rank_of_its_own() -> None:
    assert gang(PER_NODE, a=4, b=4) == [("a", "0", "0", "1", "0"), ("b", "1", "0", "1", "1")]


def test_more_processes_than_devices_are_divided_by_devices() -> None:
    assert [rank[0] for rank in gang(6, a=2, b=1)] == ["a", "a", "a", "a", "b", "b"]


@pytest.mark.parametrize("places", [{"a": 2}, {"a": 0}])
def test_one_process_is_on_one_node(places: dict[str, int]) -> None:
    assert gang(1, **places) == [("a", "0", "0", "1", "0")]


def test_what_all_ranks_share_says_which_job_where_and_how_it_reports() -> None:
    launch = Launch(("train",), env={"CHECKPOINT_PATH": "/keep/$JOB_ID"}, array_index=3)
    order = Order(Verb.START, 0, 5, (0, 4), grant=Grant((Assignment(0, batch=64),)))
    found = job_environment(Task("17_3", launch, 2, env={"GANTLINE_JOB_TOKEN": "t"}), order, ["a:0", "b:1"], "http://head:80", "/jobs/17_3")
    assert found == {
        "GANTLINE_URL": "http://head:80", "GANTLINE_JOB_ID": "17_3", "JOB_ID": "17_3", "GANTLINE_CHECKPOINT": "/jobs/17_3",
        "GANTLINE_EPOCH": "5", "GANTLINE_DEVICES": "a:0,b:1", "GANTLINE_GPUS": "2", "GANTLINE_BATCH": "64", "RESTART_COUNT": "2",
        "CHECKPOINT_PATH": "/keep/17_3", "ARRAY_INDEX": "3", "GANTLINE_JOB_TOKEN": "t",
    }  # fmt: skip


def test_every_gang_has_a_port_of_its_own_a_single_rank_too() -> None:
    gangs = [rank_environments(Launch((), processes=0), count) for count in (1, 1, 1, 2, 4) * 20]
    ports = [{rank["MASTER_PORT"] for rank in gang} for gang in gangs]
    assert all(len(of_gang) == 1 for of_gang in ports)
    assert len(set.union(*ports)) == len(gangs)
    assert free_port() not in {int(port) for of_gang in ports for port in of_gang}
