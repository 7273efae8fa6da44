"""Which devices of a node, by the measured bandwidth between them (Blox, EuroSys 2024, table 4).

Devices of one machine are not all connected alike: some pairs share NVLink, others only the PCIe bus. A gang takes the set of free devices
of one node with the most bandwidth between its members; larger gangs, and those that no node has room for, take the nodes with most free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.policies.placement.variability import Devices, by_node


@dataclass(frozen=True)
class PairBandwidth:
    """GB/s between devices of one node; unmeasured pairs have the least that was measured."""

    node: Sequence[int]
    measured: Mapping[tuple[int, int], float]
    other: float

    @staticmethod
    def of(cluster: Cluster) -> PairBandwidth:
        """From a cluster's links between devices, written NODE:NUMBER."""
        node = [int(each) for each in cluster.device_node]
        first = zip(cluster.nodes, cluster.first_device.tolist())
        number = {f"{each.name}:{k}": device + k for each, device in first for k in range(each.gpus)}
        measured: dict[tuple[int, int], float] = {}
        for link in cluster.links:
            if link.a in number and link.b in number:
                a, b = number[link.a], number[link.b]
                measured[min(a, b), max(a, b)] = link.bandwidth
        if not measured:
            fix = "list pairs of devices under 'links' in the cluster file: {a: node0:0, b: node0:1, bandwidth: 50}"
            raise RefusedError("the cluster says nothing of the bandwidth between its devices", where="--placement bandwidth", fix=fix)
        return PairBandwidth(node, measured, min(measured.values()))

    def mean(self, devices: Sequence[int]) -> float:
        """GB/s of a pair, mean over all pairs of a gang."""
        pairs = list(combinations(sorted(devices), 2))
        return sum(self.measured.get(pair, self.other) for pair in pairs) / len(pairs)


def most_bandwidth(free: Sequence[int], count: int, between: PairBandwidth) -> Devices | None:
    """The set on one node with the most bandwidth; of equal ones that of the tightest node, then the lowest devices."""
    if len(free) < count:
        return None
    nodes = sorted(by_node(free, between.node).values(), key=len)
    enough = [devices for devices in nodes if len(devices) >= count]
    if count == 1 and enough:
        return enough[0][:1]
    offers = (list(chosen) for devices in enough for chosen in combinations(devices, count))
    found = max(offers, key=between.mean, default=None)
    if found is not None:
        return found
    chosen: Devices = []
    for devices in reversed(nodes):
        chosen += devices[: count - len(chosen)]
    return chosen
