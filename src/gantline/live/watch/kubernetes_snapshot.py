"""A snapshot of a Kubernetes cluster, with the order of its scheduler as the policy in force.

Jobs are pods with GPUs, those of one owner together (a Job, a PyTorchJob, an MPIJob). The scheduler takes pods by priority, then by age,
and passes those that do not fit. What the snapshot cannot hold is counted in notes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from statistics import median

from gantline.live.runners.runner_events import NodeState
from gantline.live.watch.kubernetes_state import KubernetesState, WatchedPod
from gantline.live.watch.watched import ClusterLook, Document, left_out_notes

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
