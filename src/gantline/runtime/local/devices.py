"""This machine's devices: declared (``cpu:4``, ``h200:1,cpu:16``) or found through NVML.

A type with its devices is a node, because a node of the engine has devices of one type: ``cpu:4`` is the node ``cpu`` with four devices,
each a slot for one process that uses a core. Devices of any other type are CUDA devices, numbered in the order of their groups, or by what
NVML says. ``cpu-fast`` and the like are CPU slots of another kind.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from gantline.core.cluster import Cluster, Node
from gantline.core.errors import UsageError

_GROUP = re.compile(r"^(?P<type>[A-Za-z][\w.\-]*):(?P<count>\d+)$")
_MOST = 4096


@dataclass(frozen=True)
class Machine:
    """Nodes as the engine sees them, and what a device is called here."""

    cluster: Cluster
    cuda: dict[str, tuple[str, ...]]  # node -> name of each device for CUDA_VISIBLE_DEVICES; CPU slots have none

    def cuda_of(self, node: str, place: int) -> str | None:
        """What CUDA calls the device at that place of a node; None for a CPU slot, or a node that is not here any more."""
        names = self.cuda.get(node, ())
        return names[place] if place < len(names) else None


def find_machine(devices: str | None = None) -> Machine:
    """The machine with the declared devices; else with the GPUs that NVML finds and a slot per core."""
    return declared(devices) if devices else discovered()


def declared(text: str) -> Machine:
    """The machine that a list of groups describes."""
    nodes: list[Node] = []
    cuda: dict[str, tuple[str, ...]] = {}
    first = 0
    for part in (part.strip() for part in text.split(",")):
        group = _GROUP.match(part)
        if not group or not 0 < int(group["count"]) <= _MOST:
            raise UsageError(f"'{part}' is not a group of devices", where="--devices", fix="write TYPE:COUNT, for example h200:1,cpu:16")
        name, count = group["type"].lower(), int(group["count"])
        if any(node.name == name for node in nodes):
            raise UsageError(f"'{name}' is listed twice", where="--devices", fix="list every type once")
        nodes.append(Node(name, name, count))
        if name != "cpu" and not name.startswith("cpu-"):
            cuda[name] = tuple(str(first + k) for k in range(count))
            first += count
    return Machine(Cluster(tuple(nodes), spec=text), cuda)


def discovered() -> Machine:
    """GPUs by NVML, where it is there and finds any; a CPU slot for each core that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    found: dict[str, list[str]] = {}
    for name, uuid in _nvml():
        found.setdefault(name, []).append(uuid)
    nodes = [Node(name, name, len(ids)) for name, ids in found.items()] + [Node("cpu", "cpu", cores)]
    spec = ",".join(f"{node.name}:{node.gpus}" for node in nodes)
    return Machine(Cluster(tuple(nodes), spec=spec), {name: tuple(ids) for name, ids in found.items()})


def _nvml() -> list[tuple[str, str]]:
    """(type, UUID) of each GPU; nothing where there is no driver."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(k) for k in range(pynvml.nvmlDeviceGetCount())]
        return [(short_name(_text(pynvml.nvmlDeviceGetName(one))), _text(pynvml.nvmlDeviceGetUUID(one))) for one in handles]
    finally:
        pynvml.nvmlShutdown()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def short_name(full: str) -> str:
    """What people call a GPU: ``NVIDIA A100-SXM4-80GB`` -> ``a100``."""
    words = [
        word for word in re.split(r"[\s\-_]+", full.lower()) if word not in ("nvidia", "tesla", "geforce", "rtx", "quadro", "graphics")
    ]
    return next((word for word in words if any(sign.isdigit() for sign in word)), words[0] if words else "gpu")
