"""Clusters as people write them, short and in YAML."""

from __future__ import annotations

import pytest

from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import UsageError
from gantline.traces.files.clusters import parse_cluster_yaml


def test_nodes_times_gpus():
    cluster = parse_cluster("32x4")
    assert (len(cluster.nodes), cluster.gpus, cluster.types) == (32, 128, ("gpu",))


def test_types_without_a_size_are_servers_of_one_gpu_as_gavel_counts():
    cluster = parse_cluster("v100:36,p100:36,k80:36")
    assert (len(cluster.nodes), cluster.gpus) == (108, 108)
    assert cluster.gpus_of("p100") == 36


def test_racks_cpus_and_memory():
    cluster = parse_cluster("v100:4x8/96c/512g@rack1,cpu:2x0/40c@rack2")
    assert [node.rack for node in cluster.nodes] == ["rack1"] * 4 + ["rack2"] * 2
    assert (cluster.nodes[0].cpus, cluster.nodes[0].memory, cluster.nodes[5].gpus) == (96, 512, 0)


def test_yaml_says_the_same_in_words_with_links_and_pools():
    cluster = parse_cluster_yaml(
        """
        name: ours
        nodes:
          - {name: big, count: 2, type: a100, gpus: 8, cpus: 128, memory: 1024, rack: r1, pool: training}
          - {type: t4, gpus: 4, rack: r2, pool: inference}
        links:
          - {a: rack:r1, b: rack:r2, bandwidth: 12.5}
        """
    )
    assert [node.name for node in cluster.nodes] == ["big-0", "big-1", "node2"]
    assert cluster.nodes[2].pool == "inference"
    assert cluster.links[0].bandwidth == 12.5


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("32by4", "not a group"),
        ("0x4", "no nodes"),
        ("v100:4x8,,k80:2", "not a group"),
        ("v100:-3", "not a group"),
    ],
)
def test_a_broken_short_form_is_named(text, told):
    with pytest.raises(UsageError, match=told):
        parse_cluster(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nodes: [", "broken YAML"),
        ("machines: []", "no list 'nodes'"),
        ("nodes: [4]", r"nodes\[0\]"),
        ("nodes: [{type: v100, gpu: 8}]", "unknown key 'gpu'"),
        ("nodes: [{type: v100, gpus: many}]", "'gpus' is 'many'"),
        ("nodes: [{type: v100, gpus: -8}]", "'gpus' is -8"),
        ("nodes: [{gpus: 8}]\nlinks: [{a: r1}]", "needs 'a' and 'b'"),
    ],
)
def test_broken_yaml_is_named_with_its_place(text, told):
    with pytest.raises(UsageError, match=told):
        parse_cluster_yaml(text)
