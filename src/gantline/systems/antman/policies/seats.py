"""Where AntMan seats jobs: guaranteed ones on devices of their own, whole or reserved in part; guests where devices are used least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def gang_seats(gpus: int, free: Sequence[Sequence[int]], width: Sequence[int]) -> list[int]:
    """Devices for a gang, perhaps too few or too many: those of the first node that has enough, else of the node with most.

    A gang that is wider than any node gets whole nodes. `free` are the devices of each node that no other guaranteed job has.
    """
    if gpus > max(width, default=0):
        return [device for devices, all_of_it in zip(free, width, strict=True) if len(devices) == all_of_it for device in devices]
    for devices in free:
        if len(devices) >= gpus:
            return list(devices)
    most: Sequence[int] = max(free, key=len) if free else ()
    return list(most)


def guest_seats(gpus: int, use: Mapping[int, float], busy: float) -> list[int] | None:
    """The devices that are used least, wherever they are; None: too few are used less than `busy`."""
    seats = sorted((device for device, part in use.items() if part < busy), key=lambda device: (use[device], device))[:gpus]
    return seats if len(seats) == gpus else None
