"""How fast the links of a cluster are: in a node, in a rack, across racks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gantline.core.errors import UsageError


class Bandwidths(NamedTuple):
    """GB/s between devices of one node, between nodes of one rack, and between racks; 0: not stated."""

    node: float = 0.0
    rack: float = 0.0
    cluster: float = 0.0

    @property
    def known(self) -> bool:
        return self.node > 0.0

    @staticmethod
    def of(numbers: Iterable[float], where: str) -> Bandwidths:
        """Three numbers above zero that do not rise with the distance."""
        found = tuple(numbers)
        falls = len(found) == 3 and all(0.0 < later <= earlier < float("inf") for earlier, later in zip((found[0], *found), found))
        if not falls:
            text = "/".join(f"{number:g}" for number in found)
            fix = "GB/s in a node, in a rack and across racks, none above the one before: links:300/25/6"
            raise UsageError(f"bandwidths of {text}", where=where, fix=fix)
        return Bandwidths(*found)


NO_BANDWIDTHS = Bandwidths()
