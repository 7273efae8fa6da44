"""Filling a cluster with pods: what is asked for, what is placed, and how mistakes in the two tables are told."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Cli, cli  # noqa: F401

from gantline import fill
from gantline.core.errors import GantlineError

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,8000,16000,2,T4\nn1,16000,64000,4,V100\nn2,8000,16000,0,\n"
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
a,1000,1000,1,500,
b,1000,1000,1,300,T4|V100
c,2000,4000,1,1000,
d,1000,1000,2,1000,V100
e,1000,1000,0,0,
"""


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    pods.write_text(PODS)
    nodes.write_text(NODES)
    return pods, nodes


def test_pods_ask_for_what_was_wanted_and_no_device_is_overbooked(tables: tuple[Path, Path]) -> None:
    found = fill(*tables, "fgd", tune=1.3, seed=1)
    assert 6000 * 1.3 - 2000 < found.asked[-1] <= 6000 * 1.3
    assert found.failed == found.placements["node"].null_count() > 0
    assert found.filled.used[-1] <= 6000
    assert found.curves["alloc"].drop_nulls().is_sorted()
    assert len(found.curves) == 131


def test_a_load_below_the_trace_leaves_pods_out(tables: tuple[Path, Path]) -> None:
    found = fill(*tables, tune=0.3)
    assert found.asked[-1] <= 1800
    assert len(set(found.placements["pod"])) == len(found.order) < 5


def test_equal_seeds_are_equal_and_others_are_not(tables: tuple[Path, Path]) -> None:
    one, again, other = (fill(*tables, "random", seed=seed).placements for seed in (3, 3, 4))
    assert one.equals(again)
    assert not one.equals(other)


def test_memory_bounds_a_node_although_no_score_sees_it(tables: tuple[Path, Path]) -> None:
    pods, nodes = tables
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\nbig,0,40000,1,100\n")
    found = fill(pods, nodes, "packing", tune=0.1)
    assert set(found.placements["node"]) == {"n1", None}


def test_a_tie_goes_to_the_first_node_also_where_scores_differ_a_little(tables: tuple[Path, Path]) -> None:
    pods, nodes = tables
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,0,1,1000\n")
    first, close = (fill(pods, nodes, "bestfit", tune=0.2, tie=tie).placements["node"][0] for tie in (0.0, 100.0))
    assert (first, close) == ("n0", "n0")
    nodes.write_text(NODES.replace("n0", "n9"))
    first, close = (fill(pods, nodes, "bestfit", tune=0.2, tie=tie).placements["node"][0] for tie in (0.0, 100.0))
    assert (first, close) == ("n9", "n1")


def test_the_command_writes_curves_and_placements(cli: Cli, tables: tuple[Path, Path], tmp_path: Path) -> None:  # noqa: F811
    pods, nodes = tables
    curves, where = tmp_path / "curves.csv", tmp_path / "where.csv"
    done = cli("placement", "fill", pods, "--cluster", nodes, "--placement", "bestfit", "--compat", "fgd", "--out", curves,
               "--placements", where, "-o", "json")  # fmt: skip
    assert done.code == 0
    table = pl.read_csv(curves)
    assert table.columns == ["arrived", "alloc", "frag", "frag_of_idle"]
    assert done.json[0]["alloc"] == table["alloc"].drop_nulls()[-1]
    assert pl.read_csv(where)["node"].null_count() == done.json[0]["failed"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("c,2000,4000,1,1000,", "c,2000,4000,1,1500,"), "pods.csv:4: field 'gpu_milli': 1500 thousandths of each GPU"),
        (("d,1000,1000,2,1000,", "d,1000,1000,2,500,"), "parts are of one GPU"),
        (("T4|V100", "H100"), "no node has model 'H100'"),
        (("a,1000", "a,-1000"), "-1000 is below zero"),
        (("b,1000", "a,1000"), "'a' stands here twice"),
        (("c,2000,4000,1,", "c,2000,4000,1.5,"), "1.5 is not a whole number of GPUs"),
        (("gpu_milli", "milli"), "column 'gpu_milli' is missing"),
        (("e,1000,1000,0,0", "e,,1000,0,0"), "is empty"),
    ],
)
def test_a_mistake_in_the_pods_is_told_with_its_line(tables: tuple[Path, Path], change: tuple[str, str], told: str) -> None:
    pods, nodes = tables
    pods.write_text(PODS.replace(*change))
    with pytest.raises(GantlineError, match=f"(?s){told}"):
        fill(pods, nodes)


def test_other_mistakes_are_told(tables: tuple[Path, Path]) -> None:
    for options, told in (
        ({"placement": "fdg"}, "no rule 'fdg'.*did you mean 'fgd'"),
        ({"tune": 0.0}, "0 is not a load"),
        ({"tie": -1.0}, "-1 is not a difference of scores"),
        ({"compat": "gfd"}, "no scheme of a filling 'gfd'"),
    ):
        with pytest.raises(GantlineError, match=told):
            fill(*tables, **options)
    pods, nodes = tables
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn2,8000,16000,0,\n")
    with pytest.raises(GantlineError, match="no node has GPUs"):
        fill(pods, nodes)
