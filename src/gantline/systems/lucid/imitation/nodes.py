"""The nodes of a virtual cluster, and where the original puts a gang: on as few nodes as it can, in the tightest gap."""

from __future__ import annotations

from collections.abc import Sequence

GPUS = 8
"""Of every node."""


class LucidNode:
    """A node by the name that the original prints, and which of its devices no gang holds."""

    def __init__(self, name: int, devices: Sequence[int]) -> None:
        self.name, self.devices, self._idle = name, tuple(devices), list(devices)
        self.free = len(self._idle)

    def take(self, count: int) -> tuple[int, ...]:
        """The first so many of its idle devices."""
        taken, self._idle = self._idle[:count], self._idle[count:]
        self.free -= count
        return tuple(taken)

    def give_back(self, devices: Sequence[int]) -> None:
        self._idle += devices
        self.free += len(devices)


Held = tuple[tuple[LucidNode, tuple[int, ...]], ...]
"""What a gang holds: nodes, and which devices of each."""
Chosen = tuple[tuple[LucidNode, int], ...]
"""Nodes, and how many GPUs of each."""


class LucidNodes:
    """The nodes of one virtual cluster in the order of its list."""

    def __init__(self, devices: Sequence[Sequence[int]]) -> None:
        self.nodes = [LucidNode(name, each) for name, each in enumerate(devices)]

    @property
    def gpus(self) -> int:
        return GPUS * len(self.nodes)

    def take(self, gpus: int) -> Held | None:
        """Place a gang; None: it cannot be placed now."""
        chosen = self._tightest(gpus) if gpus <= GPUS else self._whole_nodes(gpus)
        return None if chosen is None else tuple((node, node.take(count)) for node, count in chosen)

    def widest(self) -> int:
        """The largest gang that one node has room for."""
        return max((node.free for node in self.nodes), default=0)

    def _tightest(self, gpus: int) -> Chosen | None:
        best = None
        for node in self.nodes:
            if gpus <= node.free and (best is None or node.free < best.free):
                best = node
        return None if best is None else ((best, gpus),)

    def _whole_nodes(self, gpus: int) -> Chosen | None:
        """Idle nodes, and the rest on the node that follows them by free GPUs: on the emptiest, not on the one with the tightest gap."""
        whole, rest = divmod(gpus, GPUS)
        ordered = sorted((node for node in self.nodes if node.free), key=lambda node: -node.free)
        chosen, after = ordered[:whole], ordered[whole : whole + 1]
        if len(chosen) < whole or any(node.free < GPUS for node in chosen):
            return None
        held = tuple((node, GPUS) for node in chosen)
        if not rest:
            return held
        return (*held, (after[0], rest)) if after and after[0].free >= rest else None


def give_back(held: Held) -> None:
    """Free what a gang held."""
    for node, devices in held:
        node.give_back(devices)


def nodes_text(held: Held) -> str:
    """What a gang held as the original writes it: ``0x8 2x8``."""
    return " ".join(f"{node.name}x{len(devices)}" for node, devices in held)
