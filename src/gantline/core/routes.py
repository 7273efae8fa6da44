"""Which links a gang crosses: the ways with the fewest hops between its devices, through the links that a cluster names.

Devices are at their node and nodes in their rack without a link, unless the cluster names one there. Gangs go around as a ring, in rank
order, so that on a tree each link of the smallest subtree counts once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from gantline.core.link_ends import RACK
from gantline.core.nodes import Link, Node

_AT_HAND = -1  # a hop that is no link


class Routes:
    """Ways through the links of one cluster, each found once."""

    def __init__(self, nodes: Sequence[Node], links: Sequence[Link]) -> None:
        self._hops: dict[str, dict[str, int]] = {}  # end -> neighbouring end -> link
        for number, link in enumerate(links):
            self._hops.setdefault(link.a, {}).setdefault(link.b, number)
            self._hops.setdefault(link.b, {}).setdefault(link.a, number)
        named = set(self._hops)
        for node in nodes if named else ():
            at_hand = [f"{node.name}:{k}" for k in range(node.gpus) if f"{node.name}:{k}" in named]
            for other in [*at_hand, *([RACK + node.rack] if node.rack else [])]:
                self._hops.setdefault(node.name, {}).setdefault(other, _AT_HAND)
                self._hops.setdefault(other, {}).setdefault(node.name, _AT_HAND)
        self._stops = [f"{node.name}:{k}" if f"{node.name}:{k}" in named else node.name for node in nodes for k in range(node.gpus)]
        self._nodes = [node.name for node in nodes]
        devices = {f"{node.name}:{k}" for node in nodes for k in range(node.gpus)}
        self._leads_out = any(not {link.a, link.b} <= devices for link in links)
        self._found: dict[tuple[str, str], tuple[int, ...] | None] = {}

    def crossed(self, devices: tuple[int, ...]) -> tuple[int, ...]:
        """The numbers of the links that a gang on these devices crosses, in rising order."""
        if not self._hops:
            return ()
        stops = list(dict.fromkeys(self._stops[device] for device in devices))
        ring = zip(stops, [*stops[1:], *stops[:1]] if len(stops) > 2 else stops[1:])
        return tuple(sorted({link for a, b in ring for link in self.between(a, b) or ()}))

    def between(self, a: str, b: str) -> tuple[int, ...] | None:
        """The links of the shortest way between two ends; None: the links do not connect them."""
        key = (a, b) if a <= b else (b, a)
        if key not in self._found:
            self._found[key] = self._search(*key)
        return self._found[key]

    def _search(self, a: str, b: str) -> tuple[int, ...] | None:
        came: dict[str, tuple[str, int]] = {a: (a, _AT_HAND)}
        queue = deque([a])
        while queue and b not in came:
            here = queue.popleft()
            for there, link in self._hops.get(here, {}).items():
                if there not in came:
                    came[there] = (here, link)
                    queue.append(there)
        if b not in came:
            return None
        way, here = [], b
        while here != a:
            here, link = came[here]
            way.append(link)
        return tuple(link for link in way if link != _AT_HAND)

    def apart(self) -> list[list[str]]:
        """The nodes in groups that no link connects, where links lead out of nodes at all; empty: all are connected."""
        if not self._leads_out:
            return []
        groups: list[list[str]] = []
        for node in self._nodes:
            mine = next((group for group in groups if self.between(group[0], node) is not None), None)
            if mine is None:
                groups.append([node])
            else:
                mine.append(node)
        return groups if len(groups) > 1 else []
