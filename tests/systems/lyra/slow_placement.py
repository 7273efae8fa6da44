"""Devices found one job and one server after the other: the slow, obvious form of `gantline.systems.lyra.policies.placement`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gantline.core.arrays import Ints


class SlowPlacement:
    """Free devices by server while devices are given out; `shunned` ones are extra workers' that have not been taken from them yet."""

    def __init__(self, device_node: Ints, usable: Iterable[int], lent: Iterable[int], taken: Iterable[int]) -> None:
        self.node_of = device_node
        self.free: dict[int, list[int]] = {node: [] for node in sorted(usable)}
        taken_set = set(taken)
        for device, node in enumerate(device_node.tolist()):
            if node in self.free and device not in taken_set:
                self.free[node].append(device)
        self.nodes = np.array(list(self.free), dtype=np.int64)
        self.place = {node: at for at, node in enumerate(self.free)}
        self.lent = np.isin(self.nodes, list(lent))
        self.count = np.array([len(devices) for devices in self.free.values()], dtype=np.int64)
        self.shunned: frozenset[int] = frozenset()
        self.spare = self.count.copy()  # free and not shunned

    def left(self) -> int:
        """Devices that nobody has."""
        return int(self.count.sum())

    def shun(self, devices: Iterable[int]) -> None:
        """Base workers take these before they go to a server on loan, but not before what is free."""
        self.shunned = frozenset(devices)
        self.spare = self.count.copy()
        for device in self.shunned:
            self.spare[self.place[int(self.node_of[device])]] -= 1

    def is_free(self, device: int) -> bool:
        return device in self.free[int(self.node_of[device])]

    def keep(self, held: Sequence[int], count: int) -> list[int]:
        """Of what a job holds, so many: own servers before those on loan, fuller ones first, so that it spans few."""
        at = {device: self.place[int(self.node_of[device])] for device in held}
        size = {place: list(at.values()).count(place) for place in at.values()}
        kept = sorted(held, key=lambda device: (self.lent[at[device]], -size[at[device]], device))[: max(count, 0)]
        for device in kept:
            self._take(at[device], [device])
        return sorted(kept)

    def add(self, count: int, near: Iterable[int], extra: bool) -> list[int]:
        """More devices, on servers of the preferred kind if there are any: best fit on one that holds all, else the emptiest in turn."""
        own = np.zeros(len(self.nodes), dtype=bool)
        own[[self.place[int(self.node_of[device])] for device in near]] = True
        found: list[int] = []
        while count > 0:
            liked = self.lent == extra
            room, polite = np.where(liked, self.spare, 0), True
            if not room.any():
                room, polite = np.where(liked, self.count, 0) if (self.count[liked] > 0).any() else self.count, False
            if (room >= count).any():
                at = int(np.argmin(np.where(room >= count, room + np.where(own, 0, 1 << 20), 1 << 40)))
            else:
                at = int(np.argmax(room + np.where(own & (room > 0), 1 << 20, 0)))
            devices = self.free[int(self.nodes[at])]
            taken = [device for device in devices if not (polite and device in self.shunned)][:count]
            self._take(at, taken)
            found += taken
            count -= len(taken)
        return found

    def _take(self, at: int, devices: list[int]) -> None:
        gone = set(devices)
        node = int(self.nodes[at])
        self.free[node] = [device for device in self.free[node] if device not in gone]
        self.count[at] -= len(gone)
        self.spare[at] -= len(gone - self.shunned)


def place_slowly(slow: SlowPlacement, held: list[list[int]], base: list[int], size: list[int]) -> list[list[int]]:
    """Base workers stay or find a place, own servers first; then extra ones stay if nobody has taken theirs, or find another."""
    jobs = range(len(held))
    kept = [slow.keep(held[j], min(base[j], size[j])) for j in jobs]
    slow.shun({device for devices in held for device in devices} - {device for mine in kept for device in mine})
    for j in jobs:
        kept[j] += slow.add(min(base[j], size[j]) - len(kept[j]), kept[j], extra=False)
    for j in jobs:
        rest = [device for device in held[j] if device not in kept[j] and slow.is_free(device)]
        kept[j] += slow.keep(rest, size[j] - len(kept[j]))
    slow.shun(())
    for j in jobs:
        kept[j] += slow.add(size[j] - len(kept[j]), kept[j], extra=True)
    return [sorted(devices) for devices in kept]
