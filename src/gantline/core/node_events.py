"""Nodes that fail, drain, return or join during a simulation, as data: ``time,node,event``."""

from __future__ import annotations

from dataclasses import dataclass

from gantline.core.cluster import Cluster, Node
from gantline.core.errors import NotFoundError, UsageError, near

KINDS = ("down", "up", "drain", "join")


@dataclass(frozen=True)
class NodeEvent:
    """At `time` something happens to a node: it goes down (work since the last checkpoint is lost), drains, comes up or joins.

    ``node0:3`` names one of its devices, which can drain and come up.
    """

    time: float
    name: str
    kind: str
    node: Node | None = None  # for "join": the node itself; one of a name that went down takes its place
    reported: bool = False  # the runner of a service has noticed it; else an operator says so, or a file

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"'{self.kind}' is not a node event", where=f"node event at t={self.time:g}", fix="use " + ", ".join(KINDS))
        if self.kind == "join" and self.node is None:
            raise UsageError(f"'{self.name}' joins, but nothing is known about it", fix="give the node itself")

    def device(self, cluster: Cluster) -> int | None:
        """The number of the device that is meant; None: the node is."""
        names = [node.name for node in cluster.nodes]
        name, sign, place = self.name.rpartition(":")
        if self.name in names or not sign or name not in names or not place.isdigit():
            return None
        number = names.index(name)
        if int(place) >= cluster.nodes[number].gpus:
            raise NotFoundError(
                f"no device '{self.name}'", where="node events", fix=f"{name} has devices 0 to {cluster.nodes[number].gpus - 1}"
            )
        if self.kind not in ("drain", "up"):
            raise UsageError(f"a device cannot go '{self.kind}'", where=self.name, fix="use drain or up, or name the node")
        return int(cluster.first_device[number]) + int(place)

    def find(self, cluster: Cluster) -> int:
        """The number of the node."""
        for number, node in enumerate(cluster.nodes):
            if node.name == self.name:
                return number
        raise NotFoundError(f"no node '{self.name}'", where="node events", fix=near(self.name, [n.name for n in cluster.nodes]))
