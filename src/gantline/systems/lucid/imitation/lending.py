"""The node that a virtual cluster lends to the profiler, with the original's way of naming nodes and of losing count of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import inf

from gantline.systems.lucid.imitation.nodes import GPUS, LucidNode, LucidNodes
from gantline.systems.lucid.imitation.profiling import NodeLoan

_RETURNED = 9999
"""How every node is called that has come back."""


class NodeLender:
    """Follows the profiler's loans. Where no node is idle nothing is lent, and the return still brings one: a node too many."""

    def __init__(self, loans: Sequence[NodeLoan], devices: Sequence[int], *, only_lent: bool = False) -> None:
        """`only_lent`: nothing comes back unless it was lent."""
        self._loans, self._devices, self._lent_before = deque(loans), devices, False
        self._only_lent, self._out = only_lent, False

    def next_change(self) -> float:
        return self._loans[0].time if self._loans else inf

    def act(self, now: int, nodes: LucidNodes) -> bool:
        """Lend or take back what is due; whether the nodes changed."""
        changed = False
        while self._loans and self._loans[0].time <= now:
            lend = self._loans.popleft().nodes > 0
            changed |= self._lend(nodes) if lend else self._take_back(nodes)
        return changed

    def _lend(self, nodes: LucidNodes) -> bool:
        idle = [node for node in nodes.nodes if node.free == GPUS]
        if not idle:
            return False
        chosen = max(idle, key=lambda node: node.name)
        if self._lent_before and chosen.name < _RETURNED:
            for node in nodes.nodes:
                node.name = chosen.name if node.name == _RETURNED else node.name
        nodes.nodes.remove(chosen)
        self._devices, self._lent_before, self._out = chosen.devices, True, True
        return True

    def _take_back(self, nodes: LucidNodes) -> bool:
        was_out, self._out = self._out, False
        if any(node.name == _RETURNED for node in nodes.nodes) or (self._only_lent and not was_out):
            return False
        nodes.nodes.append(LucidNode(_RETURNED, self._devices))
        return True
