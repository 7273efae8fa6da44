"""How slices of GPUs are written, and what is refused."""

from __future__ import annotations

import pytest

from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import UsageError
from gantline.core.slices import is_cpu, is_slice, parse_slices, slice_type, whole_and_percent
from gantline.traces.files.clusters import parse_cluster_yaml


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("8", [(12, 8)]), ("3", [(33, 3)]), ("48", [(2, 48)]), ("8%x4+16%x4", [(8, 4), (16, 4)]), ("50%+25%x2", [(50, 1), (25, 2)])],
)
def test_equal_slices_are_rounded_down_and_sizes_are_taken_as_they_are(text: str, sizes: list[tuple[int, int]]) -> None:
    assert list(parse_slices(text, "here")) == sizes


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1", "one slice is the whole GPU"),
        ("0", "0 slices of one GPU"),
        ("49", "49 slices of one GPU"),
        ("1%x49", "49 slices of one GPU"),
        ("50%x2+10%", "slices of 110 % of one GPU"),
        ("100%", "'100%' is no size"),
        ("8%x0", "'8%x0' is no size"),
        ("8%+8%", "slices of 8 % are listed twice"),
        ("eight", "'eight' is no size"),
        ("", "'' is no size"),
    ],
)
def test_slices_that_cannot_be_are_refused_with_the_reason(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what) as refused:
        parse_slices(text, "--devices")
    assert refused.value.fix


def test_the_type_of_a_slice_says_what_it_is_cut_from() -> None:
    assert whole_and_percent(slice_type("h200", 12)) == ("h200", 12)
    assert whole_and_percent("h200") == ("h200", 100)
    assert [is_slice(kind) for kind in ("h200.12pct", "cpu.1", "cpu-fast", "cpu-fast.50pct")] == [True, False, False, True]
    assert [is_cpu(kind) for kind in ("h200.12pct", "cpu", "cpu-fast", "cpu.50pct")] == [False, True, True, True]


def test_a_cluster_of_slices_has_a_gpu_for_a_node_and_a_machine_for_a_rack() -> None:
    cluster = parse_cluster("a100:2x2/4/16c/64g/80d")
    assert [(node.name, node.type, node.gpus, node.rack) for node in cluster.nodes] == [
        ("node0.0", "a100.25pct", 4, "node0"),
        ("node0.1", "a100.25pct", 4, "node0"),
        ("node2.0", "a100.25pct", 4, "node2"),
        ("node2.1", "a100.25pct", 4, "node2"),
    ]
    assert {(node.cpus, node.memory, node.device_memory) for node in cluster.nodes} == {(8.0, 32.0, 20.0)}
    assert parse_cluster_yaml("nodes: [{count: 2, type: a100, gpus: 2, slices: 4, cpus: 16, memory: 64, device_memory: 80}]") == cluster


def test_slices_of_two_sizes_are_two_types() -> None:
    cluster = parse_cluster_yaml("nodes: [{name: big, type: h200, gpus: 1, slices: 8%x4+16%x4}]")
    assert [(node.name, node.type, node.gpus) for node in cluster.nodes] == [
        ("big.0.8pct", "h200.8pct", 4),
        ("big.0.16pct", "h200.16pct", 4),
    ]
    assert parse_cluster("h200:1x1/8%x4+16%x4").types == cluster.types


@pytest.mark.parametrize(
    ("text", "what"),
    [("h200:1x1/49", "49 slices"), ("h200:1x1/1", "whole GPU"), ("h200:2x1/8@r1", "stand in no rack"), ("h200:1x1/50%x3", "150 %")],
)
def test_clusters_refuse_the_same(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        parse_cluster(text)
