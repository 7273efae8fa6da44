"""How near devices are to one another: the nodes of a gang in a cluster, and the GPUs of one server.

The links of a server are a complete graph whose edges have a class and a bandwidth. Classes are those of MAPA (Ranganath et al., SC 2021):
two NVLinks bound together, one NVLink, or the PCIe bus, which connects the pairs that no NVLink does.

What a trace says of how jobs use links are metrics: `iteration_time` and `stage_network` in seconds, `link_bandwidth` in GB/s (unknown:
as much as the link has). A job communicates at the end of its iteration. One of which the first two are unknown, or that never
communicates, uses no link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.cluster import RACK, Cluster
from gantline.core.errors import UsageError

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


PCIE, SINGLE, DOUBLE = 0, 1, 2
LINK_CLASSES = {"PCIe": PCIE, "SingleNVLink": SINGLE, "DoubleNVLink": DOUBLE}
CLASS_NAMES = {kind: name for name, kind in LINK_CLASSES.items()}
PCIE_GBPS = 10.0
"""What a pair without a link of its own has."""
_SINGLE_FROM, _DOUBLE_FROM = 15.0, 40.0
MOST_GPUS = 16


def class_of(bandwidth: float) -> int:
    """The class of a link of which only the GB/s are known: NVLinks have 20 or 25 each."""
    return DOUBLE if bandwidth >= _DOUBLE_FROM else SINGLE if bandwidth >= _SINGLE_FROM else PCIE


class GpuLink(NamedTuple):
    """A link between two GPUs of a server; `kind` below zero: by its bandwidth."""

    a: str
    b: str
    bandwidth: float
    kind: int = -1


@dataclass(frozen=True)
class LinkGraph:
    """A server: the names of its GPUs in order, and for each pair the class of its link and its GB/s."""

    gpus: tuple[str, ...]
    kind: Ints
    bandwidth: Floats
    group: int = 4
    """GPUs with consecutive numbers under one root of the bus."""

    @staticmethod
    def of(gpus: Sequence[str], links: Iterable[GpuLink], where: str, group: int = 4) -> LinkGraph:
        """From a list of links, each pair once; what cannot be is refused with the pair."""
        names = tuple(gpus)
        if len(names) > MOST_GPUS:
            raise UsageError(f"{len(names)} GPUs", where=where, fix=f"a server of {MOST_GPUS} at most")
        place = {name: at for at, name in enumerate(names)}
        kind = np.full((len(names), len(names)), PCIE, dtype=np.int64)
        bandwidth = np.zeros((len(names), len(names)))
        for link in links:
            for end in (link.a, link.b):
                if end not in place:
                    raise UsageError(f"a link ends at '{end}', which is no GPU", where=where, fix=f"it has {', '.join(names)}")
            a, b = place[link.a], place[link.b]
            if a == b:
                raise UsageError(f"a link leads from '{link.a}' to itself", where=where, fix="remove it")
            if not 0.0 < link.bandwidth < float("inf"):
                what = f"the link from '{link.a}' to '{link.b}' has {link.bandwidth:g} GB/s"
                raise UsageError(what, where=where, fix="a number above zero, or leave the link out")
            if bandwidth[a, b] > 0.0:
                raise UsageError(f"two links between '{link.a}' and '{link.b}'", where=where, fix="one for each pair")
            kind[a, b] = kind[b, a] = class_of(link.bandwidth) if link.kind < 0 else link.kind
            bandwidth[a, b] = bandwidth[b, a] = link.bandwidth
        return LinkGraph(names, kind, bandwidth, group)

    def with_bus(self) -> LinkGraph:
        """The same, with the PCIe bus between pairs that have no link of their own."""
        bare = (self.bandwidth == 0.0) & ~np.eye(len(self.gpus), dtype=np.bool_)
        return LinkGraph(self.gpus, self.kind, np.where(bare, PCIE_GBPS, self.bandwidth), self.group)

    def check_connected(self, where: str) -> None:
        """Refuse a graph with GPUs that no chain of links connects."""
        reached, frontier = {0}, [0]
        while frontier:
            at = frontier.pop()
            new = [int(other) for other in np.flatnonzero(self.bandwidth[at] > 0.0) if int(other) not in reached]
            reached.update(new)
            frontier += new
        lost = [name for at, name in enumerate(self.gpus) if at not in reached]
        if lost:
            what = f"nothing connects '{self.gpus[0]}' and '{lost[0]}'"
            raise UsageError(what, where=where, fix="list the links between them; PCIe counts too")

    def routed(self) -> LinkGraph:
        """Pairs on the bus get the NVLink route over one other GPU that has most, where there is one: as fast as its slower link."""
        kind, bandwidth = self.kind.copy(), self.bandwidth.copy()
        nvlink = np.where(self.kind > PCIE, self.bandwidth, 0.0)
        for a, b in zip(*np.nonzero(np.triu(self.kind == PCIE, 1))):
            over = np.minimum(nvlink[a], nvlink[b])
            best = int(np.argmax(over))
            if over[best] > bandwidth[a, b]:
                kind[a, b] = kind[b, a] = min(self.kind[a, best], self.kind[b, best])
                bandwidth[a, b] = bandwidth[b, a] = over[best]
        return LinkGraph(self.gpus, kind, bandwidth, self.group)

    @property
    def nvlinks(self) -> Floats:
        """GB/s of the NVLinks alone."""
        return np.where(self.kind > PCIE, self.bandwidth, 0.0)

    def some(self, at: Sequence[int]) -> LinkGraph:
        """The part of the server with these GPUs."""
        own: Bools | Ints = np.array(at, dtype=np.int64)
        return LinkGraph(tuple(self.gpus[each] for each in at), self.kind[np.ix_(own, own)], self.bandwidth[np.ix_(own, own)], self.group)


def graph_of_pairs(gpus: int, classes: Mapping[tuple[int, float], str], group: int = 4) -> LinkGraph:
    """A server whose GPUs are numbered from 1: NVLinks as `1-2 1-3`, by class and GB/s; the bus connects all others."""
    listed = [(pair.partition("-"), gbps, kind) for (kind, gbps), pairs in classes.items() for pair in pairs.split()]
    links = [GpuLink(a, b, gbps, kind) for (a, _, b), gbps, kind in listed]
    return LinkGraph.of([str(number + 1) for number in range(gpus)], links, "topology", group).with_bus()


def server_graphs(cluster: Cluster) -> list[LinkGraph]:
    """The link graph of each node, from the links between devices (`node0:3`) that a cluster lists; the bus connects all other pairs."""
    links: dict[str, list[GpuLink]] = {node.name: [] for node in cluster.nodes}
    for link in cluster.links:
        (a, _, first), (b, _, second) = link.a.rpartition(":"), link.b.rpartition(":")
        if a == b and a in links:
            links[a].append(GpuLink(first, second, link.bandwidth, LINK_CLASSES.get(link.kind, -1)))
    named = [([str(number) for number in range(node.gpus)], node.name) for node in cluster.nodes]
    return [LinkGraph.of(gpus, links[name], f"links of node '{name}'").with_bus() for gpus, name in named]


ITERATION, NETWORK, BANDWIDTH = "iteration_time", "stage_network", "link_bandwidth"


class Traffic(NamedTuple):
    """Per job: seconds of an iteration, seconds of it on the network, GB/s meanwhile (infinite: as much as there is)."""

    iteration: Floats
    network: Floats
    bandwidth: Floats

    @staticmethod
    def read(metric: Callable[[str, Ints], Floats], rows: Ints) -> Traffic:
        """The columns of some rows; zeros where a job uses no link."""
        iteration, network, bandwidth = (np.asarray(metric(name, rows), dtype=np.float64) for name in (ITERATION, NETWORK, BANDWIDTH))
        known: Bools = (iteration > 0.0) & (network > 0.0) & (network <= iteration)
        asked = np.where(bandwidth > 0.0, bandwidth, np.inf)
        return Traffic(np.where(known, iteration, 0.0), np.where(known, network, 0.0), np.where(known, asked, 0.0))

    @property
    def known(self) -> Bools:
        """Which jobs use links."""
        return np.asarray(self.iteration > 0.0)

    def mean(self, job: int, most: float) -> float:
        """GB/s on average over an iteration, with `most` at any time."""
        if not self.iteration[job] > 0.0:
            return 0.0
        return float(min(self.bandwidth[job], most) * self.network[job] / self.iteration[job])


class TrafficFault(NamedTuple):
    """Traffic that cannot be: of which job (its place), in which metric, what is wrong, and what would be right."""

    job: int
    metric: str
    what: str
    fix: str


def traffic_fault(iteration: Floats, network: Floats, bandwidth: Floats) -> TrafficFault | None:
    """The first fault in what jobs say of their traffic; unknown values are none."""
    part = "seconds from 0 to those of iteration_time, or leave both empty: the job uses no link"
    for metric, bad, what, fix in (
        (NETWORK, network < 0.0, "communicates for {1:g} s of an iteration", part),
        (NETWORK, network > iteration, "communicates for {1:g} s of an iteration of {0:g} s", part),
        (BANDWIDTH, bandwidth <= 0.0, "sends at {2:g} GB/s", "GB/s above 0, or leave it empty: as much as its narrowest link has"),
    ):
        if bad.any():
            job = int(np.flatnonzero(bad)[0])
            return TrafficFault(job, metric, what.format(iteration[job], network[job], bandwidth[job]), fix)
    return None
