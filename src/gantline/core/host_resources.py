"""What gangs take of their nodes beside devices: CPUs, memory, storage bandwidth. Compiled.

The option table says how much for each device, the node table how much is free: lines `Option.CPUS + k` and
`Node.CPUS + k` are the same resource.
"""

from __future__ import annotations

from typing import Protocol

from gantline.core.arrays import Floats
from gantline.core.columns import HOST_RESOURCES, Node, Option
from gantline.core.jit import kernel

SLACK = 1e-9  # amounts are divided by devices, and rounded


class SideAmounts(Protocol):
    """What has such amounts: nodes, options, parts, workers, assignments."""

    @property
    def cpus(self) -> float: ...
    @property
    def memory(self) -> float: ...
    @property
    def storage(self) -> float: ...


def amounts_beside(one: SideAmounts) -> tuple[float, float, float]:
    """CPUs, GB of memory and MB/s of storage, in the order of the tables."""
    return one.cpus, one.memory, one.storage


@kernel
def asks_beside(OF: Floats, option: int) -> bool:
    """Whether an option takes anything beside its devices."""
    some = False
    for k in range(HOST_RESOURCES):
        some = some or OF[Option.CPUS + k, option] != 0.0
    return some


@kernel
def take_beside(OF: Floats, NF: Floats, option: int, node: int, devices: int) -> None:
    """So many devices of a gang on a node take what they need there; below zero: they give it back."""
    for k in range(HOST_RESOURCES):
        NF[Node.CPUS + k, node] -= OF[Option.CPUS + k, option] * devices


@kernel
def lacks_beside(OF: Floats, NF: Floats, option: int, node: int, devices: int) -> bool:
    """Whether the node has too little for so many devices of a gang."""
    short = False
    for k in range(HOST_RESOURCES):
        short = short or NF[Node.CPUS + k, node] + SLACK < OF[Option.CPUS + k, option] * devices
    return short


@kernel
def overdrawn(OF: Floats, NF: Floats, option: int, node: int) -> bool:
    """Whether gangs on the node have taken more than there is of something that this option needs."""
    short = False
    for k in range(HOST_RESOURCES):
        short = short or (OF[Option.CPUS + k, option] > 0.0 and NF[Node.CPUS + k, node] < -SLACK)
    return short
