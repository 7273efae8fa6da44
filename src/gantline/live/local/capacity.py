"""How many CPUs and how much memory this process and its jobs may use: what the machine has, less what a control group leaves of it."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

from gantline.core.cluster import Cluster, Node
from gantline.core.slices import whole_and_percent
from gantline.live.local.devices import Machine, gpus_found

_GROUPS = Path("/sys/fs/cgroup")
_GB = 2**30


def cpus() -> float:
    """CPUs that this process may be scheduled on, and no more than its control group may use."""
    cores = float(len(allowed_cores()))
    quota, _, period = _read(_GROUPS / "cpu.max").partition(" ")
    return min(cores, int(quota) / int(period)) if quota.isdigit() and period.strip().isdigit() else cores


def memory() -> float:
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
    each = replace(nodes[0], cpus=cpus() / len(nodes), memory=memory() / len(nodes), storage=storage / len(nodes))
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
