"""A pod as the runner sees it: the few fields that matter, so that ten thousand of them are small."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gantline.core.nodes import Node
from gantline.live.runners.kubernetes.access import Shown
from gantline.live.runners.local.devices import short_name
from gantline.live.runners.runner_events import NodeNews, NodeState

SCHEDULER = "gantline"  # the scheduler name of our pods
MARK = "gantline.io"  # labels, annotations and the finalizer begin with it
FINALIZER = f"{MARK}/end"  # keeps a pod until its end has been written down
_NAME = re.compile(r"^gantline-(?P<job>\d+(?:-\d+)?|job\d+)\.(?P<epoch>\d+)\.(?P<place>\d+)$")
_UNPULLED = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")
_UNMADE = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod, ours or another's."""

    name: str
    namespace: str
    uid: str
    version: int
    node: str
    phase: str
    reason: str  # why the engine beneath has ended it, or cannot start it; empty: it did neither
    message: str
    exit: int | None
    started: float | None  # seconds since 1970, by its node's clock
    is_deleted: bool  # somebody has asked for its deletion
    is_confirmed: bool  # and its node has confirmed that nothing of it is left
    is_held: bool  # our finalizer keeps it
    is_gantlines: bool  # it asks for us as its scheduler
    home: str  # the home whose service has made it
    places: tuple[int, ...]  # devices of its node that it has, by our count
    uses: Mapping[str, float]  # what it requests
    owner: str = ""  # uid of the object that made it and controls it
    container: str = ""  # its first one

    @property
    def is_over(self) -> bool:
        """Whether it uses nothing any more."""
        return self.phase in ("Succeeded", "Failed") or self.is_confirmed or (self.is_deleted and not self.node)

    @property
    def runs(self) -> bool:
        return self.phase == "Running" and self.started is not None

    @property
    def cannot_start(self) -> str:
        """Why its container cannot be made; empty: nothing says so."""
        if self.phase != "Pending" or self.reason not in (*_UNPULLED, *_UNMADE):
            return ""
        what = "its image cannot be pulled" if self.reason in _UNPULLED else "its container cannot be made"
        return f"{what} on node {self.node}: {self.message or self.reason}"


def read_pod(value: Shown) -> Pod:
    """The fields of an object of the API."""
    head, spec, status = value["metadata"], value.get("spec") or {}, value.get("status") or {}
    notes = head.get("annotations") or {}
    shown = (status.get("containerStatuses") or [{}])[0].get("state") or {}
    ended, waiting, running = shown.get("terminated") or {}, shown.get("waiting") or {}, shown.get("running") or {}
    phase = str(status.get("phase") or "Pending")
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    if not reason:
        of = waiting if phase == "Pending" else ended
        reason, message = str(of.get("reason") or ""), str(of.get("message") or "")
    started = running.get("startedAt") or ended.get("startedAt")
    exits = ended.get("exitCode")
    return Pod(
        str(head["name"]), str(head.get("namespace", "")), str(head.get("uid", "")), int(head.get("resourceVersion") or 0),
        str(spec.get("nodeName") or ""), phase, reason, message, None if exits is None else int(exits),
        None if started is None else instant(str(started)), bool(head.get("deletionTimestamp")),
        bool(head.get("deletionTimestamp")) and head.get("deletionGracePeriodSeconds") == 0,
        FINALIZER in (head.get("finalizers") or ()), spec.get("schedulerName") == SCHEDULER, str(notes.get(f"{MARK}/home", "")),
        tuple(int(one) for one in str(notes.get(f"{MARK}/places", "")).split(",") if one.isdigit()), requests_of(spec),
        *_made_by(head, spec),
    )  # fmt: skip


def _made_by(head: Shown, spec: Shown) -> tuple[str, str]:
    """The controlling owner, and the name of the first container."""
    owner = next((str(one.get("uid", "")) for one in head.get("ownerReferences") or () if one.get("controller")), "")
    return owner, sys.intern(str((spec.get("containers") or [{}])[0].get("name", "")))


def requests_of(spec: Shown) -> dict[str, float]:
    """What all containers together request; an init container counts where it alone requests more."""
    total: dict[str, float] = {}
    for one in spec.get("containers") or ():
        for name, value in _requests(one).items():
            total[name] = total.get(name, 0.0) + value
    for one in spec.get("initContainers") or ():
        for name, value in _requests(one).items():
            total[name] = max(total.get(name, 0.0), value)
    return total


