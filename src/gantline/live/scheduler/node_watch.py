"""What news of nodes mean for the engine: which join, are lost, return, are drained or replaced. The name of a node is its identity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gantline.core.cluster import Cluster
from gantline.core.inputs import NodeEvent
from gantline.core.nodes import Node
from gantline.live.runners.runner_events import NodeNews, NodeState


@dataclass
class NodeWatch:
    """Which nodes the runner does not offer. An operator's cordon is none of its business: what the runner repeats does not undo it."""

    absent: set[str] = field(default_factory=set)  # lost
    drained: set[str] = field(default_factory=set)

    def events(self, news: Iterable[NodeNews], cluster: Cluster, at: float) -> list[NodeEvent]:
        """The engine's inputs; none for what it knows already."""
        shapes = {node.name: shape(node) for node in cluster.nodes}
        found: list[NodeEvent] = []
        for one in news:
            new = self._events(one, shapes, at)
            for event in new:
                self.see(event)
                if event.node is not None:
                    shapes[event.name] = shape(event.node)
            found += new
        return found

    def see(self, event: NodeEvent) -> None:
        """An event of the runner's, now or in the journal."""
        if not event.reported:
            return
        self.absent.discard(event.name)
        self.drained.discard(event.name)
        if event.kind == "down":
            self.absent.add(event.name)
        elif event.kind == "drain":
            self.drained.add(event.name)

    def _events(self, news: NodeNews, shapes: dict[str, tuple[str, int]], at: float) -> list[NodeEvent]:
        name, known = news.name, shapes.get(news.name) or _device_of(news.name, shapes)

        def event(kind: str, node: Node | None = None) -> NodeEvent:
            return NodeEvent(at, name, kind, node, reported=True)

        if news.state is NodeState.LOST:
            return [event("down")] if known is not None and name not in self.absent else []
        if news.state is NodeState.DRAINED:
            is_same = news.node is None or known == shape(news.node)
            if known is not None and is_same and name not in self.absent:
                return [event("drain")] if name not in self.drained else []
            return [*self._events(replace(news, state=NodeState.UP), shapes, at), event("drain")] if news.node is not None else []
        if name not in shapes and known is not None:
            return [event("up")] if name in self.drained else []
        assert news.node is not None, f"nothing is known about node {name}"
        if known is None:
            return [event("join", replace(news.node, name=name))]
        if known != shape(news.node):  # what was on the old one is gone, whatever became of it
            lost = [] if name in self.absent else [event("down")]
            return [*lost, event("join", replace(news.node, name=name))]
        return [event("up")] if name in self.absent | self.drained else []


def _device_of(name: str, shapes: dict[str, tuple[str, int]]) -> tuple[str, int] | None:
    """The shape of one device of a node, ``node0:3``: what others use of a node is drained device by device."""
    node, _, place = name.rpartition(":")
    kind, devices = shapes.get(node, ("", 0))
    return (kind, 1) if place.isdigit() and int(place) < devices else None


def shape(node: Node) -> tuple[str, int]:
    """What a node of the same name must have to be the same node."""
    return node.type, node.gpus


def all_nodes(present: Cluster, known: Cluster, drained: Mapping[str, str]) -> list[NodeNews]:
    """News of every node: those that are there, of which some are drained, and those that are gone."""
    names = {node.name for node in present.nodes}
    gone = [NodeNews(node.name, NodeState.LOST, why="it was not there at the start") for node in known.nodes if node.name not in names]
    there = (
        NodeNews(node.name, NodeState.DRAINED if node.name in drained else NodeState.UP, node, drained.get(node.name, ""))
        for node in present.nodes
    )
    return [*gone, *there]
