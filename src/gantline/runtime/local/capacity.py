"""How many CPUs and how much memory this process and its jobs may use: what the machine has, less what a control group leaves of it."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

from gantline.core.cluster import Cluster
from gantline.runtime.local.devices import Machine, gpus_found

_GROUPS = Path("/sys/fs/cgroup")
_GB = 2**30


def cpus() -> float:
    """CPUs that this process may be scheduled on, and no more than its control group may use."""
    cores = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1))
    quota, _, period = _read(_GROUPS / "cpu.max").partition(" ")
    return min(cores, int(quota) / int(period)) if quota.isdigit() and period.strip().isdigit() else cores


def memory() -> float:
    """GB of memory, as jobs count them (2**30 bytes)."""
    found = [line.split()[1] for line in _read(Path("/proc/meminfo")).splitlines() if line.startswith("MemTotal:")]
    total = int(found[0]) * 1024 if found else 0
    limit = _read(_GROUPS / "memory.max").strip()
    return math.floor(10 * (min(total, int(limit)) if limit.isdigit() else total) / _GB) / 10


def with_capacity(machine: Machine) -> Machine:
    """The machine with CPUs and memory for jobs to book, and the memory of GPUs that NVML finds.

    Its groups of devices have equal parts of CPUs and memory, because they run side by side.
    """
    nodes, known = machine.cluster.nodes, dict[str, float]()
    for gpu in gpus_found() if machine.cuda else ():
        known[gpu.type] = min(gpu.memory, known.get(gpu.type, math.inf))
    each = replace(nodes[0], cpus=cpus() / len(nodes), memory=memory() / len(nodes))
    sized = tuple(replace(node, cpus=each.cpus, memory=each.memory, device_memory=known.get(node.type, 0.0)) for node in nodes)
    return Machine(Cluster(sized, spec=machine.cluster.spec), machine.cuda)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
