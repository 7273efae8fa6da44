"""Nodes of one GPU type and size, and the sizes of gangs that tile them: powers of two within a node, whole nodes beyond it.

These are the configurations of Sia (SOSP 2023, section 3.3), for any size of node; jobs with measured profiles are offered them too.
"""

from __future__ import annotations

from dataclasses import dataclass

from gantline.core.cluster import Cluster


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes of one GPU type and size."""

    type: str
    size: int
    nodes: tuple[int, ...]  # their numbers in the cluster

    @property
    def gpus(self) -> int:
        return self.size * len(self.nodes)

    def widths(self) -> list[tuple[int, int]]:
        """(nodes, GPUs) of its configurations, ascending."""
        below = [(1, 1 << k) for k in range(self.size.bit_length()) if 1 << k < self.size]
        return below + [(n, n * self.size) for n in range(1, len(self.nodes) + 1)]


def node_classes(cluster: Cluster) -> tuple[NodeClass, ...]:
    """The classes of nodes with GPUs, in the order in which the cluster names them."""
    found: dict[tuple[str, int], list[int]] = {}
    for number, node in enumerate(cluster.nodes):
        if node.gpus > 0:
            found.setdefault((node.type, node.gpus), []).append(number)
    return tuple(NodeClass(type_, size, tuple(nodes)) for (type_, size), nodes in found.items())
