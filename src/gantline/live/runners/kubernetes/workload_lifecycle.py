"""Admits objects of the cluster whose gang has devices, and suspends them again: their own controllers make and remove the pods.

A pod that such an object makes asks for this scheduler, and waits for a node until it is bound to one of those that the plan chose. What
ends the gang is what the object's status says; its controller may replace pods meanwhile, and the new ones go where the old ones were.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from gantline.core.cluster import Node
from gantline.core.errors import RefusedError
from gantline.core.inputs import Fault
from gantline.engine.executor import News
from gantline.live.runners.kubernetes.access import Object
from gantline.live.runners.kubernetes.client import ApiError
from gantline.live.runners.kubernetes.gang_lifecycle import GangEnd, GangLifecycle, PodGang
from gantline.live.runners.kubernetes.pods_and_nodes import MARK, SCHEDULER, ClusterNode, Pod
from gantline.live.runners.kubernetes.workloads import Workload
from gantline.live.runners.kubernetes.write_queue import WorkloadChanges


@dataclass
class WorkloadLifecycle(GangLifecycle):
    """Gangs of pods that we make (`GangLifecycle`), and those of workloads."""

    slots: bool = False
    job_of_workload: dict[str, str] = field(default_factory=dict)  # uid of a workload -> its job
    look_at: Callable[[str], None] = lambda uid: None  # called with the uid of an object whose gang is over
    changes: WorkloadChanges = field(init=False)  # `WorkloadController` makes it

    def note_workload(self, gang: PodGang) -> None:
        """A gang that is a workload's was made, or found."""
        if gang.workload:
            self.job_of_workload[gang.workload_uid] = gang.job

    def gang_of_workload(self, uid: str) -> PodGang | None:
        return self.live.get(self.job_of_workload.get(uid, ""))

    # --- the next step of a workload ---------------------------------------------------------------------------------------
    def settle(self, gang: PodGang) -> None:
        if not gang.workload or gang.over:
            super().settle(gang)
            return
        workload, pods = self.cache.workloads.get(gang.workload_uid), self._pods(gang)
        gang.seen |= set(pods)
        if not gang.is_leaving and workload is not None:  # None: it was deleted by hand, and its job is being cancelled
            gang.verdict = self._judge(gang, workload, pods) or self._late(gang, workload, pods)
        if gang.is_leaving:
            self._suspend(gang, workload, pods)
        elif workload is not None:
            self._admit(gang, workload, pods)

    def _judge(self, gang: PodGang, workload: Workload, pods: dict[str, Pod | None]) -> GangEnd | None:
        """Why it cannot go on, or that it has ended."""
        ended, why = workload.end
        if ended == "finished":
            return GangEnd(News.FINISHED, 0)
        if ended:
            codes = [pod.exit for pod in self.cache.made_by(workload.uid) if pod.exit]
            return GangEnd(News.FAILED, codes[0] if codes else 1, why)
        there = [pod for pod in pods.values() if pod is not None]
        if lost := self._lost(gang) & {pod.node for pod in there}:
            return GangEnd(News.FAILED, None, f"node {min(lost)} is lost", Fault.NODE)
        return next((GangEnd(News.FAILED, 1, why, Fault.JOB) for pod in there if (why := pod.cannot_start)), None)

    def _late(self, gang: PodGang, workload: Workload, pods: dict[str, Pod | None]) -> GangEnd | None:
        if gang.is_running or time.monotonic() < gang.since + self.timeout:
            return None
        run = sum(pod is not None and pod.runs for pod in pods.values())
        what = f"{workload.expected - run} of {workload.expected} pods did not start within {self.timeout:g} s, so the gang is given back"
        return GangEnd(News.FAILED, None, what, Fault.ENGINE)

    def _admit(self, gang: PodGang, workload: Workload, pods: dict[str, Pod | None]) -> None:
        if workload.is_suspended and self._left(gang, pods):
            return  # its controller still removes pods of an earlier life, which may be anywhere
        if not workload.is_admitted(gang.epoch):
            self._change(gang, workload, workload.admit(workload.sizes(len(gang.devices)), gang.epoch))
            return
        if workload.counts != workload.given:  # its owner wants another number: the gang's own stays while it runs
            self._change(gang, workload, workload.admit(workload.given or workload.sizes(len(gang.devices)), gang.epoch))
            return
        for pod in pods.values():
            waits = pod is not None and not pod.node and not pod.is_deleted and pod.name not in gang.promised
            if pod is not None and waits and (place := self._place(gang, pod, pods)) is not None:
                self._bind(gang, pod, *place)
        run = sum(pod is not None and (pod.runs or pod.phase == "Succeeded") for pod in pods.values())
        if not gang.is_running and run and run >= workload.expected:
            gang.is_running = True
            self._copy(gang)  # its controller removes pods as soon as it is suspended
            self.repeat(gang)

    def _place(self, gang: PodGang, pod: Pod, pods: dict[str, Pod | None]) -> tuple[str, list[int]] | None:
        """A node of the gang that has as many free devices as a pod asks for; None: there is none while another pod of it is there."""
        resource = next((self.cache.nodes[node].resource for node in gang.places if node in self.cache.nodes), "")
        count = round(pod.uses.get(resource, 0.0) + 0.499)
        used: dict[str, set[int]] = {}
        for node, places in gang.promised.values():
            used.setdefault(node, set()).update(places)
        for other in pods.values():
            if other is not None and other.node and not other.is_over:
                used.setdefault(other.node, set()).update(other.places)
        for node, places in gang.places.items():
            free = [place for place in places if place not in used.get(node, set())]
            if len(free) >= count:
                return node, free[:count]
        return None

    def _bind(self, gang: PodGang, pod: Pod, node: str, places: list[int]) -> None:
        gang.promised[pod.name] = (node, places)
        notes = {"home": self.terms.home, "epoch": str(gang.epoch), "node": node, "places": ",".join(map(str, places))}
        head = {"name": pod.name, "uid": pod.uid, "annotations": {f"{MARK}/{key}": value for key, value in notes.items()}}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        value = {"apiVersion": "v1", "kind": "Binding", "metadata": head, "target": target}

        def done(answer: Object | None, refusal: ApiError | None) -> None:
            if refusal is not None:
                gang.promised.pop(pod.name, None)  # it is gone, or on a node already: the watch says which

        self.writes.begin(pod.name, partial(self.client.create, f"{self._path('pods', pod.name)}/binding", value), done)

    def _suspend(self, gang: PodGang, workload: Workload | None, pods: dict[str, Pod | None]) -> None:
        """Its controller removes the pods; those of an object that is gone are removed here."""
        left = self._left(gang, pods)
        if workload is None:
            for pod in left:
                if not pod.is_deleted:
                    self.writes.begin(pod.name, partial(self._delete, pod, gang.grace), self._saw(pod))
        elif not workload.is_suspended and not workload.end[0]:
            self._change(gang, workload, workload.hold(why=gang.verdict.why if gang.verdict is not None else None))
            return
        if not left and gang.workload not in self.writes.under_way:
            self._conclude(gang, pods, self._lost(gang))

    def _left(self, gang: PodGang, pods: dict[str, Pod | None]) -> list[Pod]:
        """Its pods that are not over, on nodes that are there."""
        lost = self._lost(gang)
        return [pod for pod in pods.values() if pod is not None and not pod.is_over and pod.node not in lost]

    def _change(self, gang: PodGang, workload: Workload, change: Object) -> None:
        """Write to the object; the gang is settled again with the answer."""

        def refused(refusal: ApiError) -> None:
            if not gang.is_leaving:
                gang.verdict = GangEnd(News.FAILED, 1, f"{refusal.where}: {refusal.what}", Fault.JOB)
                self.settle(gang)

        self.changes.make(workload, change, refused)

    def _close(self, gang: PodGang) -> None:
        super()._close(gang)
        if gang.workload:
            self.flush()  # how it ended is told before anything that is asked because of it
            self.look_at(gang.workload_uid)

    # --- whose pod it is ------------------------------------------------------------------------------------------------
    def _pods(self, gang: PodGang) -> dict[str, Pod | None]:
        if not gang.workload:
            return super()._pods(gang)
        there = [pod for pod in self.cache.made_by(gang.workload_uid) if not (pod.is_over and pod.phase != "Succeeded")]
        found: dict[str, Pod | None] = {pod.name: pod for pod in sorted(there, key=lambda pod: pod.name)}
        gang.members |= {pod.name: pod.container for pod in there}
        gang.promised = {name: place for name, place in gang.promised.items() if (pod := found.get(name)) is not None and not pod.node}
        return found

    def _gang_of(self, pod: Pod) -> PodGang | None:
        return self.gang_of_workload(pod.owner) if self.cache.is_of_workload(pod) else super()._gang_of(pod)


