"""Links: their ends in one spelling, checked, and which of them a gang crosses."""

from __future__ import annotations

import pytest

from gantline.core.cluster import Cluster, Link, Node
from gantline.core.errors import UsageError
from gantline.core.inputs import Submit
from gantline.simulator.simulate import simulate
from gantline.traces.files.clusters import parse_cluster_yaml

TWO = "nodes: [{gpus: 2, count: 2, rack: r1}, {gpus: 2, count: 2, rack: r2}]\n"
LEAVES = tuple([Link(f"node{k}", f"rack:r{1 + k // 2}", 6.0) for k in range(4)] + [Link(f"rack:r{r}", "switch:core", 6.0) for r in (1, 2)])
NODES = tuple(Node(f"node{k}", gpus=2, rack=f"r{1 + k // 2}") for k in range(4))


@pytest.mark.parametrize(
    ("link", "what"),
    [
        ("{a: node0, b: node9, bandwidth: 3}", "no end 'node9'"),
        ("{a: node0:2, b: node1, bandwidth: 3}", "'node0:2', which is no device.*devices 0 to 1"),
        ("{a: rack:r1, b: rack:r9, bandwidth: 3}", "no rack 'r9'"),
        ("{a: r1, b: r2, bandwidth: 3}", "a rack is written rack:r1"),
        ("{a: node0, b: node1, bandwidth: -3}", "a bandwidth of -3"),
        ("{a: node0, b: node1}", "a bandwidth of 0"),
        ("{a: node0, b: node0, bandwidth: 3}", "from 'node0' to itself"),
    ],
)
def test_a_link_that_cannot_be_is_refused_with_its_place(link: str, what: str) -> None:
    with pytest.raises(UsageError, match=rf"links\[0\].*{what}"):
        parse_cluster_yaml(f"{TWO}links: [{link}]")


def test_a_second_link_between_two_ends_is_refused_since_one_of_them_would_not_count() -> None:
    with pytest.raises(UsageError, match=r"links\[1\]: connects 'node1' and 'node0', as links\[0\] does"):
        parse_cluster_yaml(f"{TWO}links: [{{a: node0, b: node1, bandwidth: 3}}, {{a: node1, b: node0, bandwidth: 5}}]")


@pytest.mark.parametrize(
    ("sends", "what"),
    [
        ({"stage_network": 0.3}, "communicates for 0.3 s of an iteration of 0.2 s"),
        ({"stage_network": -0.1}, "communicates for -0.1 s"),
        ({"link_bandwidth": -6.0}, "sends at -6 GB/s"),
    ],
)
def test_traffic_that_cannot_be_is_refused_in_a_trace_and_in_what_is_submitted(sends: dict[str, float], what: str) -> None:
    sends = {"iteration_time": 0.2, "stage_network": 0.1, "link_bandwidth": 6.0, **sends}
    one = {"job": "a", "arrival": 0.0, "gpus": 2, "duration": 60.0}
    network = Cluster(NODES, LEAVES)

    with pytest.raises(UsageError, match=f"job 'a' {what}"):
        simulate([one | sends], network, "fifo")
    with pytest.raises(UsageError, match=f"the job {what}"):
        simulate([one], network, "fifo", inputs=[Submit(0.0, {"id": "b", "gpus": 2, "metrics": sends}, 60.0)])
    assert simulate([one | sends], "4x2", "fifo").summary["completed"] == 1  # without links it says nothing


def test_every_kind_of_end_can_be_named() -> None:
    written = (
        "links: [{a: node0:1, b: node0, bandwidth: 50}, {a: node0, b: 'switch:s', bandwidth: 6}, {a: 'switch:s', b: storage, bandwidth: 2}]"
    )
    cluster = parse_cluster_yaml(TWO + written)

    assert [(link.a, link.b) for link in cluster.links] == [("node0:1", "node0"), ("node0", "switch:s"), ("switch:s", "storage")]
    assert sorted(cluster.routes.between("node0:1", "storage") or ()) == [0, 1, 2]


def test_a_gang_crosses_the_links_of_the_smallest_tree_over_its_nodes() -> None:
    routes = Cluster(NODES, LEAVES).routes

    assert routes.crossed((0, 1)) == ()  # one node
    assert routes.crossed((0, 2)) == (0, 1)  # one rack
    assert routes.crossed((0, 2, 4)) == (0, 1, 2, 4, 5)  # both racks, over the core


def test_nodes_are_in_their_rack_without_a_link_unless_one_is_named() -> None:
    routes = Cluster(NODES, (Link("rack:r1", "rack:r2", 6.0),)).routes

    assert (routes.crossed((0, 2)), routes.crossed((0, 4))) == ((), (0,))


def test_what_links_do_not_connect_is_said() -> None:
    assert Cluster(NODES, LEAVES).routes.apart() == []
    assert Cluster(NODES, LEAVES[:5]).routes.apart() == [["node0", "node1"], ["node2", "node3"]]
    assert Cluster(NODES, (Link("node0:0", "node0:1", 50.0),)).routes.apart() == []  # within nodes only
