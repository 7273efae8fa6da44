"""What a cluster is made of: nodes, and links between places."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """One machine: some devices of one type, CPUs, memory, bandwidth to storage, and where it stands."""

    name: str
    type: str = "gpu"
    gpus: int = 0
    cpus: float = 0.0
    memory: float = 0.0  # GB
    rack: str = ""
    pool: str = ""
    storage: float = 0.0  # MB/s that it can read from storage
    device_memory: float = 0.0  # GB of each device; 0: not stated


@dataclass(frozen=True, slots=True)
class Link:
    """A connection between two places (see `link_ends`) with a capacity in GB/s."""

    a: str
    b: str
    bandwidth: float
    kind: str = "network"
