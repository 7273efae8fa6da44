"""This machine's devices: declared (``cpu:4``, ``h200:1,cpu:16``, ``h200/8``) or found through NVML.

A type with its devices is a node, because a node of the engine has devices of one type: ``cpu:4`` is the node ``cpu`` with four devices,
each a slot for one process that uses a core. Devices of any other type are CUDA devices, numbered in the order of their groups, or by what
NVML says. ``cpu-fast`` and the like are CPU slots of another kind.

A GPU that is cut in slices (`core.slices`) is a node by itself, or one for each size of its slices: ``a100:2/4`` are the nodes
``a100.25pct-0`` and ``a100.25pct-1`` with four devices each. So everything that keeps a gang on one node keeps it on one GPU.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from gantline.core.cluster import Cluster, Node
from gantline.core.errors import UsageError
from gantline.core.slices import Size, is_cpu, is_slice, parse_slices, slice_type, whole_and_percent

_GROUP = re.compile(r"^(?P<type>[A-Za-z][\w.\-]*)(?::(?P<count>\d+))?(?:/(?P<slices>.+))?$")
_MOST = 4096


@dataclass(frozen=True)
class Machine:
    """Nodes as the engine sees them, and what a device is called here."""

    cluster: Cluster
    cuda: dict[str, tuple[str, ...]]  # node -> name of each device for CUDA_VISIBLE_DEVICES; CPU slots have none
    cores: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)  # node -> the cores of each of its slices

    @property
    def gpus(self) -> list[str]:
        """What CUDA calls the GPUs, each once however many slices it has."""
        return list(dict.fromkeys(name for names in self.cuda.values() for name in names))

    @property
    def binds(self) -> bool:
        """Whether processes are bound to devices: to GPUs, or to the cores of slices; slots of other CPUs are all alike."""
        return bool(self.cuda) or any(is_slice(node.type) for node in self.cluster.nodes)

    def gpus_of(self, whole: str) -> list[str]:
        """The same for GPUs of one type, whole or in slices."""
        of_type = (node.name for node in self.cluster.nodes if whole_and_percent(node.type)[0] == whole)
        return list(dict.fromkeys(name for node in of_type for name in self.cuda.get(node, ())))

    def cuda_of(self, node: str, place: int) -> str | None:
        """What CUDA calls the device at that place of a node, or the GPU of a slice; None for a CPU slot, or a node that is gone."""
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
        if not group or not (group["count"] or group["slices"]) or not 0 < int(group["count"] or 1) <= _MOST:
            fix = "write TYPE:COUNT, for example h200:1,cpu:16, or TYPE:COUNT/SLICES, for example h200:1/8"
            raise UsageError(f"'{part}' is not a group of devices", where="--devices", fix=fix)
        name, count = group["type"].lower(), int(group["count"] or 1)
        if is_slice(name):
            raise UsageError(
                f"'{name}' is the type of a slice", where="--devices", fix="declare the GPU with its slices, for example h200/8"
            )
        sizes = parse_slices(group["slices"], f"--devices {part}") if group["slices"] else ()
        made = list(_sliced(name, count, sizes)) if sizes else [(Node(name, name, count), 0)]
        if len(nodes) + len(made) > _MOST or any(node.type == one.type for node in nodes for one, _ in made):
            raise UsageError(f"'{made[0][0].type}' is listed twice", where="--devices", fix="list every type once")
        nodes += (node for node, _ in made)
        if not is_cpu(name):
            cuda |= {node.name: tuple(str(first + gpu + (0 if sizes else k)) for k in range(node.gpus)) for node, gpu in made}
            first += count
    return Machine(Cluster(tuple(nodes), spec=text), cuda)


def _sliced(name: str, gpus: int, sizes: tuple[Size, ...]) -> Iterator[tuple[Node, int]]:
    """A node for the slices of one size of each GPU, and which GPU of its group that is."""
    for gpu in range(gpus):
        for percent, count in sizes:
            kind = slice_type(name, percent)
            yield Node(f"{kind}-{gpu}", kind, count), gpu


def too_many(machine: Machine) -> str:
    """That more CUDA devices are declared than NVML finds here; empty where there are as many."""
    wanted, found = len(machine.gpus), len(gpus_found())
    gpus = f"{found} GPU{'' if found == 1 else 's'}"
    return f"{wanted} CUDA devices are declared, but this machine has {gpus}: jobs on the others find none" if wanted > found else ""


def discovered() -> Machine:
    """GPUs by NVML, where it is there and finds any; a CPU slot for each core that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    found: dict[str, list[str]] = {}
    for gpu in gpus_found():
        found.setdefault(gpu.type, []).append(gpu.uuid)
    nodes = [Node(name, name, len(ids)) for name, ids in found.items()] + [Node("cpu", "cpu", cores)]
    spec = ",".join(f"{node.name}:{node.gpus}" for node in nodes)
    return Machine(Cluster(tuple(nodes), spec=spec), {name: tuple(ids) for name, ids in found.items()})


