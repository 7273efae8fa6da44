"""Which devices, when devices of one type differ in speed: PM-First and PAL (Jain et al., SC 2024, section III), and plain packing.

A device's *bin* is a factor that stands for devices of about the same speed. All functions look at the free devices (numbers in rising
order), change nothing, and answer with the devices in order of choice, or None where there are too few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

Devices = list[int]


@dataclass(frozen=True)
class DeviceBins:
    """The devices as one class of jobs sees them: the node and the bin of each."""

    node: Sequence[int]
    bin: Sequence[float]

    @cached_property
    def widest_node(self) -> int:
        """Devices of the node that has most."""
        counts: dict[int, int] = {}
        for node in self.node:
            counts[node] = counts.get(node, 0) + 1
        return max(counts.values(), default=0)

    def walk(self, penalty: float) -> list[tuple[float, bool]]:
        """(bin, across nodes?) by the product of bin and penalty; of equal products bins in order of appearance, within nodes first."""
        steps = [(level, across, level * (penalty if across else 1.0)) for level in dict.fromkeys(self.bin) for across in (False, True)]
        return [(level, across) for level, across, _ in sorted(steps, key=lambda step: step[2])]


def by_node(free: Sequence[int], node: Sequence[int]) -> dict[int, Devices]:
    """The free devices of each node that has any."""
    found: dict[int, Devices] = {}
    for device in free:
        found.setdefault(node[device], []).append(device)
    return found


def pm_first(free: Sequence[int], count: int, seats: DeviceBins) -> Devices | None:
    """The fastest bins first, whatever their nodes; inside a bin, nodes with a number of such devices nearest to the gang's size."""
    if len(free) < count:
        return None
    alike: dict[tuple[int, float], int] = {}
    for device in free:
        group = (seats.node[device], seats.bin[device])
        alike[group] = alike.get(group, 0) + 1
    return sorted(free, key=lambda d: (seats.bin[d], abs(alike[seats.node[d], seats.bin[d]] - count)))[:count]


def pal(free: Sequence[int], count: int, seats: DeviceBins, penalty: float, *, tightest: bool = True) -> Devices | None:
    """The first feasible step of the walk over (bin, within or across nodes).

    Of nodes that offer the same, the tightest is taken; the authors' program breaks up the emptiest (`tightest=False`).
    """
    if count == 1 or count > seats.widest_node or len(free) < count:
        return pm_first(free, count, seats)
    for level, across in seats.walk(penalty):
        good = [device for device in free if seats.bin[device] <= level]
        if len(good) < count:
            continue
        found = pm_first(good, count, seats) if across else _within_a_node(good, count, seats, tightest)
        if found is not None:
            return found
    return None


def packed(free: Sequence[int], count: int, seats: DeviceBins) -> Devices | None:
    """A node with exactly so many, else the fullest that has enough, else the nodes with most; the lowest devices of each."""
    if len(free) < count:
        return None
    nodes = dict(sorted(by_node(free, seats.node).items()))
    enough = [devices for devices in nodes.values() if len(devices) >= count]
    if enough:
        return min(enough, key=len)[:count]
    chosen: Devices = []
    while len(chosen) < count:
        number = max(nodes, key=lambda each: len(nodes[each]))
        chosen += nodes.pop(number)[: count - len(chosen)]
    return chosen


def _within_a_node(good: Sequence[int], count: int, seats: DeviceBins, tightest: bool) -> Devices | None:
    """The set on one node with the fastest slowest bin; the first of these by the number of qualifying devices."""
    nodes = [devices for devices in by_node(good, seats.node).values() if len(devices) >= count]
    nodes.sort(key=len, reverse=not tightest)
    offers = (list(chosen) for devices in nodes for chosen in combinations(devices, count))
    return min(offers, key=lambda chosen: max(seats.bin[device] for device in chosen), default=None)