# The job that an object of the cluster is: its queue, devices, priority and limits, or why it cannot be one.
#
# Annotations say what Kubernetes has no field for: ``gantline.io/priority``, ``min-gpus``, ``max-gpus``, ``estimate``, ``time-limit`` and
# ``resumes``. An MPIJob may be written for Voda's scheduler, with variables of its launcher: ``MIN_NUM_PROC``, ``MAX_NUM_PROC``,
# ``NUM_PROC`` (what it asks for) and ``JOB_PRIORITY`` (0 is highest).

_VODA = {"MIN_NP": "MIN_NUM_PROC", "MAX_NP": "MAX_NUM_PROC", "NP": "NUM_PROC"}  # its other spellings
_NOTES = ("priority", "min-gpus", "max-gpus", "estimate", "time-limit", "resumes")
SIZES = frozenset({"pods", "min-gpus", "max-gpus", *_VODA.values()})  # of what is asked for: how many devices
_UNREAD = ("affinity", "topologySpreadConstraints")


def asks_of(workload: Workload, slots: bool) -> Object:
    """What its owner asks for, in plain values by name: a change of any of them is a change of the job. Nodes do not matter here."""
    specs = {role.name: role.spec for role in workload.roles}
    found: Object = {
        "queue": workload.queue,
        "pods": workload.wanted,
        "devices": {role.name: role.devices(slots) for role in workload.roles},
        "nodeSelector": {name: spec["nodeSelector"] for name, spec in specs.items() if spec.get("nodeSelector")},
        "activeDeadlineSeconds": workload.policy.get("activeDeadlineSeconds"),
        **{name: any(spec.get(name) for spec in specs.values()) for name in _UNREAD},
        **{name: _note(workload, name) for name in _NOTES},
        **_of_voda(workload),
    }
    return {name: value for name, value in found.items() if value}


