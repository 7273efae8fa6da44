"""Device memory (section 3.2): owners have all that they need, guests share the rest, and it goes to the one that gains most by it.

A guest cannot do without its floor (the metric `memory_floor`, GB per device: parameters and optimizer; where unknown, all of its need).
What it has beyond that it gains speed by; of two guests the one that uses more of the device per GB of its need gains more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from gantline.core.snapshot import Snapshot
from gantline.models.sharing.device_contention import NEED

FLOOR = "memory_floor"
_ROUNDING = 1e-9
Seats = Mapping[int, tuple[int, ...]]


class MemoryShares:
    """What jobs need of each of their devices, and what devices have."""

    def __init__(self, snapshot: Snapshot, use: Sequence[float]) -> None:
        cluster, jobs = snapshot.cluster, snapshot.jobs
        has = np.array([memory or math.inf for memory in cluster.device_memory])
        self._has: list[float] = has[cluster.node_type[cluster.device_node]].tolist()
        need, floor = jobs.metric(NEED), jobs.metric(FLOOR)
        self._need: list[float] = np.where(need > 0.0, need, 0.0).tolist()
        self._floor: list[float] = np.where(floor >= 0.0, np.minimum(floor, self._need), self._need).tolist()
        self._use = use
        self.counts = any(map(math.isfinite, self._has))

    def left(self, device: int, owners: Sequence[int], guests: Sequence[int]) -> float:
        """GB that are left when owners have their need and guests their floor."""
        return self._has[device] - sum(self._need[at] for at in owners) - sum(self._floor[at] for at in guests)

    def admits(self, at: int, device: int, owners: Sequence[int], guests: Sequence[int]) -> bool:
        """Whether another guest has its floor there."""
        return self.left(device, owners, guests) >= self._floor[at] - _ROUNDING

    def caps(self, owners: Seats, guests: Seats) -> dict[int, float]:
        """GB per device for each guest: the floor, and what is left to the one that gains most, then to the next."""
        there, hosts = _by_device(guests), _by_device(owners)
        room = {device: self.left(device, hosts.get(device, ()), company) for device, company in there.items()}
        found = {}
        for at in sorted(guests, key=lambda at: (-self._use[at] / self._need[at] if self._need[at] else 0.0, at)):
            more = min([self._need[at] - self._floor[at], *(room[device] for device in guests[at])])
            for device in guests[at]:
                room[device] -= more
            found[at] = self._floor[at] + more if self._need[at] else math.inf
        return found

    def too_many(self, owners: Seats, guests: Seats) -> list[int]:
        """Guests that must leave for the owners to have what they need: the last to come first."""
        left = dict(guests)
        hosts = _by_device(owners)
        gone = []
        for at in reversed(list(guests)):
            there = _by_device(left)
            if any(self.left(device, hosts.get(device, ()), there[device]) < -_ROUNDING for device in guests[at]):
                gone.append(at)
                del left[at]
        return gone


def _by_device(seats: Seats) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for at, devices in seats.items():
        for device in devices:
            found.setdefault(device, []).append(at)
    return found
