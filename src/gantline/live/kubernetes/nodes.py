"""What a node of the cluster is for the scheduler: its devices from its status and labels, and whether gangs may start there."""

from __future__ import annotations

from dataclasses import dataclass, field

from gantline.core.nodes import Node
from gantline.live.bulletins import NodeNews, NodeState
from gantline.live.kubernetes.objects import Shown
from gantline.live.kubernetes.quantities import amount
from gantline.live.local.devices import short_name

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