def spec_of_workload(workload: Workload, nodes: Iterable[ClusterNode], slots: bool) -> Object:
    """As `runtime.spec_file.spec_of` reads it. Raises `RefusedError` where the object cannot be run as it is."""
    _check_template(workload)
    each = {role.devices(slots) for role in workload.roles if role.pods} - {0}
    if not each:
        what = "none of its pods requests a CPU" if slots else "none of its pods has a limit of nvidia.com/gpu or amd.com/gpu"
        raise _refusal(workload, what, "say in resources what each of them needs")
    pods = sum(role.pods for role in workload.roles if role.devices(slots))
    fitting, total = _fitting(workload, list(nodes)), sum(role.pods * role.devices(slots) for role in workload.roles)
    range_ = _range(workload, each, pods)
    found: Object = {
        "run": [f"{workload.kind.name}/{workload.name}"], "name": workload.name, "queue": workload.queue, "object": workload.title,
        **_terms(workload), **_devices(workload, range_[1] if range_ else total, each, pods, fitting),
    }  # fmt: skip
    if range_ and range_[0] < range_[2]:
        found["elastic"] = {"min": range_[0], "max": range_[2]}
    if "elastic" in found or _note(workload, "resumes") == "true":
        found["checkpoint"] = {}
    return found


def _check_template(workload: Workload) -> None:
    """Refuse what would be ignored."""
    if workload.misread:
        raise _refusal(workload, workload.misread, "correct it: a role has replicas, in digits, and a template")
    if not workload.names_us:
        fix = f"write schedulerName: {SCHEDULER} into its template, which cannot be changed later"
        raise _refusal(workload, "its pods ask for another scheduler", fix)
    for role in workload.roles:
        if any(role.spec.get(name) for name in _UNREAD):
            what = "its pods have an affinity or spread constraints, which this scheduler does not read"
            raise _refusal(workload, what, "leave them out: pods of a gang are placed together, near each other")
    if workload.by_parallelism and not workload.kind.replicas and workload.spec.get("activeDeadlineSeconds"):
        what = "activeDeadlineSeconds would go on while it waits, because this API server cannot suspend a Job"
        raise _refusal(workload, what, f"leave it out, or use Kubernetes 1.22 or later; {MARK}/time-limit bounds the time that it runs")


