"""What is known of the cluster now: nodes and pods, kept current by two watches, and by the answers to what we write."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from gantline.core.cluster import Cluster
from gantline.live.runners.kubernetes.pods_and_nodes import ClusterNode, Pod, identity_of
from gantline.live.runners.kubernetes.workloads import Workload
from gantline.live.runners.runner_events import NodeNews, NodeState


@dataclass
class ClusterCache:
    """Nodes by name; our pods and those of workloads by name; of the pods of others what they use on each node."""

    namespace: str
    nodes: dict[str, ClusterNode] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)  # ours
    others: dict[str, dict[str, Pod]] = field(default_factory=dict)  # node -> uid -> pod
    gone: dict[str, int] = field(default_factory=dict)  # uids of ours that were deleted -> version; a later answer must not bring them back
    workloads: dict[str, Workload] = field(default_factory=dict)  # objects that make their own pods, by uid
    owners: set[str] = field(default_factory=set)  # uids of workloads, also of those that are gone: their pods are no strangers
    _made: dict[str, set[str]] = field(default_factory=dict)  # owner -> names of the pods that it has made
    _at: dict[str, set[str]] = field(default_factory=dict)  # node -> names of ours there
    _closed: dict[str, set[int]] = field(default_factory=dict)  # node -> places that others use, as last told

    def is_ours(self, pod: Pod) -> bool:
        return pod.namespace == self.namespace and pod.is_gantlines and identity_of(pod.name) is not None

    def is_of_workload(self, pod: Pod) -> bool:
        """Whether a workload has made it. One that waits for us counts, too: its object may be seen a moment later."""
        here = pod.namespace == self.namespace and bool(pod.owner) and identity_of(pod.name) is None
        return here and (pod.owner in self.owners or (pod.is_gantlines and not pod.node))

    def made_by(self, owner: str) -> list[Pod]:
        return [self.pods[name] for name in self._made.get(owner, ())]

    def see_workload(self, workload: Workload) -> bool:
        """Something was read of an object; whether it is newer than what is known."""
        known = self.workloads.get(workload.uid)
        if known is not None and known.version > workload.version:
            return False
        self.workloads[workload.uid] = workload
        self.owners.add(workload.uid)
        return True

    def see_pod(self, pod: Pod, is_gone: bool = False) -> bool:
        """Something was read of a pod; whether it is newer than what is known."""
        known = self.pods.get(pod.name)
        if not self.is_ours(pod) and not self.is_of_workload(pod):
            if known is not None and known.uid == pod.uid:  # it waited for us, and belongs to no object that was taken in
                self._drop(known)
            if pod.node:
                of = self.others.setdefault(pod.node, {})
                if is_gone or pod.is_over:
                    of.pop(pod.uid, None)
                else:
                    of[pod.uid] = pod
            return True
        self.others.get(pod.node, {}).pop(pod.uid, None)  # its object may have been seen later
        if (known is not None and known.version > pod.version) or self.gone.get(pod.uid, -1) >= pod.version:
            return False
        if is_gone:
            self._drop(pod)
            self.gone[pod.uid] = pod.version
            while len(self.gone) > 10_000:
                del self.gone[next(iter(self.gone))]
        else:
            if known is not None and known.uid == pod.uid and known.places:  # annotations can be edited by hand, devices do not move
                pod = replace(pod, places=known.places)
            self.pods[pod.name] = pod
            if pod.owner:
                self._made.setdefault(pod.owner, set()).add(pod.name)
            if pod.node:
                self._at.setdefault(pod.node, set()).add(pod.name)
        return True

    def _drop(self, pod: Pod) -> None:
        self.pods.pop(pod.name, None)
        self._at.get(pod.node, set()).discard(pod.name)
        if (made := self._made.get(pod.owner)) is not None:
            made.discard(pod.name)
            if not made:
                del self._made[pod.owner]

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

    @property
    def drained(self) -> dict[str, str]:
        """Those of them on which nothing may begin, and why."""
        return {name: one.why for name, one in self.nodes.items() if one.state is NodeState.DRAINED}

    def taken(self, node: str) -> list[NodeNews]:
        """Places of a node that others' pods have begun or ceased to use: as many as they request, the last ones that are free of ours."""
        known = self.nodes.get(node)
        if known is None or not known.resource or known.state is NodeState.LOST:
            return []
        here = self.ours_on(node)
        others = [*self.others.get(node, {}).values(), *(pod for pod in here if pod.owner and not pod.places)]  # not bound by us
        used = math.ceil(sum(pod.uses.get(known.resource, 0.0) for pod in others) - 1e-6)
        ours = {place for pod in here for place in pod.places}
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
