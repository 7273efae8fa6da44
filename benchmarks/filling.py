"""CPU time of filling a cluster with pods, by rule, and of choosing a ring of GPUs.

    python -m benchmarks filling [PODS.csv NODES.csv]

Without files, 10,800 pods of 90 shapes on 1,213 nodes are drawn; rings are of 8 among 16 GPUs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from gantline.lab.experiment.cluster_filling import fill
from gantline.policies.placement.links.rules import RING_RULES
from gantline.policies.placement.links.topologies import find_topology
from gantline.policies.placement.parts.scores import PART_RULES


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pods, nodes = (Path(sys.argv[1]), Path(sys.argv[2])) if len(sys.argv) > 2 else _drawn(Path(folder))
        print("rule\tpods\tCPU s\talloc %")
        for rule in PART_RULES:
            fill(pods, nodes, rule)
            begin = time.process_time()
            found = fill(pods, nodes, rule)
            took = time.process_time() - begin
            print(f"{rule}\t{len(found.order)}\t{took:.3f}\t{found.curves['alloc'].drop_nulls()[-1]:.2f}")
    print("server\trule\tCPU ms")
    for server in ("torus-2d", "cubeMesh-16"):
        graph = find_topology(server)
        for rule in ("greedy", "preserve"):
            RING_RULES[rule](graph, range(16), 8, True)
            begin = time.process_time()
            RING_RULES[rule](graph, range(16), 8, True)
            print(f"{server}\t{rule}\t{1000 * (time.process_time() - begin):.1f}")


def _drawn(folder: Path) -> tuple[Path, Path]:
    """A list of the size of Alibaba's."""
    rng = np.random.default_rng(0)
    shapes = [(int(rng.integers(1, 17)) * 1000, 1, int(rng.integers(1, 11)) * 100) for _ in range(80)]
    shapes += [(8000 * count, count, 1000) for count in (2, 4, 8)] * 3 + [(4000, 0, 0)]
    rows = [
        f"p{at:05d},{cpu},8192,{gpus},{part}"
        for at, (cpu, gpus, part) in enumerate(shapes[k] for k in rng.integers(len(shapes), size=8200))
    ]
    pods, nodes = folder / "pods.csv", folder / "nodes.csv"
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "\n".join(rows) + "\n")
    sizes = [f"n{at:04d},{96000},{393216},{(2, 4, 8, 8)[at % 4]},T{at % 3}" for at in range(1213)]
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\n" + "\n".join(sizes) + "\n")
    return pods, nodes


if __name__ == "__main__":
    main()
