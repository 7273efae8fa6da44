"""Device memory: what gangs may use of it on each device is booked, and a gang for which too little is left is refused with the amounts.

A gang takes what the plan allows it (`memory_cap`), else what its job is known to need on each device (the metric `device_memory`).
Nothing is counted where a cluster does not state the memory of its devices, or nothing is known of a job.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from gantline.core.columns import DEVICE_MEMORY, Device, Node
from gantline.core.plan import Assignment
from gantline.core.tables import Tables

_SLACK = 1e-9


class DeviceMemory:
    """The books of one commit; `planned` is what rows shall have by its plan, where that is not what they have."""

    def __init__(self, tables: Tables, tenants: Callable[[int], list[int]], planned: Mapping[int, Assignment]) -> None:
        self.tables, self.tenants, self.planned = tables, tenants, planned
        self.counts = any(tables.cluster.device_memory)

    def lacking(self, row: int, devices: Iterable[int]) -> str:
        """Why the row cannot have what it shall on these devices beside the gangs that are there; empty: it can."""
        wanted = self.amount(row) if self.counts else 0.0
        if wanted == 0.0:
            return ""
        for device in devices:
            has, taken = self._of(device), self._taken(device, row)
            if has > 0.0 and wanted + taken > has + _SLACK:
                node = self.tables.cluster.nodes[int(self.tables.D[Device.NODE, device])].name
                place = f"{node}:{device - int(self.tables.NI[Node.FIRST, self.tables.D[Device.NODE, device]])}"
                left = f", of which {taken:g} GB are taken" if taken else ""
                return f"job '{self.tables.ids[row]}' needs {wanted:g} GB of device memory, and {place} has {has:g} GB{left}"
        return ""

    def amount(self, row: int) -> float:
        """GB that the row takes of each of its devices."""
        grant = self.tables.granted.get(row)
        item = self.planned.get(row) or (None if grant is None else grant.assignment)
        if item is not None and item.memory_cap < math.inf:
            return item.memory_cap
        known = self.tables.metrics.get(DEVICE_MEMORY)
        need = math.nan if known is None else float(known[row])
        return need if need > 0.0 else 0.0

    def _of(self, device: int) -> float:
        return self.tables.cluster.device_memory[int(self.tables.NI[Node.TYPE, self.tables.D[Device.NODE, device]])]

    def _taken(self, device: int, row: int) -> float:
        return sum(self.amount(other) for other in self.tenants(device) if other != row)
