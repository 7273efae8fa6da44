"""Effective bandwidth of a ring of GPUs (MAPA, SC 2021, section 3.4): what an AllReduce gets out of a mix of links.

The coefficients are the authors': least squares over measured rings of a DGX-1 with V100s. Outside of what was measured the fit is a
polynomial like any other: five GPUs of an idle DGX-1 are predicted to be faster over three single NVLinks and two hops of PCIe than over
four double NVLinks and one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.topology import DOUBLE, PCIE, SINGLE, LinkGraph, server_graphs, slowest_link
from gantline.models.model import Gangs, PerformanceModel


def effective_bandwidth(double: int, single: int, pcie: int) -> float:
    """GB/s over a ring of so many links of each class."""
    x, y, z = double, single, pcie
    return (
        16.39670455 * x + 4.536821878 * y + 1.55623404 * z
        - 20.69484581 / (x + 1) - 9.467461958 / (y + 1) + 7.615106783 / (z + 1)
        - 7.973335727 * x * y + 12.73323772 * y * z - 4.195655221 * x * z
        - 8.413419363 / (x * y + 1) + 62.85125807 / (y * z + 1) + 27.41832588 / (x * z + 1)
        - 5.114108079 * x * y * z - 46.97390071 / (x * y * z + 1)
    )  # fmt: skip


def links_of_ring(graph: LinkGraph, ring: Sequence[int]) -> tuple[int, int, int]:
    """Double NVLinks, single ones and hops of PCIe around a ring; the one link of a pair is passed twice, a single GPU has none."""
    return mix_of(graph.kind, ring_edges(ring))


def ring_edges(ring: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbours around a ring."""
    return [(ring[at - 1], ring[at]) for at in range(len(ring))] if len(ring) > 1 else []


def mix_of(kind: Ints, edges: Sequence[tuple[int, int]]) -> tuple[int, int, int]:
    """Double NVLinks, single ones and hops of PCIe among these edges."""
    kinds = [int(kind[a, b]) for a, b in edges]
    return kinds.count(DOUBLE), kinds.count(SINGLE), kinds.count(PCIE)


@dataclass(frozen=True)
class EffectiveBandwidth(PerformanceModel):
    """Gangs whose AllReduce takes as long as the ring of their devices, in rank order, makes it.

    The metric `allreduce_gb` of a job says how many GB its ring moves per unit of work; its options say how fast it computes. A job
    without that metric, and a gang of one device, go as their options say. No ring is taken to be slower than its slowest link. A gang
    that spans nodes has the slowest link between them, where the cluster states its bandwidths.
    """

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        rate, moved = gangs.divided.copy(), gangs.metric("allreduce_gb")
        graphs = server_graphs(gangs.cluster)
        for at in np.flatnonzero((gangs.gpus > 1) & (moved > 0.0) & (rate > 0.0)).tolist():
            speed = self._bandwidth(gangs, at, graphs)
            if speed > 0.0:
                rate[at] = 1.0 / (1.0 / rate[at] + moved[at] / speed)
        return rate, np.full(len(gangs), np.inf)

    def _bandwidth(self, gangs: Gangs, at: int, graphs: Sequence[LinkGraph]) -> float:
        """GB/s of one gang; 0: not stated."""
        nodes = gangs.places(at)
        if len(nodes) > 1:
            return slowest_link(gangs.cluster, nodes)
        first = int(gangs.cluster.first_device[nodes[0]])
        ring, graph = [device - first for device in gangs.devices(at)], graphs[nodes[0]]
        slowest = min(float(graph.bandwidth[a, b]) for a, b in ring_edges(ring))
        return max(slowest, effective_bandwidth(*links_of_ring(graph, ring)))
