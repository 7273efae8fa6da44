"""Nodes and pods of a Kubernetes cluster as they are now: listed once through the API, or read from what kubectl has printed."""

from __future__ import annotations

import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from gantline.core.errors import UsageError
from gantline.live.runners.kubernetes.access import find_access, path_of
from gantline.live.runners.kubernetes.client import ApiClient
from gantline.live.runners.kubernetes.pods_and_nodes import GPUS, MARK, ClusterNode, instant, read_node, read_pod
from gantline.live.runners.runner_events import NodeState
from gantline.live.watch.watched import ClusterLook, Document, left_out_notes

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


# A snapshot of a Kubernetes cluster, with the order of its scheduler as the policy in force.
#
# Jobs are pods with GPUs, those of one owner together (a Job, a PyTorchJob, an MPIJob). The scheduler takes pods by
# priority, then by age, and passes those that do not fit. What the snapshot cannot hold is counted in notes.

_YEAR = 365 * 86_400.0  # for a run time that is not known
_FEWEST = 5  # run times of a namespace from which others are estimated


def kubernetes_look(state: KubernetesState) -> ClusterLook:
    """The snapshot, and the policy in force."""
    return _Builder(state).build()


@dataclass
class _Builder:
    state: KubernetesState
    left_out: Counter[str] = field(default_factory=Counter)
    unestimated: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        state, first = self.state, 0
        self.free: dict[str, list[int]] = {}
        for node in state.nodes:
            self.free[node.name] = list(range(first, first + node.node.gpus))
            first += node.node.gpus
        self.devices = {name: list(places) for name, places in self.free.items()}
        self.types = {node.name: node.node.type for node in state.nodes}
        times = [pod.created for pod in state.pods if math.isfinite(pod.created)]
        self.zero = min([state.now, *times])
        self.past: defaultdict[str, list[float]] = defaultdict(list)
        for pod in state.pods:
            if pod.phase == "Succeeded" and pod.started is not None and pod.ended is not None and pod.ended > pod.started:
                self.past[pod.namespace].append(pod.ended - pod.started)

    def build(self) -> ClusterLook:
        state = self.state
        jobs: defaultdict[tuple[str, bool], list[WatchedPod]] = defaultdict(list)
        for pod in state.pods:
            if pod.phase in ("Pending", "Running"):
                jobs[pod.job, bool(pod.node)].append(pod)
        runs = [entry for (name, placed), pods in jobs.items() if placed and (entry := self._running(name, pods)) is not None]
        split = {name for name, placed in jobs if placed}
        waits = [
            entry
            for (name, placed), pods in sorted(jobs.items(), key=lambda one: min(pod.created for pod in one[1]))
            if not placed and (entry := self._waiting(f"{name}/rest" if name in split else name, pods)) is not None
        ]
        snapshot: Document = {
            "kind": "snapshot", "version": 1, "now": state.now - self.zero, "jobs": runs + waits,
            "cluster": {"nodes": [{"name": one.name, "type": one.node.type, "gpus": one.node.gpus} for one in state.nodes]},
            "down": [one.name for one in state.nodes if one.state is NodeState.LOST],
            "cordoned": sorted(device for name in state.closed() for device in self.devices[name]), "windows": [],
            "unestimated": self.unestimated,
        }  # fmt: skip
        ranked = len({job["priority"] for job in waits}) > 1
        policy, settings = ("slurm", {"age_weight": 0.0, "fill": True}) if ranked else ("fifo", {"backfill": "skip"})
        queue = tuple(job["id"] for job in sorted(waits, key=lambda job: (-job["priority"], job["arrival"])))
        return ClusterLook("kubernetes", state.now, self.zero, snapshot, policy, settings, (), tuple(self._notes(ranked)), queue)

    def _entry(self, name: str, pods: list[WatchedPod], types: list[str]) -> Document:
        gpus, one = sum(pod.gpus for pod in pods), pods[0]
        sizes = {node.node.gpus for node in self.state.nodes if node.node.type in types}
        whole = len(pods) > 1 and sizes == {one.gpus}
        nodes = len(pods) if len(pods) == 1 or whole else 0
        known = self.past[one.namespace]
        estimate = max((pod.limit for pod in pods), default=0.0) or (median(known) if len(known) >= _FEWEST else 0.0)
        if not estimate:
            self.unestimated.append(name)
        options = [{"type": kind, "gpus": gpus, "rate": 1.0, **({"nodes": nodes} if nodes else {})} for kind in types]
        return {
            "id": name, "gpus": gpus, "user": one.namespace, "queue": one.queue, "priority": max(pod.priority for pod in pods),
            "arrival": min(pod.created for pod in pods) - self.zero, "estimate": estimate or _YEAR, "options": options,
        }  # fmt: skip

    def _running(self, name: str, pods: list[WatchedPod]) -> Document | None:
        devices: list[int] = []
        for pod in pods:
            places = self.free.get(pod.node, [])
            if len(places) < pod.gpus:
                return self._leave_out("hold GPUs that their node does not show")
            devices += places[: pod.gpus]
            self.free[pod.node] = places[pod.gpus :]
        entry = self._entry(name, pods, list(dict.fromkeys(self.types[pod.node] for pod in pods))[:1])
        entry["options"][0]["nodes"] = len({pod.node for pod in pods})
        spent = max(self.state.now - min(pod.started or self.state.now for pod in pods), 0.0)
        return {**entry, "devices": devices, "service": spent, "estimate": max(entry["estimate"], spent + 1.0)}

    def _waiting(self, name: str, pods: list[WatchedPod]) -> Document | None:
        if any(pod.is_gated for pod in pods):
            return self._leave_out("wait for something else than room")
        wanted = dict(pods[0].selector)
        fit = [name for name, labels in self.state.labels.items() if wanted.items() <= labels.items()]
        most = max(pod.gpus for pod in pods)
        types = list(dict.fromkeys(node.node.type for node in self.state.nodes if node.name in fit and node.node.gpus >= most))
        if not types:
            return self._leave_out("fit no node")
        if wanted and {name for name, kind in self.types.items() if kind in types} != set(fit):
            return self._leave_out("ask for some of the nodes of a type")
        return self._entry(name, pods, types)

    def _leave_out(self, why: str) -> Document | None:
        """Nothing, and one more for that reason."""
        self.left_out[why] += 1
        return None

    def _notes(self, ranked: bool) -> list[str]:
        found = left_out_notes(self.left_out)
        if ranked:
            found.append("priorities differ: no job is taken to delay one of a higher priority, and none that runs is preempted")
        if self.unestimated:
            found.append(
                f"how long {len(self.unestimated)} jobs take is not known: neither a deadline nor ended pods of their namespace say so"
            )
        return [*found, "CPUs and memory are not counted"]
