"""How the place of a gang changes its speed: tiers of racks, single devices that differ, and the links around a ring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.errors import UsageError
from gantline.core.facts import DeviceSpeeds
from gantline.core.topology import DOUBLE, PCIE, SINGLE, LinkGraph, level_of, server_graphs, slowest_link
from gantline.models.model import Gangs, PerformanceModel

_TIERS = "one machine, one rack, several racks"


@dataclass(frozen=True)
class PlacementTiers(PerformanceModel):
    """Slowdowns (one machine, one rack, several racks) of each network; those not named have `others`.

    >>> simulate(trace, "rack1:..", "themis", performance=PlacementTiers({"vgg": (1.0, 1.8, 3.0)}))

    Which machines a gang sits on is known to the run, however it was placed.
    """

    networks: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    others: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        for name, slowdowns in {**self.networks, "others": self.others}.items():
            if len(slowdowns) != 3 or not all(np.isfinite(slowdowns)) or list(slowdowns) != sorted(slowdowns) or slowdowns[0] < 1.0:
                what = f"the slowdowns of '{name}' are {tuple(slowdowns)}"
                raise UsageError(what, where="placement tiers", fix=f"three numbers from 1 on that do not fall: {_TIERS}")

    def slowdown(self, network: str, nodes: Sequence[int], cluster: Cluster) -> float:
        """How many times slower a gang on these nodes is than on one machine."""
        return self.networks.get(network, self.others)[level_of(cluster, nodes)]

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        rate = gangs.divided.copy()
        for at in np.flatnonzero(gangs.nodes > 1).tolist():
            rate[at] /= self.slowdown(gangs[at].model, gangs.places(at), gangs.cluster)
        return rate, np.full(len(gangs), np.inf)


# Devices of one type that differ: a gang goes at the pace of its slowest device, and slower again where it spans
# nodes (PAL, SC 2024).


@dataclass(frozen=True)
class VariableDevices(PerformanceModel):
    """Speeds as the jobs' options say, divided by what their devices and their spread over nodes cost them.

    `classes` says which column of the table a job reads; jobs that it does not name read the first one.
    """

    speeds: DeviceSpeeds
    penalty: float = 1.0
    classes: Mapping[str, str] = field(default_factory=dict)

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        rate, until = super().rates(gangs)
        names, first = gangs.jobs, self.speeds.classes[0]
        for at in range(len(gangs)):
            devices = gangs.devices(at)
            if devices:
                rate[at] /= self.speeds.of_gang(self.classes.get(names[at], first), list(devices), int(gangs.nodes[at]), self.penalty)
        return rate, until


# Effective bandwidth of a ring of GPUs (MAPA, SC 2021, section 3.4): what an AllReduce gets out of a mix of links.
#
# The coefficients are the authors': least squares over measured rings of a DGX-1 with V100s. Outside of what was
# measured the fit is a polynomial like any other: five GPUs of an idle DGX-1 are predicted to be faster over three
# single NVLinks and two hops of PCIe than over four double NVLinks and one.


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
