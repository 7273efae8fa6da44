"""A cluster as a value: nodes, their devices, racks, pools and the links between devices or nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gantline.core.errors import UsageError
from gantline.core.nodes import NO_BANDWIDTHS, Bandwidths, check_links
from gantline.core.nodes import Link as Link
from gantline.core.nodes import Node as Node

if TYPE_CHECKING:
    from gantline.core.nodes import Routes


@dataclass(frozen=True)
class Cluster:
    """An ordered set of nodes. Devices are numbered through the nodes in order: device ids never change."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...] = ()
    spec: str = field(default="", compare=False)
    bandwidths: Bandwidths = NO_BANDWIDTHS

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for node in self.nodes:
            if node.name in seen:
                raise UsageError(f"two nodes are called '{node.name}'", where="cluster", fix="give every node its own name")
            seen.add(node.name)
            if min(node.gpus, node.cpus, node.memory, node.storage, node.device_memory) < 0:
                raise UsageError(f"node '{node.name}' has a negative amount of something", where="cluster", fix="use zero or more")
        check_links(self.nodes, self.links)
        sizes = dict.fromkeys((node.type, node.device_memory) for node in self.nodes if node.gpus)
        if len(sizes) > len({kind for kind, _ in sizes}):
            twice = next(kind for kind, _ in sizes if sum(other == kind for other, _ in sizes) > 1)
            found = " and ".join(f"{memory:g}" for kind, memory in sizes if kind == twice)
            what = f"devices of type '{twice}' have {found} GB of memory"
            raise UsageError(what, where="cluster", fix=f"call them by two types, such as {twice} and {twice}-large")

    @cached_property
    def device_memory(self) -> tuple[float, ...]:
        """GB of each device by type; 0: not stated."""
        known = {node.type: node.device_memory for node in self.nodes if node.gpus}
        return tuple(known.get(name, 0.0) for name in self.types)

    @cached_property
    def routes(self) -> Routes:
        """Which links lead where."""
        from gantline.core.nodes import Routes  # few clusters name links

        return Routes(self.nodes, self.links)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """Device types in the order in which nodes name them; a type's place here is its code."""
        return tuple(dict.fromkeys(node.type for node in self.nodes))

    @cached_property
    def node_type(self) -> NDArray[np.int64]:
        code = {name: i for i, name in enumerate(self.types)}
        return np.array([code[node.type] for node in self.nodes], dtype=np.int64)

    @cached_property
    def node_gpus(self) -> NDArray[np.int64]:
        return np.array([node.gpus for node in self.nodes], dtype=np.int64)

    @cached_property
    def first_device(self) -> NDArray[np.int64]:
        """The first device of each node; its devices follow one another."""
        return np.concatenate([[0], np.cumsum(self.node_gpus)])[:-1].astype(np.int64)

    @cached_property
    def device_node(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.nodes), dtype=np.int64), self.node_gpus)

    @cached_property
    def racks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(node.rack for node in self.nodes))

    @cached_property
    def node_rack(self) -> NDArray[np.int64]:
        code = {name: i for i, name in enumerate(self.racks)}
        return np.array([code[node.rack] for node in self.nodes], dtype=np.int64)

    @cached_property
    def named_links(self) -> dict[frozenset[str], float]:
        """GB/s by the two ends of every link."""
        return {frozenset((link.a, link.b)): link.bandwidth for link in self.links}

    @property
    def gpus(self) -> int:
        return int(self.node_gpus.sum())

    def gpus_of(self, type_name: str) -> int:
        return sum(node.gpus for node in self.nodes if node.type == type_name)

    def type_code(self, name: str) -> int:
        """The code of a device type, -1 if the cluster has none (names match whatever the case)."""
        lowered = name.lower()
        for code, known in enumerate(self.types):
            if known.lower() == lowered:
                return code
        return -1

    def __str__(self) -> str:
        return self.spec or f"{len(self.nodes)} nodes, {self.gpus} GPUs"
