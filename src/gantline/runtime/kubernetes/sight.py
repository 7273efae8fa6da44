"""What is known of the cluster now: nodes and pods, kept current by two watches, and by the answers to what we write."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from gantline.core.cluster import Cluster
from gantline.runtime.bulletins import NodeNews, NodeState
from gantline.runtime.kubernetes.nodes import ClusterNode
from gantline.runtime.kubernetes.pods import Pod, identity_of


@dataclass
class Sight:
    """Nodes by name; our pods by name; of the pods of others what they use on each node."""

    namespace: str
    nodes: dict[str, ClusterNode] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)  # ours
    others: dict[str, dict[str, Pod]] = field(default_factory=dict)  # node -> uid -> pod
    gone: dict[str, int] = field(default_factory=dict)  # uids of ours that were deleted -> version; a later answer must not bring them back
    _at: dict[str, set[str]] = field(default_factory=dict)  # node -> names of ours there
    _closed: dict[str, set[int]] = field(default_factory=dict)  # node -> places that others use, as last told

    def is_ours(self, pod: Pod) -> bool:
        return pod.namespace == self.namespace and pod.is_gantlines and identity_of(pod.name) is not None

    def see_pod(self, pod: Pod, is_gone: bool = False) -> bool:
        """Something was read of a pod; whether it is newer than what is known."""
        if not self.is_ours(pod):
            if pod.node:
                of = self.others.setdefault(pod.node, {})
                if is_gone or pod.is_over:
                    of.pop(pod.uid, None)
                else:
                    of[pod.uid] = pod
            return True
        known = self.pods.get(pod.name)
        if (known is not None and known.version > pod.version) or self.gone.get(pod.uid, -1) >= pod.version:
            return False
        if is_gone:
            self.pods.pop(pod.name, None)
            self._at.get(pod.node, set()).discard(pod.name)
            self.gone[pod.uid] = pod.version
            while len(self.gone) > 10_000:
                del self.gone[next(iter(self.gone))]
        else:
            self.pods[pod.name] = pod
            if pod.node:
                self._at.setdefault(pod.node, set()).add(pod.name)
        return True

    def ours_on(self, node: str) -> list[Pod]:
        """Our pods on a node that still use something there."""
        return [pod for name in self._at.get(node, ()) if not (pod := self.pods[name]).is_over]

    def see_node(self, node: ClusterNode) -> NodeNews | None:
        """Something was read of a node; what is to be told, if anything is."""
        known = self.nodes.get(node.name)
        self.nodes[node.name] = node
        if not node.node.gpus and (known is None or not known.node.gpus):
            return None  # it has no devices for us
        if known is not None and (known.state, known.node.gpus, known.node.type) == (node.state, node.node.gpus, node.node.type):
            return None
        if known is not None and (known.node.gpus, known.node.type) != (node.node.gpus, node.node.type):
            self._closed.pop(node.name, None)
        return node.news

    def lose_node(self, name: str) -> NodeNews | None:
        """A node was deleted."""
        self.others.pop(name, None)
        self._closed.pop(name, None)
        known = self.nodes.pop(name, None)
        return NodeNews(name, NodeState.LOST, why="it was deleted from the cluster") if known is not None and known.node.gpus else None

    @property
    def cluster(self) -> Cluster:
        """Nodes with devices for us, by name."""
        return Cluster(tuple(one.node for _, one in sorted(self.nodes.items()) if one.node.gpus and one.state is not NodeState.LOST))

    def taken(self, node: str) -> list[NodeNews]:
        """Places of a node that others' pods have begun or ceased to use: as many as they request, the last ones that are free of ours."""
        known = self.nodes.get(node)
        if known is None or not known.resource or known.state is NodeState.LOST:
            return []
        used = math.ceil(sum(pod.uses.get(known.resource, 0.0) for pod in self.others.get(node, {}).values()) - 1e-6)
        ours = {place for pod in self.ours_on(node) for place in pod.places}
        before = self._closed.get(node, set())
        free = [place for place in range(known.node.gpus) if place not in ours]
        closed = set(sorted(free, key=lambda place: (place in before, place))[len(free) - min(used, len(free)) :])
        self._closed[node] = closed
        news = [NodeNews(f"{node}:{place}", NodeState.DRAINED, why="pods of other schedulers use it") for place in sorted(closed - before)]
        return news + [NodeNews(f"{node}:{place}", NodeState.UP) for place in sorted(before - closed)]

    def absent_nodes(self, uids: set[str]) -> list[str]:
        """Nodes that a new list does not have."""
        return [name for name, node in self.nodes.items() if node.uid not in uids]

    def absent_pods(self, uids: set[str], version: int) -> list[Pod]:
        """Pods that a list of that version does not have, though they are older than it."""
        known = [*self.pods.values(), *(pod for of in self.others.values() for pod in of.values())]
        return [pod for pod in known if pod.uid not in uids and pod.version <= version]

    def is_standing(self, node: str) -> bool:
        """Whether a node is there and answers."""
        return node in self.nodes and self.nodes[node].state is not NodeState.LOST
