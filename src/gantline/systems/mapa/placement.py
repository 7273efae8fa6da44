"""MAPA's rules on the nodes of a cluster: the ring of a gang on the node where the rule's own measure is greatest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.core.facts import NO_FACTS, Facts
from gantline.core.topology import LinkGraph, server_graphs
from gantline.policies.placement.device_rule import DeviceRule, FreeDevices, GangRequest
from gantline.policies.placement.links.rules import RING_RULES, Ring, preserved
from gantline.policies.placement.rules import PlacementRule, rule_in_python


@dataclass(frozen=True)
class RingPlacement(DeviceRule):
    """The free devices of one node whose ring suits a gang best (needs links between devices in the cluster file)."""

    together = True
    ordered = True
    rule: str = "preserve"
    graphs: tuple[LinkGraph, ...] = field(default=(), repr=False)
    first: tuple[int, ...] = field(default=(), repr=False)

    def on(self, cluster: Cluster, facts: Facts = NO_FACTS) -> DeviceRule:
        graphs = tuple(server_graphs(cluster))
        if not any(graph.nvlinks.any() for graph in graphs):
            fix = "list pairs of devices under 'links' in the cluster file: {a: node0:0, b: node0:1, bandwidth: 50}"
            raise RefusedError("the cluster says nothing of the links between its devices", where=f"--placement mapa.{self.rule}", fix=fix)
        return replace(self, graphs=graphs, first=tuple(int(each) for each in cluster.first_device))

    def choose(self, gang: GangRequest, free: FreeDevices) -> Sequence[int] | None:
        """A node that is alone; a gang for which no node has room takes those with most."""
        found: list[tuple[tuple[float, int], list[int]]] = []
        nodes = sorted(free.by_node().items(), key=lambda one: len(one[1]))
        for node, devices in nodes:
            if len(devices) >= gang.gpus:
                own = [device - self.first[node] for device in devices]
                ring = RING_RULES[self.rule](self.graphs[node], own, gang.gpus, gang.bandwidth_sensitive)
                if ring is not None:
                    found.append((self._measure(ring, own, gang), [self.first[node] + at for at in ring.order]))
        if found:
            return max(found, key=lambda one: one[0])[1]
        if self.waits and any(len(devices) >= gang.gpus for _, devices in nodes):
            return list(gang.held) or None
        widest = [device for _, devices in reversed(nodes) for device in devices]
        return widest[: gang.gpus]

    def _measure(self, ring: Ring, free: Sequence[int], gang: GangRequest) -> tuple[float, int]:
        """What the rule looks for, then the fuller node."""
        if self.rule in ("baseline", "topoAware") or gang.gpus == 1:
            return 0.0, -len(free)
        if self.rule.startswith("greedy"):
            return ring.aggregate, -len(free)
        if gang.bandwidth_sensitive:
            return ring.effective or 0.0, -len(free)
        return preserved(ring.graph, free, ring.order) - preserved(ring.graph, free, ()), -len(free)


@dataclass(frozen=True)
class PatientRing(RingPlacement):
    """As preserve, but a gang that is sensitive to bandwidth waits for a ring as good as the best of an idle node (unchecked)."""

    waits = True


def _named(rule: str, what: str, kind: type[RingPlacement] = RingPlacement) -> PlacementRule:
    return replace(rule_in_python(kind(rule=rule), f"mapa.{rule}"), what=what)


BASELINE = _named("baseline", "the first free devices of the tightest node, in their best ring (MAPA)")
TOPO_AWARE = _named("topoAware", "the first free devices under one root of the bus, else as mapa.baseline (MAPA)")
GREEDY = _named("greedy", "the ring with the most bandwidth (MAPA)")
PRESERVE = _named("preserve", "the most effective ring for sensitive gangs, for others the one that leaves most bandwidth (MAPA)")
MIN_SCORE = _named("minScore", "as mapa.preserve; sensitive gangs wait for the best ring of an idle node (MAPA, unchecked)", PatientRing)
GREEDY_ROUTE = _named("greedyRoute", "as mapa.greedy, with NVLink routes over one other device (MAPA, unchecked)")
PRESERVE_ROUTE = _named("preserveRoute", "as mapa.preserve, with such routes (MAPA, unchecked)")