class FoundGpu(NamedTuple):
    """A GPU as NVML reports it."""

    type: str
    uuid: str
    minor: int  # of its device file
    memory: float = 0.0  # GB (2**30 bytes)
    capability: float = 0.0  # its compute capability; 0: not known


def gpus_found() -> list[FoundGpu]:
    """The GPUs of this machine in NVML's order; nothing where there is no driver."""
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
        return [
            FoundGpu(
                short_name(_text(pynvml.nvmlDeviceGetName(one))),
                _text(pynvml.nvmlDeviceGetUUID(one)),
                int(pynvml.nvmlDeviceGetMinorNumber(one)),
                pynvml.nvmlDeviceGetMemoryInfo(one).total / 2**30,
                float("{}.{}".format(*pynvml.nvmlDeviceGetCudaComputeCapability(one))),
            )
            for one in handles
        ]
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


# How many CPUs and how much memory this process and its jobs may use: what the machine has, less what a control
# group leaves of it.

_GROUPS = Path("/sys/fs/cgroup")
_GB = 2**30


def cpus_usable() -> float:
    """CPUs that this process may be scheduled on, and no more than its control group may use."""
    cores = float(len(allowed_cores()))
    quota, _, period = _read(_GROUPS / "cpu.max").partition(" ")
    return min(cores, int(quota) / int(period)) if quota.isdigit() and period.strip().isdigit() else cores


def memory_usable() -> float:
    """GB of memory, as jobs count them (2**30 bytes)."""
    found = [line.split()[1] for line in _read(Path("/proc/meminfo")).splitlines() if line.startswith("MemTotal:")]
    total = int(found[0]) * 1024 if found else 0
    limit = _read(_GROUPS / "memory.max").strip()
    return math.floor(10 * (min(total, int(limit)) if limit.isdigit() else total) / _GB) / 10


def with_capacity(machine: Machine, storage: float = 0.0) -> Machine:
    """The machine with CPUs, memory and MB/s of storage to book, the memory of GPUs that NVML finds, and the cores and memory of slices.

    Its groups of devices have equal parts of these, because they run side by side; so have the slices of a group.
    """
    nodes, known, gpus = machine.cluster.nodes, dict[str, float](), gpus_found() if machine.cuda else []
    for gpu in gpus:
        known[gpu.type] = min(gpu.memory, known.get(gpu.type, math.inf))
    each = replace(nodes[0], cpus=cpus_usable() / len(nodes), memory=memory_usable() / len(nodes), storage=storage / len(nodes))
    sized, cores, cuda = list[Node](), dict[str, tuple[tuple[int, ...], ...]](), dict(machine.cuda)
    uuids = {str(number): gpu.uuid for number, gpu in enumerate(gpus)}
    for node, own in zip(nodes, divided(allowed_cores(), len(nodes))):
        whole, percent = whole_and_percent(node.type)
        if percent < 100 and whole not in known:  # NVML calls them otherwise
            known[whole] = min((gpus[int(name)].memory for name in machine.gpus_of(whole) if int(name) < len(gpus)), default=0.0)
        on_device = known.get(whole, 0.0) * percent / 100
        sized.append(replace(node, cpus=each.cpus, memory=each.memory, storage=each.storage, device_memory=on_device))
        if percent < 100:
            cores[node.name] = divided(own, node.gpus)
        if percent < 100 and node.name in cuda:  # a daemon of the multi-process service counts only the GPU that it serves
            cuda[node.name] = tuple(uuids.get(name, name) for name in cuda[node.name])
    return Machine(Cluster(tuple(sized), spec=machine.cluster.spec), cuda, cores)


def allowed_cores() -> tuple[int, ...]:
    """The cores on which this process may be scheduled."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else tuple(range(os.cpu_count() or 1))


def divided(cores: tuple[int, ...], parts: int) -> tuple[tuple[int, ...], ...]:
    """The cores in disjoint parts that differ by one at most; where there are fewer cores than parts, neighbours have one in common."""
    bounds = [(k * len(cores) // parts, (k + 1) * len(cores) // parts) for k in range(parts)]
    return tuple(cores[first : max(last, first + 1)] for first, last in bounds)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
