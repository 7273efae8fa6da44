"""Nodes and pods of a Kubernetes cluster as they are now: listed once through the API, or read from what kubectl has printed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from gantline.core.errors import UsageError
from gantline.live.runners.kubernetes.access import find_access
from gantline.live.runners.kubernetes.client import ApiClient, path_of
from gantline.live.runners.kubernetes.pods_and_nodes import GPUS, MARK, ClusterNode, instant, read_node, read_pod
from gantline.live.runners.runner_events import NodeState
from gantline.live.watch.watched import Document

COMMAND = "kubectl get nodes,pods --all-namespaces -o json"
_LOOSE = ("ReplicaSet", "DaemonSet", "StatefulSet", "Node")  # owners whose pods are no gang
_QUEUES = ("kueue.x-k8s.io/queue-name", f"{MARK}/queue", "volcano.sh/queue-name")


@dataclass(frozen=True, slots=True)
class WatchedPod:
    """A pod that has GPUs, or asks for some."""

    job: str  # namespace and name of what it belongs to
    namespace: str
    queue: str
    gpus: int
    node: str
    phase: str
    priority: float
    created: float
    started: float | None
    ended: float | None
    limit: float  # seconds that it may run; 0: nothing says so
    selector: tuple[tuple[str, str], ...]
    is_gated: bool  # something else than room keeps it from being scheduled


@dataclass(frozen=True)
class KubernetesState:
    """One look."""

    now: float
    nodes: tuple[ClusterNode, ...]
    pods: tuple[WatchedPod, ...]
    labels: dict[str, Document] = field(default_factory=dict)  # of each node

    def closed(self) -> list[str]:
        """Nodes that take nothing new."""
        return [node.name for node in self.nodes if node.state is NodeState.DRAINED]


def state_now(kubeconfig: str = "", context: str = "") -> KubernetesState:
    """Two lists through the API; nothing is changed."""
    client = ApiClient(find_access(kubeconfig, context))
    nodes = [one for page, _ in client.pages(path_of("nodes")) for one in page]
    pods = [one for page, _ in client.pages(path_of("pods")) for one in page]
    return read_objects(nodes, pods, time.time() + client.skew)


def recorded_state(path: Path) -> KubernetesState:
    """What kubectl has printed into a file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        items = value["items"]
        nodes = [one for one in items if one["kind"] == "Node"]
        pods = [one for one in items if one["kind"] == "Pod"]
        return read_objects(nodes, pods, path.stat().st_mtime)
    except OSError as error:
        raise UsageError(f"cannot read it: {error.strerror}", where=str(path), fix=f"make one: {COMMAND} > FILE") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError("it is no list of nodes and pods", where=str(path), fix=f"make one: {COMMAND} > FILE") from None


def read_objects(nodes: Iterable[Document], pods: Iterable[Document], now: float) -> KubernetesState:
    """The part of these objects that concerns GPUs."""
    found = [(read_node(one, slots=False), one["metadata"].get("labels") or {}) for one in nodes]
    kept = sorted((pair for pair in found if pair[0].node.gpus), key=lambda pair: pair[0].name)
    asked = tuple(pod for one in pods if (pod := _read(one)).gpus)
    return KubernetesState(now, tuple(node for node, _ in kept), asked, {node.name: labels for node, labels in kept})


def _read(value: Document) -> WatchedPod:
    head, spec, status, pod = value["metadata"], value.get("spec") or {}, value.get("status") or {}, read_pod(value)
    labels, notes = head.get("labels") or {}, head.get("annotations") or {}
    owner: Document = next(
        (one for one in head.get("ownerReferences") or () if one.get("controller") and one.get("kind") not in _LOOSE), {}
    )
    shown = (status.get("containerStatuses") or [{}])[0].get("state") or {}
    ended = (shown.get("terminated") or {}).get("finishedAt")
    limit = spec.get("activeDeadlineSeconds") or notes.get(f"{MARK}/estimate") or 0
    scheduled = [one for one in status.get("conditions") or () if one.get("type") == "PodScheduled"]
    is_gated = any(one.get("reason") == "SchedulingGated" and one.get("status") != "True" for one in scheduled)
    return WatchedPod(
        f"{pod.namespace}/{owner.get('name') or pod.name}", pod.namespace,
        next((str(labels[name]) for name in _QUEUES if labels.get(name)), pod.namespace),
        int(sum(pod.uses.get(name, 0.0) for name in GPUS)), pod.node, pod.phase, float(spec.get("priority") or 0),
        instant(str(head.get("creationTimestamp", ""))),
        instant(str(status["startTime"])) if status.get("startTime") else None, instant(str(ended)) if ended else None,
        _number(limit), tuple(sorted((str(key), str(one)) for key, one in (spec.get("nodeSelector") or {}).items())),
        is_gated or bool(head.get("deletionTimestamp")),
    )  # fmt: skip


def _number(text: object) -> float:
    try:
        return max(float(str(text)), 0.0)
    except ValueError:
        return 0.0
