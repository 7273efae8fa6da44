"""Free devices by tier: on one machine, on machines of one rack, anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gantline.core.topology import ACROSS, IN_NODE, IN_RACK

Seats = dict[int, int]  # node -> devices there


@dataclass
class Offers:
    """Devices of one type that no job holds in the plan so far, and what the machines and racks of that type hold at most."""

    left: dict[int, list[int]]  # node -> devices
    rack: list[int]  # of every node
    machine_size: int
    rack_size: int

    def lowest(self, gpus: int) -> int:
        """The lowest tier on which so many devices can be had at all."""
        return IN_NODE if gpus <= self.machine_size else IN_RACK if gpus <= self.rack_size else ACROSS

    def find(self, gpus: int, tier: int) -> Seats | None:
        """Where so many devices are free within this tier, on the fullest machine or rack that has them; None: nowhere."""
        room = {node: len(devices) for node, devices in self.left.items() if devices}
        if tier == IN_NODE:
            fits = [(count, node) for node, count in room.items() if count >= gpus]
            return {min(fits)[1]: gpus} if fits else None
        racks: dict[int, int] = {}
        for node, count in room.items():
            racks[self.rack[node]] = racks.get(self.rack[node], 0) + count
        if tier == IN_RACK:
            held = [(count, rack) for rack, count in racks.items() if count >= gpus]
            if not held:
                return None
            rack = min(held)[1]
            return _fill(gpus, sorted((node for node in room if self.rack[node] == rack), key=lambda node: (-room[node], node)), room)
        if sum(racks.values()) < gpus:
            return None
        return _fill(gpus, sorted(room, key=lambda node: (-racks[self.rack[node]], self.rack[node], -room[node], node)), room)

    def take(self, seats: Seats) -> list[int]:
        """Devices at these seats, which are then no longer free."""
        taken: list[int] = []
        for node, count in seats.items():
            taken += self.left[node][:count]
            del self.left[node][:count]
        return sorted(taken)

    def give_back(self, devices: Iterable[tuple[int, int]]) -> None:
        """Devices (node, device) are free again."""
        for node, device in devices:
            self.left[node] = sorted([*self.left[node], device])


def _fill(gpus: int, order: list[int], room: Seats) -> Seats:
    found: Seats = {}
    for node in order:
        if gpus <= 0:
            break
        found[node] = min(room[node], gpus)
        gpus -= found[node]
    return found
