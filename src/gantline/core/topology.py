"""How near the nodes of a gang are to one another, and the slowest link between them: in a node, in a rack, across racks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from gantline.core.cluster import Cluster
from gantline.core.link_ends import RACK

IN_NODE, IN_RACK, ACROSS = 0, 1, 2


def level_of(cluster: Cluster, nodes: Iterable[int]) -> int:
    """The highest boundary that a gang on these nodes crosses: IN_NODE (none), IN_RACK (that of nodes), ACROSS (that of racks)."""
    spans = set(nodes)
    if len(spans) < 2:
        return IN_NODE
    return IN_RACK if len({cluster.nodes[node].rack for node in spans}) == 1 else ACROSS


def slowest_link(cluster: Cluster, nodes: Iterable[int]) -> float:
    """GB/s of the slowest link between these nodes; 0: not stated.

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
            named = cluster.named_links.get(frozenset((RACK + one.rack, RACK + other.rack)))
        found.append((cluster.bandwidths.rack if near else cluster.bandwidths.cluster) if named is None else named)
    return min(found)
