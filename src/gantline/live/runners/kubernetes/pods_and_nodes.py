"""Pods and nodes as the runner sees them (the few fields that matter, so that ten thousand are small), and the pods that a gang becomes."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gantline.core.cluster import Node
from gantline.engine.executor import Order
from gantline.live.jobs.launch import Launch
from gantline.live.runners.job_environment import gang_ranks, job_environment
from gantline.live.runners.kubernetes.access import Object, Shown
from gantline.live.runners.local.devices import short_name
from gantline.live.runners.runner_context import Task
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


# The objects that make up a gang: one pod for each of its nodes, and the name under which they find each other.
#
# A pod's first process is a shell that starts the ranks of its node, hands the stop signal on and ends with the exit code of the first rank
# that fails: a program that is process 1 itself would not be ended by a signal that it does not handle.

_PORT = 29500  # every pod has ports of its own
_LAUNCH = """\
mine=$$; stopped=; failed=; pids=; rank=0; hand_on=TERM
[ $LOCAL_WORLD_SIZE -gt 1 ] || hand_on=$GANTLINE_STOP_SIGNAL
stop() { woken=1; stopped=1; for p in $pids; do kill -$hand_on $p 2>/dev/null; done; }
fail() { woken=1; failed=1; [ -z "$stopped" ] || return; for p in $pids; do kill -ALRM $p 2>/dev/null; done; }
code_of() {  # a signal to this shell ends its wait: then it waits again, and what was known already counts
  known=
  while :; do
    woken=; wait $1 2>/dev/null; code=$?
    [ $code -ne 127 ] || [ -z "$known" ] || code=$known
    [ -n "$woken" ] || break
    known=$code
  done
}
one() {
  own=; told=
  trap 'woken=1; told=$GANTLINE_STOP_SIGNAL; [ -z "$own" ] || kill -$told $own 2>/dev/null' TERM
  trap 'woken=1; told=KILL; [ -z "$own" ] || kill -KILL $own 2>/dev/null' ALRM
  trap - USR1
  "$@" & own=$!
  [ -z "$told" ] || kill -$told $own
  code_of $own
  [ $code -eq 0 ] || kill -USR1 $mine 2>/dev/null
  exit $code
}
trap stop TERM
trap fail USR1
while [ $rank -lt $LOCAL_WORLD_SIZE ]; do
  export RANK=$((GANTLINE_FIRST_RANK + rank)) LOCAL_RANK=$rank
  if [ $LOCAL_WORLD_SIZE -eq 1 ]; then "$@" & else ( one "$@" ) & fi
  pids="$pids $!"; rank=$((rank + 1))
done
[ -z "$stopped" ] || stop
[ -z "$failed" ] || fail
worst=0
for p in $pids; do
  code_of $p
  case $worst in 0|137|142) [ $code -eq 0 ] || worst=$code;; esac  # 137 and 142: ended because another one failed
