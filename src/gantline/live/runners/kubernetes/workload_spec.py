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
from gantline.live.runners.kubernetes.workloads import Guest

_VODA = {"MIN_NP": "MIN_NUM_PROC", "MAX_NP": "MAX_NUM_PROC", "NP": "NUM_PROC"}  # its other spellings
_NOTES = ("priority", "min-gpus", "max-gpus", "estimate", "time-limit", "resumes")
SIZES = frozenset({"pods", "min-gpus", "max-gpus", *_VODA.values()})  # of what is asked for: how many devices
_UNREAD = ("affinity", "topologySpreadConstraints")


def asks_of(guest: Guest, slots: bool) -> Object:
    """What its owner asks for, in plain values by name: a change of any of them is a change of the job. Nodes do not matter here."""
    specs = {role.name: role.spec for role in guest.roles}
    found: Object = {
        "queue": guest.queue,
        "pods": guest.wanted,
        "devices": {role.name: role.devices(slots) for role in guest.roles},
        "nodeSelector": {name: spec["nodeSelector"] for name, spec in specs.items() if spec.get("nodeSelector")},
        "activeDeadlineSeconds": guest.policy.get("activeDeadlineSeconds"),
        **{name: any(spec.get(name) for spec in specs.values()) for name in _UNREAD},
        **{name: _note(guest, name) for name in _NOTES},
        **_of_voda(guest),
    }
    return {name: value for name, value in found.items() if value}


def spec_of_guest(guest: Guest, nodes: Iterable[ClusterNode], slots: bool) -> Object:
    """As `runtime.spec_file.spec_of` reads it. Raises `RefusedError` where the object cannot be run as it is."""
    _check_template(guest)
    each = {role.devices(slots) for role in guest.roles if role.pods} - {0}
    if not each:
        what = "none of its pods requests a CPU" if slots else "none of its pods has a limit of nvidia.com/gpu or amd.com/gpu"
        raise _refusal(guest, what, "say in resources what each of them needs")
    pods = sum(role.pods for role in guest.roles if role.devices(slots))
    fitting, total = _fitting(guest, list(nodes)), sum(role.pods * role.devices(slots) for role in guest.roles)
    range_ = _range(guest, each, pods)
    found: Object = {
        "run": [f"{guest.kind.name}/{guest.name}"], "name": guest.name, "queue": guest.queue, "object": guest.title, **_terms(guest),
        **_devices(guest, range_[1] if range_ else total, each, pods, fitting),
    }  # fmt: skip
    if range_ and range_[0] < range_[2]:
        found["elastic"] = {"min": range_[0], "max": range_[2]}
    if "elastic" in found or _note(guest, "resumes") == "true":
        found["checkpoint"] = {}
    return found


def _check_template(guest: Guest) -> None:
    """Refuse what would be ignored."""
    if guest.misread:
        raise _refusal(guest, guest.misread, "correct it: a role has replicas, in digits, and a template")
    if not guest.names_us:
        fix = f"write schedulerName: {SCHEDULER} into its template, which cannot be changed later"
        raise _refusal(guest, "its pods ask for another scheduler", fix)
    for role in guest.roles:
        if any(role.spec.get(name) for name in _UNREAD):
            what = "its pods have an affinity or spread constraints, which this scheduler does not read"
            raise _refusal(guest, what, "leave them out: pods of a gang are placed together, near each other")
    if guest.by_parallelism and not guest.kind.replicas and guest.spec.get("activeDeadlineSeconds"):
        what = "activeDeadlineSeconds would go on while it waits, because this API server cannot suspend a Job"
        raise _refusal(guest, what, f"leave it out, or use Kubernetes 1.22 or later; {MARK}/time-limit bounds the time that it runs")


