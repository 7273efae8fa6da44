"""Racks and links: gangs keep within racks where they can, and the slowest link between their nodes is their pace."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jobs import by_job, held_by, job_row

from gantline import simulate
from gantline.core.cluster import Cluster, Link, Node
from gantline.core.cluster_spec import decode_cluster, encode_cluster, grown, parse_cluster
from gantline.core.columns import Node as NodeColumn
from gantline.core.errors import UsageError
from gantline.core.json_reader import Reader
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.tables import Tables
from gantline.core.topology import ACROSS, IN_NODE, IN_RACK, level_of, slowest_link
from gantline.lab.report.metrics import measure
from gantline.models.links.slowest_link_scaling import Scaling
from gantline.policies.placement import fit
from gantline.policies.placement.fit import NodeCounts, Supply
from gantline.traces.files.clusters import parse_cluster_yaml

RACKS = "gpu:6x4@2/rack,links:300/20/5"
GRADIENTS = "fixed=0.1;gradients=1.5"  # GB: 0.005 s in a node, 0.075 in a rack, 0.3 across


def test_racks_of_so_many_nodes_and_the_bandwidth_of_each_level() -> None:
    cluster = parse_cluster("v100:3x8@2/rack,k80:1x4@r9,t4:2x4@1/rack,links:300/25/6")
    assert [node.rack for node in cluster.nodes] == ["rack0", "rack0", "rack1", "r9", "rack2", "rack3"]
    assert cluster.bandwidths == (300, 25, 6)
    written = parse_cluster_yaml(
        "nodes: [{count: 3, type: v100, gpus: 8, per_rack: 2}, {type: k80, gpus: 4, rack: r9}, "
        "{count: 2, type: t4, gpus: 4, per_rack: 1}]\n"
        "bandwidths: {node: 300, rack: 25, cluster: 6}"
    )
    assert written == cluster
    assert grown("8x4@4/rack,links:300/25/6", 0.5) == "12x4@4/rack,links:300/25/6"
    for one in (cluster, Cluster(cluster.nodes, (Link("rack:rack0", "rack:rack1", 9.0),), "", cluster.bandwidths)):
        assert decode_cluster(Reader({"cluster": encode_cluster(one)}, "")) == one


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("8x4@0/rack", "racks of no node"),
        ("8x4,links:300/25", "300/25"),
        ("8x4,links:300/25/fast", "'fast' is no bandwidth"),
        ("8x4,links:300/25/0", "bandwidths of 300/25/0"),
        ("8x4,links:25/300/6", "none above the one before"),
        ("links:300/25/6", "links without nodes"),
        ("links:300/25/6,8x4", "not a group"),
    ],
)
def test_racks_and_links_that_cannot_be_meant_are_told(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_cluster(text)


def test_bandwidths_of_a_file_need_all_three_levels() -> None:
    with pytest.raises(UsageError, match="needs 'node', 'rack' and 'cluster'"):
        parse_cluster_yaml("nodes: [{gpus: 8}]\nbandwidths: {node: 300}")
    with pytest.raises(UsageError, match=r"links\[0\]: no rack 'rack9'"):
        parse_cluster_yaml("nodes: [{gpus: 8, count: 2, per_rack: 1}]\nlinks: [{a: rack:rack0, b: rack:rack9, bandwidth: 3}]")
    with pytest.raises(UsageError, match="racks of no node"):
        parse_cluster_yaml("nodes: [{gpus: 8, count: 2, per_rack: 0}]")


def test_a_named_link_counts_in_place_of_its_level() -> None:
    links = (Link("rack:rack0", "rack:rack1", 2.0), Link("node0", "node1", 50.0))
    cluster = replace(parse_cluster(RACKS), links=links)
    pace = {(0,): 300.0, (0, 1): 50.0, (2, 3): 20.0, (0, 2): 2.0, (2, 4): 5.0, (0, 1, 4): 5.0, (0, 2, 4): 2.0}
    assert {nodes: slowest_link(cluster, nodes) for nodes in pace} == pace
    assert [level_of(cluster, nodes) for nodes in ((0,), (0, 1), (1, 2))] == [IN_NODE, IN_RACK, ACROSS]


class Put(Policy):
    """The first job on the nodes it is told, a device on each."""

    name = "put"
    nodes: tuple[int, ...] = ()
    seen: tuple[Any, ...] = ()

    def decide(self, snapshot: Snapshot) -> Plan:
        cluster = snapshot.cluster
        Put.seen = (cluster.node_rack.tolist(), cluster.racks, cluster.bandwidths, cluster.slowest_link(self.nodes))
        first = [int(np.flatnonzero(cluster.device_node == node)[0]) for node in self.nodes]
        return Plan.assign([Assignment(0, devices=tuple(first))] if len(snapshot.jobs) else [])


@pytest.mark.parametrize(("nodes", "pace"), [((0, 1), 20.0), ((0, 5), 5.0)])
def test_a_gang_is_as_fast_as_the_slowest_link_between_its_nodes_and_policies_see_which_it_is(nodes: tuple[int, ...], pace: float) -> None:
    told = Put()
    told.nodes = nodes
    run = simulate([job_row("a", 2, scaling=GRADIENTS, batch_size=2)], RACKS, told)
    step = {link: 0.1 + 2 * 1 / 2 * 1.5 / link for link in (300.0, 20.0, 5.0)}
    assert run.summary["average_jct"] == pytest.approx(100 * step[pace] / step[300.0])
    assert Put.seen == ([0, 0, 1, 1, 2, 2], ("rack0", "rack1", "rack2"), (300, 20, 5), pace)
    assert (run.summary["cross_node_jobs"], run.summary["cross_rack_jobs"]) == (1, int(pace == 5.0))
    assert measure(run)["cross_rack"] == float(pace == 5.0)


def test_seconds_across_nodes_are_those_in_a_rack_and_grow_with_slower_links() -> None:
    job = job_row("a", 8, scaling="fixed=0.1;across=0.2", batch_size=8)
    near = simulate([job], "gpu:4x4@2/rack,links:300/20/5", "fifo", placement="consolidated")
    assert near.summary["average_jct"] == pytest.approx(100.0)
    blocker = job_row("b", 1, 1000)
    far = simulate([blocker, {**blocker, "job": "c"}, job], "gpu:4x4@2/rack,links:300/20/5", "fifo", placement="first-free")
    found = by_job(far, "jct")
    exchange = 2 * 7 / 8 * 0.2
    assert found["a"] == pytest.approx(100 * (0.1 + exchange * 4) / (0.1 + exchange))  # 2 on node 0, 4 on 1, 2 in the next rack
    assert simulate([job], "gpu:4x4", "fifo").summary["average_jct"] == pytest.approx(100.0)  # no links named: as before


def test_gradients_need_links_and_no_seconds_beside_them() -> None:
    job = job_row("a", 2, scaling=GRADIENTS, batch_size=2)
    with pytest.raises(UsageError, match=r"'a'.*gradients in GB, and no bandwidths"):
        simulate([job], "gpu:2x4", "fifo")
    with pytest.raises(UsageError, match="gradients beside within"):
        Scaling.parse("fixed=1;gradients=1;within=1")
    assert Scaling.parse(str(Scaling.parse(GRADIENTS, 2)), 2) == Scaling.parse(GRADIENTS, 2)


def spans(text: str, free: list[int], need: int, rule: int) -> tuple[int, int] | None:
    """Racks and nodes of a gang by the compiled choice; None: it waits."""
    tables = Tables.empty(parse_cluster(text))
    tables.NI[NodeColumn.FREE] = free
    before = tables.NI.copy()
    nodes, counts = np.zeros(20, dtype=np.int64), np.zeros(20, dtype=np.int64)
    supply, picking = Supply(tables.NF, tables.NI, 0, 0.0, 0.0, 0.0, False), fit.Picking(rule, True, False, 0)
    used = fit.choose(supply, need, 0, picking, NodeCounts(nodes, counts))
    assert (before == tables.NI).all()
    if used == 0:
        return None
    assert counts[:used].sum() == need
    assert all(count <= free[node] for node, count in zip(nodes[:used], counts[:used]))
    return len({int(tables.NI[NodeColumn.RACK, node]) for node in nodes[:used]}), used


@given(st.lists(st.integers(0, 2), min_size=6, max_size=6), st.integers(1, 12), st.integers(1, 4))
def test_preferred_placement_crosses_racks_only_where_no_single_rack_has_room(free: list[int], need: int, per_rack: int) -> None:
    found = spans(f"6x2@{per_rack}/rack", free, need, fit.PREFERRED)
    racks = [sum(free[at : at + per_rack]) for at in range(0, 6, per_rack)]
    fewest = next((k for k in range(1, len(racks) + 1) if max(map(sum, combinations(racks, k))) >= need), None)
    single = any(room >= need for room in free)
    assert (found is None) == (fewest is None)
    if found is not None:
        assert found[0] == fewest
        assert found[1] == 1 if single else found[1] > 1


def test_consolidated_takes_the_tightest_rack_and_whole_nodes() -> None:
    assert spans("6x4@2/rack", [4, 0, 4, 4, 4, 4], 8, fit.CONSOLIDATED) == (1, 2)
    assert spans("6x4@2/rack", [4, 0, 4, 0, 4, 0], 8, fit.CONSOLIDATED) == (2, 2)
    assert spans("6x4@2/rack", [4, 3, 4, 3, 4, 3], 4, fit.CONSOLIDATED) == (1, 1)
    assert spans("6x4@2/rack", [3, 3, 3, 3, 3, 3], 4, fit.CONSOLIDATED) is None


@pytest.mark.parametrize("policy", ["fifo", "las", "equal-share"])
def test_every_loop_keeps_gangs_within_racks(policy: str) -> None:
    """By a declared key, by a ranking and by assignments: two small jobs leave room for a gang of two nodes in the third rack only."""
    small = [job_row(f"s{k}", 4, 500) for k in range(3)]
    jobs = [*small, job_row("wide", 8, at=10)]
    for placement, together in (("consolidated", True), ("consolidated:preferred", True), ("first-free", False)):
        run = simulate(jobs, "6x4@2/rack", policy, placement=placement)
        wide = held_by(run, "wide")["nodes"].to_list()[0]
        assert (len({node // 2 for node in wide}) == 1) == together, placement


def test_a_node_that_joins_stands_in_its_rack() -> None:
    nodes = (Node("a", gpus=2, rack="x"), Node("b", gpus=2, rack="y"))
    run = simulate([job_row("j", 4, 10)], Cluster(nodes), "fifo")
    assert run.summary["node_racks"] == [(0, 1), (1, 1)]
    assert run.summary["cross_rack_jobs"] == 1