def _requests(container: Shown) -> dict[str, float]:
    room = container.get("resources") or {}
    return {name: amount(value) for name, value in {**(room.get("limits") or {}), **(room.get("requests") or {})}.items()}


def instant(text: str) -> float:
    """A time of the API as seconds since 1970; NaN: it is none."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return math.nan


def gang_name(job: str, epoch: int) -> str:
    """What belongs to one incarnation has a name that begins with this. Names cannot be edited, so they are what is believed."""
    return f"gantline-{job.replace('_', '-')}.{epoch}"


def identity_of(name: str) -> tuple[str, int] | None:
    """The job and epoch that a pod's name states; None: it is no pod of a job."""
    found = _NAME.match(name)
    return (found["job"].replace("-", "_"), int(found["epoch"])) if found else None


# What a node of the cluster is for the scheduler: its devices from its status and labels, and whether gangs may
# start there.

GPUS = ("nvidia.com/gpu", "amd.com/gpu")  # resources that are accelerators, by the plugin that counts them
_PRODUCT = (
    "nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator",
    "vodascheduler/accelerator", "accelerator",
)  # fmt: skip
_RACK = ("topology.kubernetes.io/rack", "topology.kubernetes.io/zone")
_BY_CONDITION = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable")


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One node as the API shows it."""

    name: str
    uid: str
    node: Node
    resource: str  # that counts its devices; empty: it has none for us
    state: NodeState
    why: str = ""
    labels: Shown = field(default_factory=dict, compare=False)

    @property
    def news(self) -> NodeNews:
        return NodeNews(self.name, self.state, self.node if self.state is NodeState.UP else None, self.why)


def read_node(value: Shown, slots: bool) -> ClusterNode:
    """A node; `slots`: its CPUs are its devices."""
    head, status = value["metadata"], value.get("status") or {}
    room, labels = status.get("allocatable") or {}, head.get("labels") or {}
    resource = "cpu" if slots else next((name for name in GPUS if amount(room.get(name)) >= 1), "")
    kind = "cpu" if slots else next((short_name(labels[name]) for name in _PRODUCT if labels.get(name)), "gpu")
    rack = next((str(labels[name]) for name in _RACK if labels.get(name)), "")
    memory = amount(room.get("memory")) / 2**30
    node = Node(str(head["name"]), kind, int(amount(room.get(resource))) if resource else 0, amount(room.get("cpu")), memory, rack)
    state, why = _state(value.get("spec") or {}, status)
    return ClusterNode(node.name, str(head.get("uid", "")), node, resource, state, why, labels)


def _state(spec: Shown, status: Shown) -> tuple[NodeState, str]:
    """Silence is a loss; a node that says itself that it is not ready lets what runs there go on."""
    ready: Shown = next((one for one in status.get("conditions") or () if one.get("type") == "Ready"), {})
    if ready.get("status") == "Unknown":
        return NodeState.LOST, f"its kubelet has been silent: {ready.get('message') or ready.get('reason') or 'unknown'}"
    if ready.get("status") != "True":
        return NodeState.DRAINED, f"it is not ready: {ready.get('message') or ready.get('reason') or 'it has said nothing yet'}"
    if spec.get("unschedulable"):
        return NodeState.DRAINED, "it is cordoned"
    for taint in spec.get("taints") or ():
        if taint.get("effect") in ("NoSchedule", "NoExecute") and taint.get("key") not in (*GPUS, *_BY_CONDITION):
            return NodeState.DRAINED, f"it has the taint {taint.get('key')}={taint.get('value', '')}:{taint.get('effect')}"
    return NodeState.UP, ""


# Amounts as Kubernetes writes them: ``500m``, ``4``, ``16Gi``.

_UNITS = {
    "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "n": 1e-9, "u": 1e-6,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50,
}  # fmt: skip


def amount(text: object) -> float:
    """The number that a quantity means; what is none counts as nothing."""
    written = str(text or "0")
    digits = written.rstrip("mkMGTPnuKi")
    try:
        return float(digits) * _UNITS.get(written[len(digits) :], 1.0)
    except ValueError:
        return 0.0


def thousandths(value: float) -> str:
    """An amount of CPUs."""
    return f"{max(1, round(value * 1000))}m"
