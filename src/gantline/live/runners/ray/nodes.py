"""The nodes of a Ray cluster as the engine sees them: devices by Ray's resources, under names by which they stay known.

A node is called by its label ``gantline.io/node``, else by the name that it was started with (``ray start --node-name``), else by its host.
Ray gives a node that is started again another id; the name is what it is known by. Where two nodes that are there have the same name,
the second is called by its id as well, for as long as the first is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gantline.core.cluster import Cluster, Node
from gantline.core.errors import UsageError
from gantline.core.slices import is_cpu
from gantline.live.host import accepts
from gantline.live.runners.local.devices import short_name
from gantline.live.runners.local.files import read_json, write_json
from gantline.live.runners.runner_events import NodeNews, NodeState

if TYPE_CHECKING:
    from gantline.live.runners.local.files import Values

LABEL = "gantline.io/node"
_TYPE, _TYPE_LABEL = "accelerator_type:", "ray.io/accelerator-type"
_GB = 2**30


@dataclass(frozen=True)
class RayNode:
    """One node."""

    id: str
    node: Node
    address: str
    port: int  # of the process that Ray runs on each node

    @property
    def resource(self) -> str:
        """What Ray calls its devices."""
        return "CPU" if is_cpu(self.node.type) else "GPU"

    def answers(self) -> bool:
        """Whether Ray's process there accepts connections, whatever Ray's control store believes."""
        return accepts(self.address, self.port)


@dataclass
class RayNodes:
    """All nodes that were seen, by name; `see` is called from one thread."""

    file: Path  # where names are kept from one service to the next
    slots: bool = False  # CPUs of nodes without GPUs are devices
    present: dict[str, RayNode] = field(default_factory=dict)
    lost: dict[str, RayNode] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)  # by id

    def __post_init__(self) -> None:
        self._names = dict(read_json(str(self.file)) or {})

    @property
    def cluster(self) -> Cluster:
        return Cluster(tuple(one.node for one in sorted(self.present.values(), key=lambda one: one.node.name)), spec="ray")

    def see(self, listed: Iterable[Values]) -> list[NodeNews]:
        """What is new in Ray's list. A node that Ray gives up is lost once its process there does not answer either."""
        alive = {str(one["NodeID"]): one for one in listed if one["Alive"]}
        news = [self._lose(one) for one in list(self.present.values()) if one.id not in alive and not one.answers()]
        waits = {name for name, one in self.present.items() if one.id not in alive}  # Ray has given it up, and it answers still
        for id, one in alive.items():
            known = self._names.get(id)
            if (known is not None and known in self.present) or self._name(one) in waits:
                continue
            name = known or self._new_name(id, one)
            node = self._node(name, one)
            if node is not None:
                self.present[name] = RayNode(id, node, str(one["NodeManagerAddress"]), int(one["NodeManagerPort"]))
                self.lost.pop(name, None)
                news.append(NodeNews(name, NodeState.UP, node))
        return news

    def resource(self, name: str) -> str:
        """What Ray calls the devices of a node, also of one that is lost."""
        return (self.present.get(name) or self.lost[name]).resource

    def verdict(self, name: str) -> str:
        """Whose fault the loss of a keeper there is: ``node``, ``engine``; empty: it is not known yet."""
        here = self.present.get(name)
        return "node" if here is None else "engine" if here.answers() else ""

    def _lose(self, one: RayNode) -> NodeNews:
        name = one.node.name
        self.lost[name] = self.present.pop(name)
        return NodeNews(name, NodeState.LOST, why="Ray has lost it, and it does not answer")

    def _new_name(self, id: str, one: Values) -> str:
        name = self._name(one)
        self._names[id] = name if name not in self.present else f"{name}-{id[:6]}"
        write_json(str(self.file), self._names)
        return self._names[id]

    @staticmethod
    def _name(one: Values) -> str:
        given = str(one.get("NodeName", ""))
        chosen = "" if given == one["NodeManagerAddress"] else given
        return str(one.get("Labels", {}).get(LABEL) or chosen or one["NodeManagerHostname"])

    def _node(self, name: str, one: Values) -> Node | None:
        """The node with its devices; None: it has none that jobs could use."""
        has: Mapping[str, float] = one["Resources"]
        cpus, memory, gpus = float(has.get("CPU", 0.0)), float(has.get("memory", 0.0)) / _GB, int(has.get("GPU", 0.0))
        if gpus:
            return Node(name, _gpu_type(one), gpus, cpus, memory)
        return Node(name, "cpu", int(cpus), cpus, memory) if self.slots and cpus >= 1 else None


def _gpu_type(one: Values) -> str:
    labelled = one.get("Labels", {}).get(_TYPE_LABEL)
    found = labelled or next((key.removeprefix(_TYPE) for key in one["Resources"] if key.startswith(_TYPE)), "")
    return short_name(str(found)) if found else "gpu"


def check_devices(devices: str | None) -> bool:
    """Whether CPUs are devices; anything but ``cpu`` is refused, because a cluster declares its devices itself."""
    if devices in (None, ""):
        return False
    if devices != "cpu":
        fix = "leave it out for the GPUs that Ray knows of, or write --devices cpu: CPUs of nodes without GPUs are slots"
        raise UsageError(f"'{devices}': the devices of a Ray cluster are those that its nodes declare", where="--devices", fix=fix)
    return True
