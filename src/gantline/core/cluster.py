"""A cluster as a value: nodes, their devices, racks, pools, the links between places, and how fast these are.

The end of a link has one spelling: ``node0:3`` (a device), ``node0``, ``rack:r1``, ``switch:s1``, ``storage``. Devices are at their
node and nodes in their rack without a link, unless the cluster names one there. Gangs go around as a ring, in rank order, so that on
a tree each link of the smallest subtree counts once.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.errors import UsageError, near


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


STORAGE = "storage"
RACK, SWITCH = "rack:", "switch:"
TREE = "tree:"  # begins a group of a cluster that stands for links of nodes to racks and of racks to a switch


def check_links(nodes: Sequence[Node], links: Sequence[Link], where: str = "cluster") -> None:
    """Refuse links with an end that is not there, with no bandwidth, from a place to itself, or beside another one."""
    if not links:
        return
    gpus, racks = {node.name: node.gpus for node in nodes}, {node.rack for node in nodes if node.rack}
    between: dict[frozenset[str], int] = {}
    for number, link in enumerate(links):
        place = f"{where}: links[{number}]"
        for end in (link.a, link.b):
            _check_end(end, gpus, racks, place)
        if link.a == link.b:
            raise UsageError(f"leads from '{link.a}' to itself", where=place, fix="name two places")
        if not 0.0 < link.bandwidth < math.inf:
            raise UsageError(f"has a bandwidth of {link.bandwidth:g}", where=place, fix="give GB/s above zero, such as bandwidth: 12.5")
        first = between.setdefault(frozenset((link.a, link.b)), number)
        if first < number:
            what = f"connects '{link.a}' and '{link.b}', as links[{first}] does"
            raise UsageError(what, where=place, fix="list one link, with the bandwidth of both")


def _check_end(end: str, gpus: dict[str, int], racks: set[str], place: str) -> None:
    if end == STORAGE or end in gpus or (end.startswith(SWITCH) and len(end) > len(SWITCH)):
        return
    if end.startswith(RACK):
        if end[len(RACK) :] not in racks:
            raise UsageError(f"no rack '{end[len(RACK) :]}'", where=place, fix=near(end, [RACK + rack for rack in racks]))
        return
    node, _, device = end.rpartition(":")
    if node in gpus:
        if not device.isdigit() or int(device) >= gpus[node]:
            has = f"{node} has devices 0 to {gpus[node] - 1}" if gpus[node] else f"{node} has no devices"
            raise UsageError(f"names '{end}', which is no device", where=place, fix=has)
        return
    if end in racks:
        raise UsageError(f"no node '{end}'", where=place, fix=f"a rack is written {RACK}{end}")
    raise UsageError(f"no end '{end}'", where=place, fix=near(end, [*gpus, *(RACK + rack for rack in racks), STORAGE]))


CORE = f"{SWITCH}core"


def tree_links(nodes: Sequence[Node], text: str, where: str) -> tuple[Link, ...]:
    """The links that ``tree:6.25/18.75`` means: GB/s of every node's link and of every rack's."""
    try:
        of_node, of_rack = (float(piece) for piece in text.removeprefix(TREE).split("/"))
    except ValueError:
        raise UsageError(f"'{text}' is no tree", where=where, fix="GB/s of a node's link and of a rack's: tree:6.25/18.75") from None
    racks = dict.fromkeys(node.rack for node in nodes if node.rack)
    leaves = [Link(node.name, RACK + node.rack if node.rack else CORE, of_node) for node in nodes]
    return (*leaves, *(Link(RACK + rack, CORE, of_rack) for rack in racks))


_AT_HAND = -1  # a hop that is no link


class Routes:
    """Ways through the links of one cluster, each found once."""

    def __init__(self, nodes: Sequence[Node], links: Sequence[Link]) -> None:
        self._hops: dict[str, dict[str, int]] = {}  # end -> neighbouring end -> link
        for number, link in enumerate(links):
            self._hops.setdefault(link.a, {}).setdefault(link.b, number)
            self._hops.setdefault(link.b, {}).setdefault(link.a, number)
        named = set(self._hops)
        for node in nodes if named else ():
            at_hand = [f"{node.name}:{k}" for k in range(node.gpus) if f"{node.name}:{k}" in named]
            for other in [*at_hand, *([RACK + node.rack] if node.rack else [])]:
                self._hops.setdefault(node.name, {}).setdefault(other, _AT_HAND)
                self._hops.setdefault(other, {}).setdefault(node.name, _AT_HAND)
        self._stops = [f"{node.name}:{k}" if f"{node.name}:{k}" in named else node.name for node in nodes for k in range(node.gpus)]
        self._nodes = [node.name for node in nodes]
        devices = {f"{node.name}:{k}" for node in nodes for k in range(node.gpus)}
        self._leads_out = any(not {link.a, link.b} <= devices for link in links)
        self._found: dict[tuple[str, str], tuple[int, ...] | None] = {}

    def crossed(self, devices: tuple[int, ...]) -> tuple[int, ...]:
        """The numbers of the links that a gang on these devices crosses, in rising order."""
        if not self._hops:
            return ()
        stops = list(dict.fromkeys(self._stops[device] for device in devices))
        ring = zip(stops, [*stops[1:], *stops[:1]] if len(stops) > 2 else stops[1:])
        return tuple(sorted({link for a, b in ring for link in self.between(a, b) or ()}))

    def between(self, a: str, b: str) -> tuple[int, ...] | None:
        """The links of the shortest way between two ends; None: the links do not connect them."""
        key = (a, b) if a <= b else (b, a)
        if key not in self._found:
            self._found[key] = self._search(*key)
        return self._found[key]

    def _search(self, a: str, b: str) -> tuple[int, ...] | None:
        came: dict[str, tuple[str, int]] = {a: (a, _AT_HAND)}
        queue = deque([a])
        while queue and b not in came:
            here = queue.popleft()
            for there, link in self._hops.get(here, {}).items():
                if there not in came:
                    came[there] = (here, link)
                    queue.append(there)
        if b not in came:
            return None
        way, here = [], b
        while here != a:
            here, link = came[here]
            way.append(link)
        return tuple(link for link in way if link != _AT_HAND)

    def apart(self) -> list[list[str]]:
        """The nodes in groups that no link connects, where links lead out of nodes at all; empty: all are connected."""
        if not self._leads_out:
            return []
        groups: list[list[str]] = []
        for node in self._nodes:
            mine = next((group for group in groups if self.between(group[0], node) is not None), None)
            if mine is None:
                groups.append([node])
            else:
                mine.append(node)
        return groups if len(groups) > 1 else []


class Bandwidths(NamedTuple):
    """GB/s between devices of one node, between nodes of one rack, and between racks; 0: not stated."""

    node: float = 0.0
    rack: float = 0.0
    cluster: float = 0.0

    @property
    def known(self) -> bool:
        return self.node > 0.0

    @staticmethod
    def of(numbers: Iterable[float], where: str) -> Bandwidths:
        """Three numbers above zero that do not rise with the distance."""
        found = tuple(numbers)
        falls = len(found) == 3 and all(0.0 < later <= earlier < float("inf") for earlier, later in zip((found[0], *found), found))
        if not falls:
            text = "/".join(f"{number:g}" for number in found)
            fix = "GB/s in a node, in a rack and across racks, none above the one before: links:300/25/6"
            raise UsageError(f"bandwidths of {text}", where=where, fix=fix)
        return Bandwidths(*found)


NO_BANDWIDTHS = Bandwidths()


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
