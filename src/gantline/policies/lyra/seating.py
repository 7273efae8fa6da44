"""Which devices exactly: base workers on the cluster's own servers if they can, extra ones on those on loan, where they go without harm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gantline.core.arrays import Ints


class Seating:
    """Free devices by server while seats are given out."""

    def __init__(self, device_node: Ints, usable: Iterable[int], lent: Iterable[int], taken: Iterable[int]) -> None:
        self.lent, self.node_of = frozenset(lent), device_node
        taken_set = set(taken)
        self.free: dict[int, list[int]] = {node: [] for node in sorted(usable)}
        for device in range(len(device_node)):
            node = int(device_node[device])
            if node in self.free and device not in taken_set:
                self.free[node].append(device)

    def left(self) -> int:
        """Devices that nobody has."""
        return sum(len(devices) for devices in self.free.values())

    def keep(self, held: Sequence[int], count: int) -> list[int]:
        """Of what a job holds, so many: own servers before those on loan, fuller ones first, so that it spans few."""
        here = [device for device in held if int(self.node_of[device]) in self.free]
        size = {int(node): int(number) for node, number in zip(*np.unique(self.node_of[here], return_counts=True))} if here else {}
        order = sorted(here, key=lambda device: (int(self.node_of[device]) in self.lent, -size[int(self.node_of[device])], device))
        kept = sorted(order[:count])
        for device in kept:
            self.free[int(self.node_of[device])].remove(device)
        return kept

    def add(self, count: int, near: Iterable[int], extra: bool, avoid: frozenset[int] = frozenset()) -> list[int]:
        """More devices, on servers of the preferred kind if there are any: best fit on one that holds all, else the emptiest in turn.

        Base workers take what others have as extra workers (`avoid`) before they go to a server on loan, but not before what is free.
        """
        own = {int(self.node_of[device]) for device in near}
        found: list[int] = []
        while count > 0:
            open_ = {node: [d for d in devices if d not in avoid] for node, devices in self.free.items()}
            kind = {node: devices for node, devices in open_.items() if devices and (node in self.lent) == extra}
            if not kind:
                kind = {node: devices for node, devices in self.free.items() if devices and (node in self.lent) == extra}
            if not kind:
                kind = {node: devices for node, devices in self.free.items() if devices}
            whole = [node for node, devices in kind.items() if len(devices) >= count]
            if whole:
                node = min(whole, key=lambda node: (node not in own, len(kind[node]), node))
            else:
                node = max(kind, key=lambda node: (node in own, len(kind[node]), -node))
            taken = kind[node][:count]
            self.free[node] = [device for device in self.free[node] if device not in taken]
            found += taken
            count -= len(taken)
        return found
