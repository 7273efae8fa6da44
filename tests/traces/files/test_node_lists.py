"""Node lists that come with public traces, and Slurm's own, become clusters."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.typed import typed

from gantline.core.errors import GantlineError
from gantline.traces.files.clusters import read_cluster
from gantline.traces.files.node_lists import cluster_text, read_node_list

LISTS = {
    "openb": ("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,0,\n",
              [("n0", "P100", 2, 64.0), ("n1", "cpu", 0, 96.0)]),
    "pai": ("m0,MISC,96,512,8\nm1,CPU,96,512,0\n", [("m0", "MISC", 8, 96.0), ("m1", "cpu", 0, 96.0)]),
    "philly": ("machineId,number of GPUs,single GPU mem\nm1, 2, 12GB\nm2, 8, 24GB\n",
               [("m1", "gpu-12gb", 2, 0.0), ("m2", "gpu-24gb", 8, 0.0)]),
    "sinfo": ("NODELIST|GRES|CPUS|MEMORY\ng1|gpu:a100:8(S:0-1)|128|1000\ng1|gpu:a100:8(S:0-1)|128|1000\nc1|(null)|64|500\n",
              [("g1", "a100", 8, 128.0), ("c1", "cpu", 0, 64.0)]),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_a_node_list_is_a_cluster(name: str, tmp_path: Path) -> None:
    text, nodes = LISTS[name]
    (tmp_path / "list").write_text(text, encoding="utf-8")
    found = read_node_list(name, tmp_path / "list")
    assert [(node.name, node.type, node.gpus, node.cpus) for node in found.nodes] == nodes
    (tmp_path / "c.yaml").write_text(cluster_text(found), encoding="utf-8")
    again = read_cluster(tmp_path / "c.yaml")
    assert [(node.name, node.type, node.gpus, node.cpus) for node in again.nodes] == nodes


def test_the_command_writes_what_cluster_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list").write_text(LISTS["sinfo"][0], encoding="utf-8")
    assert typed(f"trace cluster sinfo {tmp_path}/list {tmp_path}/c.yaml") == 0
    assert "2 nodes with 8 GPUs" in capsys.readouterr().err
    with pytest.raises(GantlineError, match="did you mean 'sinfo'"):
        read_node_list("slurm", tmp_path / "list")
