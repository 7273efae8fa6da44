"""The devices as AntMan sees them while it decides: which guaranteed job owns or has reserved each, and how much guests and owners use."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from gantline.core.snapshot import Snapshot
from gantline.models.sharing.device_contention import USE, USE_NOW
from gantline.systems.antman.policies.memory import MemoryShares
from gantline.systems.antman.policies.seats import gang_seats, guest_seats


class Floor:
    """Owners, reservations and guests; begins with what runs."""

    def __init__(self, snapshot: Snapshot, guests: Collection[int]) -> None:
        """`guests` are the rows that run as guests; all others that run own their devices."""
        self._jobs, self._cluster = snapshot.jobs, snapshot.cluster
        jobs, node = self._jobs, self._cluster.device_node
        self._node_of = node.tolist()
        self._open = self._cluster.device_open.tolist()
        self._width = np.bincount(node, minlength=self._cluster.nodes).tolist()
        use = jobs.metric(USE_NOW)
        use = np.where(np.isnan(use), jobs.metric(USE), use)
        self.use = np.where(np.isnan(use), 1.0, use).tolist()  # of a device, by each job
        self.memory = MemoryShares(snapshot, self.use)
        self.owners: dict[int, tuple[int, ...]] = {}
        self.guests: dict[int, tuple[int, ...]] = {}
        self._taken: dict[int, int] = {}  # device -> its owner, or the job that has reserved it
        rows = jobs.rows.tolist()
        for at in np.flatnonzero(jobs.running).tolist():
            if rows[at] in guests:
                self.guests[at] = jobs.devices(at)
            else:
                self.own(at, jobs.devices(at))

    def own(self, at: int, devices: tuple[int, ...]) -> None:
        """A guaranteed job gets these, and is a guest no longer."""
        self.owners[at] = devices
        self.guests.pop(at, None)
        self._taken.update(dict.fromkeys(devices, at))

    def seat(self, at: int) -> None:
        """Give a guaranteed job devices of its own, or reserve what there is. Where it is a guest without a host, it stays."""
        held = self.guests.get(at, ())
        if held and not any(device in self._taken for device in held):
            self.own(at, held)
            return
        gpus, type = int(self._jobs.gpus[at]), self._type(at)
        free: list[list[int]] = [[] for _ in self._width]
        for device, node in enumerate(self._node_of):
            if self._open[device] and device not in self._taken and self._cluster.node_type[node] == type:
                free[node].append(device)
        seats = gang_seats(gpus, free, self._width)[:gpus]
        if len(seats) == gpus:
            self.own(at, tuple(seats))
        else:
            self._taken.update(dict.fromkeys(seats, at))

    def let_in(self, at: int, busy: float) -> None:
        """Seat a guest where devices are used least, if they are used less than `busy`; one that runs stays where it is."""
        if at in self.guests:
            return
        use = dict.fromkeys((device for device in range(len(self._node_of)) if self._fits(at, device)), 0.0)
        for job, devices in (*self.owners.items(), *self.guests.items()):
            for device in devices:
                if device in use:
                    use[device] += self.use[job]
        seats = guest_seats(int(self._jobs.gpus[at]), use, busy)
        if seats is not None:
            self.guests[at] = tuple(seats)

    def hosts(self, at: int) -> list[int]:
        """The owners of the devices of a guest that run; a reservation is no host."""
        found = dict.fromkeys(self._taken.get(device, -1) for device in self.guests[at])
        return [host for host in found if host in self.owners]

    def company(self, at: int) -> int:
        """How many guests, itself included, are on the device where they are most."""
        mine = set(self.guests[at])
        counts = [sum(device in devices for devices in self.guests.values()) for device in mine]
        return max(counts)

    def _type(self, at: int) -> int:
        """The device type on which a job runs, or that of its first option."""
        here = int(self._jobs.type[at])
        return here if here >= 0 else self._jobs.options(at)[0].type

    def make_room(self) -> None:
        """Guests leave where the owners need the memory that they cannot do without."""
        for at in self.memory.too_many(self.owners, self.guests) if self.memory.counts else ():
            del self.guests[at]

    def _fits(self, at: int, device: int) -> bool:
        if not self._open[device] or int(self._cluster.node_type[self._node_of[device]]) != self._type(at):
            return False
        owner = self._taken.get(device, -1)
        there = [guest for guest, devices in self.guests.items() if device in devices] if self.memory.counts else []
        return self.memory.admits(at, device, [owner] if owner >= 0 else [], there)
