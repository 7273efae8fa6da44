"""The cluster at one instant, as a policy sees it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.tables import Tables


class ClusterNow:
    """The cluster at one instant: capacity, what is free, who holds what."""

    __slots__ = ("_tables",)

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @property
    def types(self) -> tuple[str, ...]:
        return self._tables.cluster.types

    @property
    def nodes(self) -> int:
        return int(self._tables.NI.shape[1])

    @property
    def node_type(self) -> Ints:
        column: Ints = self._tables.NI[c.N_TYPE]
        return column

    @property
    def node_gpus(self) -> Ints:
        column: Ints = self._tables.NI[c.N_GPUS]
        return column

    @property
    def node_free(self) -> Ints:
        column: Ints = self._tables.NI[c.N_FREE]
        return column

    @property
    def node_up(self) -> Bools:
        return np.asarray(self._tables.NI[c.N_UP] == 1)

    @property
    def node_rack(self) -> Ints:
        column: Ints = self._tables.NI[c.N_RACK]
        return column

    @property
    def node_cpus_free(self) -> Floats:
        column: Floats = self._tables.NF[c.N_CPUS]
        return column

    @property
    def node_memory_free(self) -> Floats:
        column: Floats = self._tables.NF[c.N_MEMORY]
        return column

    @property
    def device_node(self) -> Ints:
        column: Ints = self._tables.D[c.D_NODE]
        return column

    @property
    def device_holder(self) -> Ints:
        """Row of the job that holds each device (negative: free, down or shared)."""
        column: Ints = self._tables.D[c.D_HOLDER]
        return column

    @property
    def gpus(self) -> int:
        """Devices on nodes that are up."""
        return int(self._tables.NI[c.N_GPUS][self.node_up].sum())

    @property
    def free(self) -> int:
        return int(self._tables.NI[c.N_FREE].sum())

    @property
    def capacity(self) -> Ints:
        """Devices per type on nodes that are up."""
        return np.bincount(self.node_type, weights=self.node_gpus * self.node_up, minlength=len(self.types)).astype(np.int64)

    @property
    def free_of_type(self) -> Ints:
        return np.bincount(self.node_type, weights=self.node_free, minlength=len(self.types)).astype(np.int64)

    @property
    def links(self) -> Any:
        return self._tables.cluster.links

    @property
    def description(self) -> Any:
        """The cluster as it was specified."""
        return self._tables.cluster
