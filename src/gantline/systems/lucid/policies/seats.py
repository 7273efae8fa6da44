"""Which devices are free, and where a gang goes: on the node with the tightest gap, else on whole idle nodes and a tight rest."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import FREE
from gantline.core.options import Option
from gantline.core.snapshot import Snapshot

_SLACK = 1e-9


class FreeSeats:
    """Free devices, CPUs and memory of each node while a plan is made."""

    def __init__(self, snapshot: Snapshot) -> None:
        cluster = snapshot.cluster
        node = cluster.device_node
        idle = np.flatnonzero((cluster.device_holder == FREE) & cluster.device_open)
        self.free: list[list[int]] = [[] for _ in range(cluster.nodes)]
        for device in idle.tolist():
            self.free[int(node[device])].append(device)
        self.node_gpus: Ints = cluster.node_gpus
        self.kind = cluster.node_type.tolist()
        self._cpus, self._memory = cluster.node_cpus_free.tolist(), cluster.node_memory_free.tolist()

    def take(self, option: Option, nodes: Collection[int]) -> tuple[int, ...] | None:
        """Devices for one option on some of these nodes; None: there is no room."""
        able = [node for node in nodes if self.kind[node] == option.type]
        size = max((int(self.node_gpus[node]) for node in able), default=0)
        if not size or not option.gpus:
            return None
        whole, rest = (0, option.gpus) if option.gpus <= size else divmod(option.gpus, size)
        idle = [node for node in able if self._room(node, option) >= size][:whole]
        if len(idle) < whole:
            return None
        counts = [(node, size) for node in idle]
        if rest:
            fits = [node for node in able if node not in idle and self._room(node, option) >= rest]
            if not fits:
                return None
            counts.append((min(fits, key=lambda node: len(self.free[node])), rest))
        return tuple(device for node, count in counts for device in self._give(node, count, option))

    def _room(self, node: int, option: Option) -> int:
        """How many devices of the option's demand the node has room for."""
        found = len(self.free[node])
        for amount, each in ((self._cpus[node], option.cpus), (self._memory[node], option.memory)):
            found = min(found, int((amount + _SLACK) // each)) if each > 0.0 else found
        return found

    def _give(self, node: int, count: int, option: Option) -> list[int]:
        taken, self.free[node] = self.free[node][:count], self.free[node][count:]
        self._cpus[node] -= count * option.cpus
        self._memory[node] -= count * option.memory
        return taken
