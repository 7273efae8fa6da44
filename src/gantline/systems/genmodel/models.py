"""Speeds of gangs by GenModel: each unit of work takes an AllReduce, planned by GenTree over the nodes and racks of the gang."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.cluster import Cluster
from gantline.models.links.allreduce import PROTOTYPE, CostConstants, Switch, plan_tree
from gantline.models.model import Gangs, PerformanceModel

SIZE = "allreduce_size"
"""The metric of a job: units of data (of the constants) that each of its devices brings to an AllReduce, one per unit of work."""


@dataclass(frozen=True)
class GenModel(PerformanceModel):
    """A job computes as fast as its options say, and then waits for its AllReduce; jobs without `allreduce_size` do not.

    Links within a node are those of the constants; between nodes and between racks they are slower as the cluster's bandwidths say.
    """

    constants: CostConstants = PROTOTYPE

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        rate, size = gangs.divided.copy(), gangs.metric(SIZE)
        for at in np.flatnonzero((gangs.gpus > 1) & (size > 0.0) & (rate > 0.0)).tolist():
            seconds = _seconds(_tree(gangs.cluster, gangs.nodes_by_rank(at)), float(size[at]), self.constants)
            rate[at] = 1.0 / (1.0 / rate[at] + seconds)
        return rate, np.full(len(gangs), np.inf)


@cache
def _seconds(tree: Switch, size: float, constants: CostConstants) -> float:
    return plan_tree(tree, size, constants).seconds


def _tree(cluster: Cluster, nodes_by_rank: Sequence[int]) -> Switch:
    """The nodes of a gang as switches over its devices, under racks, under the network."""
    speeds = cluster.bandwidths
    near, far = (speeds.node / speeds.rack, speeds.node / speeds.cluster) if speeds.known else (1.0, 1.0)
    racks: dict[str, list[Switch]] = {}
    for node, devices in sorted(Counter(nodes_by_rank).items()):
        racks.setdefault(cluster.nodes[node].rack, []).append(Switch(devices))
    under = [nodes[0] if len(nodes) == 1 else Switch(tuple(nodes), near) for nodes in racks.values()]
    return under[0] if len(under) == 1 else Switch(tuple(under), far)
