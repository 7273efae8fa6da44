"""Which devices exactly: base workers on the cluster's own servers if they can, extra ones on those on loan, where they go without harm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from gantline.core.arrays import Ints


class Rooms:
    """Servers by how much room they have: heaps of places, in which what has changed since is passed over."""

    def __init__(self, room: list[int]) -> None:
        self.room = room
        self.most = max(room, default=0)
        self._heaps: list[list[int]] = [[] for _ in range(self.most + 1)]
        for at, devices in enumerate(room):
            self._heaps[devices].append(at)  # in order, so it is a heap

    def take(self, at: int, devices: int) -> None:
        if devices:
            self.room[at] -= devices
            heappush(self._heaps[self.room[at]], at)

    def first(self, devices: int) -> int:
        """The first server with exactly so much room; -1: none."""
        heap = self._heaps[devices]
        while heap and self.room[heap[0]] != devices:
            heappop(heap)
        return heap[0] if heap else -1

    def choose(self, count: int, own: Iterable[int]) -> int:
        """Best fit for so many devices, else the emptiest; servers that a job has already (`own`) come first; -1: there is no room."""
        room = self.room
        mine = sorted((room[at], at) for at in own if room[at] >= count)
        if mine:
            return mine[0][1]
        for devices in range(count, self.most + 1):
            if (at := self.first(devices)) >= 0:
                return at
        partly = sorted((-room[at], at) for at in own if room[at] > 0)
        if partly:
            return partly[0][1]
        for devices in range(min(count, self.most + 1) - 1, 0, -1):
            if (at := self.first(devices)) >= 0:
                return at
        return -1


class LyraSeating:
    """Free devices by server while seats are given out; `shunned` ones are extra workers' that have not been taken from them yet."""

    def __init__(self, device_node: Ints, usable: Iterable[int], lent: Iterable[int], taken: Iterable[int]) -> None:
        self.node_of: list[int] = device_node.tolist()
        self.place = {node: at for at, node in enumerate(sorted(usable))}
        self.free: list[list[int]] = [[] for _ in self.place]
        taken_set, lent_set = set(taken), set(lent)
        for device, node in enumerate(self.node_of):
            if node in self.place and device not in taken_set:
                self.free[self.place[node]].append(device)
        self.lent = [node in lent_set for node in self.place]
        self.shun(())

    def left(self) -> int:
        """Devices that nobody has."""
        return sum(map(len, self.free))

    def shun(self, devices: Iterable[int]) -> None:
        """Base workers take these before they go to a server on loan, but not before what is free."""
        self.shunned = frozenset(devices)
        count = [len(free) for free in self.free]
        spare = count.copy()
        for device in self.shunned:
            spare[self._at(device)] -= 1
        # by kind of server: what is free and not shunned, then all that is free
        self._polite = [Rooms([room if lent == kind else 0 for room, lent in zip(spare, self.lent)]) for kind in (False, True)]
        self._rude = [Rooms([room if lent == kind else 0 for room, lent in zip(count, self.lent)]) for kind in (False, True)]

    def _at(self, device: int) -> int:
        return self.place[self.node_of[device]]

    def is_free(self, device: int) -> bool:
        return device in self.free[self._at(device)]

    def keep(self, held: Sequence[int], count: int) -> list[int]:
        """Of what a job holds, so many: own servers before those on loan, fuller ones first, so that it spans few."""
        if count <= 0 or not held:
            return []
        here = [(device, self._at(device)) for device in held if self.node_of[device] in self.place]
        size: dict[int, int] = {}
        for _, at in here:
            size[at] = size.get(at, 0) + 1
        order = sorted(here, key=lambda seat: (self.lent[seat[1]], -size[seat[1]], seat[0]))
        seats: dict[int, list[int]] = {}
        for device, at in order[:count]:
            seats.setdefault(at, []).append(device)
        for at, mine in seats.items():
            self._take(at, mine)
        return sorted(device for mine in seats.values() for device in mine)

    def add(self, count: int, near: Iterable[int], extra: bool) -> list[int]:
        """More devices, on servers of the preferred kind if there are any: best fit on one that holds all, else the emptiest in turn."""
        own = {self._at(device) for device in near}
        found: list[int] = []
        while count > 0:
            at, polite = self._choose(count, own, extra)
            free = self.free[at]
            taken = [device for device in free if device not in self.shunned][:count] if polite and self.shunned else free[:count]
            self._take(at, taken)
            found += taken
            count -= len(taken)
        return found

    def _choose(self, count: int, own: Iterable[int], extra: bool) -> tuple[int, bool]:
        """A server of the preferred kind: first what is free and not shunned, then all that is free; then one of the other kind."""
        if (at := self._polite[extra].choose(count, own)) >= 0:
            return at, True
        if (at := self._rude[extra].choose(count, own)) >= 0:
            return at, False
        return self._rude[not extra].choose(count, own), False

    def _take(self, at: int, devices: list[int]) -> None:
        gone = set(devices)
        self.free[at] = [device for device in self.free[at] if device not in gone]
        kind = self.lent[at]
        self._rude[kind].take(at, len(gone))
        self._polite[kind].take(at, len(gone - self.shunned))
