"""A cluster by a CSV file of virtual clusters: each is a pool of nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantline.core.errors import GantlineError
from gantline.traces.files.clusters import read_cluster


def cluster_file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "vcs.csv"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("head", ["name,nodes", ",num"])
def test_each_virtual_cluster_is_a_pool_of_nodes_with_eight_gpus(tmp_path: Path, head: str) -> None:
    cluster = read_cluster(cluster_file(tmp_path, f"{head}\nresearch,2\nteaching,1\n"))

    assert [(node.name, node.pool, node.gpus) for node in cluster.nodes] == [
        ("research-0", "research", 8),
        ("research-1", "research", 8),
        ("teaching-0", "teaching", 8),
    ]


def test_a_column_says_how_many_gpus_nodes_have(tmp_path: Path) -> None:
    cluster = read_cluster(cluster_file(tmp_path, "name,nodes,gpus\nresearch,2,4\n"))

    assert cluster.gpus == 8


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("name,nodes\nresearch,0\n", "vcs.csv:2: field 'nodes': virtual cluster 'research' has 0"),
        ("name,nodes\nresearch,1.5\n", "has 1.5"),
        ("name,nodes\nresearch,two\n", "'two' is not a number"),
        ("name,nodes\nresearch,1\nresearch,2\n", "vcs.csv:3: two virtual clusters are called 'research'"),
        ("name,nodes\n,1\n", "has no name"),
        ("name,gpus\nresearch,1\n", "how many nodes"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_its_line(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(GantlineError, match=what):
        read_cluster(cluster_file(tmp_path, text))


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(GantlineError, match="no such file"):
        read_cluster("absent.csv")
