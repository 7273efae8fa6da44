"""How near the nodes of a gang are to one another, and the slowest link between them: in a node, in a rack, across racks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from gantline.core.errors import UsageError

if TYPE_CHECKING:
    from gantline.core.cluster import Cluster

IN_NODE, IN_RACK, ACROSS = 0, 1, 2


class Bandwidths(NamedTuple):
    """GB/s between devices of one node, between nodes of one rack, and between racks; 0: nobody said."""

    node: float = 0.0
    rack: float = 0.0
    cluster: float = 0.0

    @property
    def known(self) -> bool:
        return self.node > 0.0

    @staticmethod
    def of(numbers: Iterable[float], where: str) -> Bandwidths:
        """Three numbers above zero that do not rise with the distance."""
        found = tuple(numbers)
        falls = len(found) == 3 and all(0.0 < later <= earlier < float("inf") for earlier, later in zip((found[0], *found), found))
        if not falls:
            told = "/".join(f"{number:g}" for number in found)
            fix = "GB/s in a node, in a rack and across racks, none above the one before: links:300/25/6"
            raise UsageError(f"bandwidths of {told}", where=where, fix=fix)
        return Bandwidths(*found)


NO_BANDWIDTHS = Bandwidths()


def level_of(cluster: Cluster, nodes: Iterable[int]) -> int:
    """The highest boundary that a gang on these nodes crosses: IN_NODE (none), IN_RACK (that of nodes), ACROSS (that of racks)."""
    spans = set(nodes)
    if len(spans) < 2:
        return IN_NODE
    return IN_RACK if len({cluster.nodes[node].rack for node in spans}) == 1 else ACROSS


def slowest_link(cluster: Cluster, nodes: Iterable[int]) -> float:
    """GB/s of the slowest link between these nodes; 0: nobody said.

    A link that the cluster names between two nodes or two racks counts there in place of the bandwidth of its level.
    """
    spans = sorted(set(nodes))
    level = level_of(cluster, spans)
    if level == IN_NODE or not cluster.named_links:
        return cluster.bandwidths[level]
    found = []
    for a, b in combinations(spans, 2):
        one, other = cluster.nodes[a], cluster.nodes[b]
        near = one.rack == other.rack
        named = cluster.named_links.get(frozenset((one.name, other.name)))
        if named is None and not near:
            named = cluster.named_links.get(frozenset((one.rack, other.rack)))
        found.append((cluster.bandwidths.rack if near else cluster.bandwidths.cluster) if named is None else named)
    return min(found)