done
exit $worst
"""


@dataclass(frozen=True)
class PodTerms:
    """What all pods of a service have in common."""

    namespace: str
    home: str  # the identity of its home
    url: str  # of the service, as pods reach it
    image: str = ""
    checkpoints: str = ""  # a claim, or a path of every node


def manifests(terms: PodTerms, order: Order, task: Task, places: Mapping[str, Sequence[int]], resource: str) -> list[Object]:
    """The pods of a gang, in the order of its nodes; `places`: the devices on each node, `resource`: what counts them."""
    name, nodes = gang_name(task.job, order.epoch), list(places)
    names = [f"{node}:{place}" for node, at in places.items() for place in at]
    common = {"PYTHONUNBUFFERED": "1", **task.launch.env, **job_environment(task, order, names, terms.url, _checkpoint(terms, task.job))}
    ranks = gang_ranks(task.launch, places, _address(name, terms.namespace) if len(nodes) > 1 else "127.0.0.1", _PORT)
    found: list[Object] = []
    for number, node in enumerate(nodes):
        first = next((rank.env for rank in ranks if rank.node == node), {**ranks[0].env, "LOCAL_WORLD_SIZE": "0", "NODE_RANK": str(number)})
        env = common | {key: value for key, value in first.items() if key not in ("RANK", "LOCAL_RANK")}
        env |= {"GANTLINE_FIRST_RANK": first["RANK"], "GANTLINE_STOP_SIGNAL": task.launch.stop_signal or "TERM"}
        notes = {"home": terms.home, "epoch": str(order.epoch), "node": node, "places": ",".join(map(str, places[node]))}
        head = {
            "name": f"{name}.{number}", "namespace": terms.namespace, "finalizers": [FINALIZER],
            "labels": {f"{MARK}/job": task.job, f"{MARK}/epoch": str(order.epoch), f"{MARK}/node-rank": str(number)},
            "annotations": {f"{MARK}/{key}": value for key, value in notes.items()},
        }  # fmt: skip
        spec = _spec(terms, task, env, order, len(places[node]), resource)
        spec |= {"hostname": f"rank-{number}", "subdomain": _subdomain(name)} if len(nodes) > 1 else {}
        found.append({"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": spec})
    return found


def meeting_point(terms: PodTerms, job: str, epoch: int) -> Object:
    """A headless service, by which the ranks of several pods find the first one."""
    name = gang_name(job, epoch)
    head = {"name": _subdomain(name), "namespace": terms.namespace, "labels": {f"{MARK}/job": job, f"{MARK}/epoch": str(epoch)}}
    spec = {
        "clusterIP": "None", "publishNotReadyAddresses": True, "selector": {f"{MARK}/job": job, f"{MARK}/epoch": str(epoch)},
        "ports": [{"name": "meet", "port": _PORT, "protocol": "TCP"}],
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Service", "metadata": head, "spec": spec}


def _subdomain(name: str) -> str:
    return name.replace(".", "-")


def _address(name: str, namespace: str) -> str:
    return f"rank-0.{_subdomain(name)}.{namespace}.svc"


def _checkpoint(terms: PodTerms, job: str) -> str:
    """Where a pod sees the saved work of its job; a path of the nodes has the same name inside."""
    if not terms.checkpoints:
        return ""
    root = terms.checkpoints if terms.checkpoints.startswith("/") else "/gantline"
    return f"{root.rstrip('/')}/{job}"


def _spec(terms: PodTerms, task: Task, env: Mapping[str, str], order: Order, devices: int, resource: str) -> Object:
    launch = task.launch
    command = ["/bin/sh", "-c", launch.command[0]] if launch.shell else list(launch.command)
    volumes, mounts = _volumes(terms, task)
    container: Object = {
        "name": "main", "image": launch.image or terms.image, "command": ["/bin/sh", "-c", _LAUNCH, "gantline", *command],
        "env": [{"name": name, "value": value} for name, value in sorted(env.items())],
        "resources": _resources(order, launch, devices, resource),
    }  # fmt: skip
    container |= ({"workingDir": launch.cwd} if launch.cwd else {}) | ({"volumeMounts": mounts} if mounts else {})
    spec: Object = {
        "schedulerName": SCHEDULER, "restartPolicy": "Never", "terminationGracePeriodSeconds": max(1, math.ceil(launch.grace)),
        "containers": [container],
    }  # fmt: skip
    if resource and resource != "cpu":
        spec["tolerations"] = [{"key": resource, "operator": "Exists", "effect": "NoSchedule"}]
    return spec | ({"volumes": volumes} if volumes else {})


def _resources(order: Order, launch: Launch, devices: int, resource: str) -> Object:
    """Slots of CPUs are shared in equal parts by gangs that are on them together."""
    if resource == "cpu":
        found: Object = {"requests": {"cpu": thousandths(max(devices, 1) / (1 + len(order.mates)))}}
    else:
        found = {"requests": {}, "limits": {resource: str(devices)}} if devices else {"requests": {}}
        cpus = order.grant.assignment.cpus if order.grant is not None else math.nan
        if math.isfinite(cpus) and cpus > 0.0:
            found["requests"]["cpu"] = thousandths(cpus * devices / max(len(order.devices), 1) if devices else cpus)
    if launch.memory:
        found.setdefault("limits", {})["memory"] = str(int(launch.memory * 2**30))
    return {key: value for key, value in found.items() if value}


def _volumes(terms: PodTerms, task: Task) -> tuple[list[Object], list[Object]]:
    """Volumes and where they are seen: what the job asks for (FROM:TO[:ro]), and its saved work."""
    volumes: list[Object] = []
    mounts: list[Object] = []
    asked = [(one.split(":"), "") for one in task.launch.mounts]
    if terms.checkpoints:
        asked.append(([terms.checkpoints, _checkpoint(terms, task.job)], task.job))
    for number, (parts, below) in enumerate(asked):
        source, name = parts[0], f"mount-{number}"
        kind: Object = {"hostPath": {"path": source}} if source.startswith("/") else {"persistentVolumeClaim": {"claimName": source}}
        volumes.append({"name": name, **kind})
        mount = {"name": name, "mountPath": parts[1], "readOnly": parts[2:] == ["ro"]}
        mounts.append(mount | ({"subPath": below} if below else {}))
    return volumes, mounts
