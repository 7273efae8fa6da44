"""The specification of a job that an object of the cluster is: its queue, devices, priority and limits, or why it cannot be one.

Annotations say what Kubernetes has no field for: ``gantline.io/priority``, ``min-gpus``, ``max-gpus``, ``estimate``, ``time-limit`` and
``resumes``. An MPIJob may be written for Voda's scheduler, with variables of its launcher: ``MIN_NUM_PROC``, ``MAX_NUM_PROC``,
``NUM_PROC`` (what it asks for) and ``JOB_PRIORITY`` (0 is highest).
"""

from __future__ import annotations

from collections.abc import Iterable

from gantline.core.errors import RefusedError
from gantline.core.nodes import Node
from gantline.live.runners.kubernetes.access import Object
from gantline.live.runners.kubernetes.pods_and_nodes import MARK, SCHEDULER, ClusterNode
from gantline.live.runners.kubernetes.workloads import Workload

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
        ways: Object = {"any_of": [{"accelerators": f"{kind}:{total}"} for kind in types]} if selected else {"gpus": total}
        return {"resources": ways, "processes": "gpus" if each == {1} else pods}
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
