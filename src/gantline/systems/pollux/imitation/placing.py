"""Which nodes a job gets: always from the one with most free devices, and the list keeps the order of taking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

Nodes = tuple[int, ...]  # the node of each device


def shape_of(nodes: Nodes) -> tuple[int, ...]:
    """Devices per node in the order of the list: run lengths of equal nodes."""
    return tuple(len(list(same)) for _, same in groupby(nodes))


def free_devices(capacity: Sequence[int], held: Iterable[Nodes]) -> list[int]:
    """What is left on each node."""
    free = list(capacity)
    for nodes in held:
        for node in nodes:
            free[node] -= 1
    return free


def take(free: list[int], wanted: int) -> Nodes:
    """So many devices, each time from the node with most that are free; ``free`` becomes less. There must be enough."""
    taken: list[int] = []
    while wanted:
        node = max(range(len(free)), key=free.__getitem__)
        count = min(free[node], wanted)
        free[node] -= count
        wanted -= count
        taken += [node] * count
    return tuple(taken)