def _fitting(guest: Guest, nodes: list[ClusterNode]) -> list[Node]:
    """Nodes that its node selectors allow; types are chosen whole."""
    wanted: dict[str, str] = {}
    for role in guest.roles:
        wanted |= role.spec.get("nodeSelector") or {}
    there = [one for one in nodes if one.node.gpus]
    fit = [one for one in there if all(one.labels.get(key) == value for key, value in wanted.items())]
    types = {one.node.type for one in fit}
    shown = ",".join(f"{key}={value}" for key, value in wanted.items())
    if wanted and not fit:
        raise _refusal(guest, f"no node has the labels {shown} of its node selector", "correct it, or create the object again later")
    if any(one.node.type in types for one in there if one not in fit):
        raise _refusal(guest, f"its node selector {shown} chooses only some nodes of a type", "select a type: nvidia.com/gpu.product")
    return [one.node for one in fit]


def _devices(guest: Guest, total: int, each: set[int], pods: int, fitting: list[Node]) -> Object:
    """Pods of one device each may be anywhere; larger ones are all on one node, or where no node has room for that, each on its own."""
    selected = any(role.spec.get("nodeSelector") for role in guest.roles)
    types = sorted({node.type for node in fitting})
    if each == {1} or any(node.gpus >= total for node in fitting):
        ways: Object = {"any_of": [{"accelerators": f"{kind}:{total}"} for kind in types]} if selected else {"gpus": total}
        return {"resources": ways, "processes": "gpus" if each == {1} else pods}
    size = max(each)
    types = [kind for kind in types if any(node.type == kind and node.gpus >= size for node in fitting)]
    if len(each) > 1 or not types:
        what = f"its pods use {' or '.join(map(str, sorted(each)))} devices, {total} together, and no node has so many"
        raise _refusal(guest, what, "make all its pods of one size that a node has")
    return {"resources": {"any_of": [{"accelerators": f"{kind}:{size}", "nodes": pods} for kind in types]}, "processes": "nodes"}


def _range(guest: Guest, each: set[int], pods: int) -> tuple[int, int, int] | None:
    """The least devices, those that it asks for and the most, where it is elastic. Voda counts processes, each of which has a device."""
    known = _of_voda(guest)
    voda = "MIN_NUM_PROC" in known or "MAX_NUM_PROC" in known
    low, high = _note(guest, "min-gpus") or known.get("MIN_NUM_PROC"), _note(guest, "max-gpus") or known.get("MAX_NUM_PROC")
    if not low and not high:
        return None
    if each != {1}:
        raise _refusal(guest, f"it is elastic, and a pod of it uses {max(each)} devices", "give each pod one device")
    asks = known.get("NUM_PROC") or (low if voda and low else str(pods))
    least, asked, most = (_whole(guest, "its number of devices", text) for text in (low or asks, asks, high or asks))
    if not 1 <= least <= asked <= most:
        what = f"it asks for {asked} devices, and is elastic from {least} to {most}"
        raise _refusal(guest, what, "let the first be at least 1 and lie between the others")
    return least, asked, most


def _terms(guest: Guest) -> Object:
    found: Object = {}
    if voda := _of_voda(guest).get("JOB_PRIORITY"):
        found["priority"] = -_whole(guest, "JOB_PRIORITY", voda)
    if priority := _note(guest, "priority"):
        found["priority"] = priority if priority in ("low", "normal", "high") else _whole(guest, "priority", priority)
    if estimate := _note(guest, "estimate"):
        found["estimate"] = estimate
    if limit := _note(guest, "time-limit") or guest.policy.get("activeDeadlineSeconds"):
        found["limits"] = {"time": limit}
    return found


def _of_voda(guest: Guest) -> dict[str, str]:
    """Variables by which an MPIJob tells Voda's scheduler what it asks for."""
    known = {_VODA.get(name, name): value for name, value in guest.variables()} if guest.kind.name == "MPIJob" else {}
    return {name: known[name] for name in (*_VODA.values(), "JOB_PRIORITY") if name in known}


def _note(guest: Guest, name: str) -> str:
    return str(guest.notes.get(f"{MARK}/{name}") or "")


def _whole(guest: Guest, name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _refusal(guest, f"{name} is '{text}', no whole number", "write it as digits") from None


def _refusal(guest: Guest, what: str, fix: str) -> RefusedError:
    return RefusedError(what, where=f"{guest.kind.name} {guest.name}", fix=fix)
