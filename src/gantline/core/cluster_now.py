"""The cluster at one instant, as a policy sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.cluster import Bandwidths, Link
from gantline.core.columns import DOWN, Column, DeviceTable, Kind, NodeTable
from gantline.core.snapshot_view import Lent, Shown
from gantline.core.topology import Traffic, slowest_link


class ClusterNow:
    """The cluster at one instant: capacity, what is free, which job holds what."""

    __slots__ = ("_lent", "_links", "_rows")

    def __init__(self, lent: Lent, rows: Ints) -> None:
        self._lent, self._rows = lent, rows
        self._links: LinksNow | None = None

    def _read(self, column: Column[Kind]) -> NDArray[Kind]:
        return self._lent.column(column)

    @property
    def types(self) -> tuple[str, ...]:
        """Names of the device types; a type's code is its position here."""
        return self._lent.cluster().types

    @property
    def nodes(self) -> int:
        """How many nodes there are, up or not."""
        return len(self._lent.cluster().nodes)

    node_type = Shown(NodeTable.type)
    node_gpus = Shown(NodeTable.gpus)
    node_free = Shown(NodeTable.free)

    @property
    def node_up(self) -> Bools:
        """Whether each node can be used."""
        return np.asarray(self._lent.column(NodeTable.up) == 1)

    node_rack = Shown(NodeTable.rack)

    @property
    def racks(self) -> tuple[str, ...]:
        """Names of the racks; a rack's code is its position here."""
        return self._lent.cluster().racks

    @property
    def bandwidths(self) -> Bandwidths:
        """GB/s in a node, in a rack and across racks; zeros where it is not stated."""
        return self._lent.cluster().bandwidths

    def slowest_link(self, nodes: Iterable[int]) -> float:
        """GB/s of the slowest link that a gang on these nodes crosses; 0: not stated."""
        return slowest_link(self._lent.cluster(), nodes)

    node_cpus_free = Shown(NodeTable.cpus)
    node_memory_free = Shown(NodeTable.memory)
    node_storage_free = Shown(NodeTable.storage)

    @property
    def device_memory(self) -> tuple[float, ...]:
        """GB of each device, by type; 0: not stated. What a job needs on each is `jobs.metric("device_memory")`."""
        return self._lent.cluster().device_memory

    device_node = Shown(DeviceTable.node)

    device_holder = Shown(DeviceTable.holder)

    @property
    def device_open(self) -> Bools:
        """Whether new gangs may have each device: its node is up, and neither of them is cordoned."""
        return np.asarray(self.node_up[self.device_node] & (self._lent.column(DeviceTable.closed) == 0))

    @property
    def gpus(self) -> int:
        """Devices in use or to be had: on nodes that are up, less those that are cordoned and idle."""
        return int(self.capacity.sum())

    @property
    def free(self) -> int:
        """Free devices of all types."""
        return int(self.node_free.sum())

    @property
    def capacity(self) -> Ints:
        """Devices per type on nodes that are up, less those that are cordoned and idle."""
        there: Ints = self.node_gpus * self.node_up
        if self._lent.column(NodeTable.closed).any():
            out = (self.device_holder == DOWN) & self.node_up[self.device_node]
            there = there - np.bincount(self.device_node[out], minlength=self.nodes)
        return np.bincount(self.node_type, weights=there, minlength=len(self.types)).astype(np.int64)

    @property
    def free_of_type(self) -> Ints:
        """Free devices per type."""
        return np.bincount(self.node_type, weights=self.node_free, minlength=len(self.types)).astype(np.int64)

    @property
    def links(self) -> LinksNow:
        """The links that the cluster names: bandwidth, load, and which jobs cross each."""
        if self._links is None:
            self._links = LinksNow(self._lent, self._rows)
        return self._links

    @property
    def description(self) -> Any:
        """The cluster as it was specified."""
        return self._lent.cluster()

    def matrices(self) -> tuple[Floats, Ints, Ints]:
        """Copies of the node tables and the device table (see `gantline.core.columns`), for policies that are compiled."""
        return self._lent.node_matrices()


class LinksNow:
    """The links, and columns with an entry for each."""

    def __init__(self, lent: Lent, rows: Ints) -> None:
        self._lent, self._rows = lent, rows
        self._links = lent.cluster().links

    def __len__(self) -> int:
        return len(self._links)

    def __getitem__(self, at: int) -> Link:
        return self._links[at]

    def __iter__(self) -> Iterator[Link]:
        return iter(self._links)

    def __eq__(self, other: object) -> bool:
        return self._links == (other._links if isinstance(other, LinksNow) else other)

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def bandwidth(self) -> Floats:
        """GB/s of each."""
        return np.array([link.bandwidth for link in self._links])

    @cached_property
    def _crossed(self) -> list[tuple[int, ...]]:
        routes = self._lent.cluster().routes
        return [routes.crossed(self._lent.devices(row)) if self._links else () for row in self._rows.tolist()]

    def of(self, job: int) -> tuple[int, ...]:
        """The links that a job crosses, by its position in the snapshot."""
        return self._crossed[job]

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """The positions of the jobs that cross each link."""
        found: list[list[int]] = [[] for _ in self._links]
        for job, crossed in enumerate(self._crossed):
            for link in crossed:
                found[link].append(job)
        return tuple(map(tuple, found))

    @cached_property
    def load(self) -> Floats:
        """The part of each link that its jobs would use on average if they ran at their full speed; above one: it is overloaded."""
        traffic = Traffic.read(self._lent.metric, self._rows)
        found = np.zeros(len(self._links))
        for link, jobs in enumerate(self.users):
            found[link] = sum(traffic.mean(job, self._links[link].bandwidth) for job in jobs) / self._links[link].bandwidth
        return found