def _fitting(workload: Workload, nodes: list[ClusterNode]) -> list[Node]:
    """Nodes that its node selectors allow; types are chosen whole."""
    wanted: dict[str, str] = {}
    for role in workload.roles:
        wanted |= role.spec.get("nodeSelector") or {}
    there = [one for one in nodes if one.node.gpus]
    fit = [one for one in there if all(one.labels.get(key) == value for key, value in wanted.items())]
    types = {one.node.type for one in fit}
    shown = ",".join(f"{key}={value}" for key, value in wanted.items())
    if wanted and not fit:
        raise _refusal(workload, f"no node has the labels {shown} of its node selector", "correct it, or create the object again later")
    if any(one.node.type in types for one in there if one not in fit):
        raise _refusal(workload, f"its node selector {shown} chooses only some nodes of a type", "select a type: nvidia.com/gpu.product")
    return [one.node for one in fit]


def _devices(workload: Workload, total: int, each: set[int], pods: int, fitting: list[Node]) -> Object:
    """Pods of one device each may be anywhere; larger ones are all on one node, or where no node has room for that, each on its own."""
    selected = any(role.spec.get("nodeSelector") for role in workload.roles)
    types = sorted({node.type for node in fitting})
    if each == {1} or any(node.gpus >= total for node in fitting):
        variants: Object = {"any_of": [{"accelerators": f"{kind}:{total}"} for kind in types]} if selected else {"gpus": total}
        return {"resources": variants, "processes": "gpus" if each == {1} else pods}
    size = max(each)
    types = [kind for kind in types if any(node.type == kind and node.gpus >= size for node in fitting)]
    if len(each) > 1 or not types:
        what = f"its pods use {' or '.join(map(str, sorted(each)))} devices, {total} together, and no node has so many"
        raise _refusal(workload, what, "make all its pods of one size that a node has")
    return {"resources": {"any_of": [{"accelerators": f"{kind}:{size}", "nodes": pods} for kind in types]}, "processes": "nodes"}


def _range(workload: Workload, each: set[int], pods: int) -> tuple[int, int, int] | None:
    """The least devices, those that it asks for and the most, where it is elastic. Voda counts processes, each of which has a device."""
    known = _of_voda(workload)
    voda = "MIN_NUM_PROC" in known or "MAX_NUM_PROC" in known
    low, high = _note(workload, "min-gpus") or known.get("MIN_NUM_PROC"), _note(workload, "max-gpus") or known.get("MAX_NUM_PROC")
    if not low and not high:
        return None
    if each != {1}:
        raise _refusal(workload, f"it is elastic, and a pod of it uses {max(each)} devices", "give each pod one device")
    asks = known.get("NUM_PROC") or (low if voda and low else str(pods))
    least, asked, most = (_whole(workload, "its number of devices", text) for text in (low or asks, asks, high or asks))
    if not 1 <= least <= asked <= most:
        what = f"it asks for {asked} devices, and is elastic from {least} to {most}"
        raise _refusal(workload, what, "let the first be at least 1 and lie between the others")
    return least, asked, most


def _terms(workload: Workload) -> Object:
    found: Object = {}
    if voda := _of_voda(workload).get("JOB_PRIORITY"):
        found["priority"] = -_whole(workload, "JOB_PRIORITY", voda)
    if priority := _note(workload, "priority"):
        found["priority"] = priority if priority in ("low", "normal", "high") else _whole(workload, "priority", priority)
    if estimate := _note(workload, "estimate"):
        found["estimate"] = estimate
    if limit := _note(workload, "time-limit") or workload.policy.get("activeDeadlineSeconds"):
        found["limits"] = {"time": limit}
    return found


def _of_voda(workload: Workload) -> dict[str, str]:
    """Variables by which an MPIJob tells Voda's scheduler what it asks for."""
    known = {_VODA.get(name, name): value for name, value in workload.variables()} if workload.kind.name == "MPIJob" else {}
    return {name: known[name] for name in (*_VODA.values(), "JOB_PRIORITY") if name in known}


def _note(workload: Workload, name: str) -> str:
    return str(workload.notes.get(f"{MARK}/{name}") or "")


def _whole(workload: Workload, name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _refusal(workload, f"{name} is '{text}', no whole number", "write it as digits") from None


def _refusal(workload: Workload, what: str, fix: str) -> RefusedError:
    return RefusedError(what, where=f"{workload.kind.name} {workload.name}", fix=fix)
