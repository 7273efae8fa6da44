"""The nodes that profile newcomers: the last ones of the cluster, and in bursts one more (Lucid, ASPLOS 2023, section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import Option
from gantline.core.options import OptionTable
from gantline.core.snapshot import Snapshot
from gantline.systems.lucid.policies.seats import FreeSeats

_FEWEST_NODES = 4
_LONG, _SHORT = 10, 5
"""Newcomers that wait: more than the first borrow a node, fewer than the second give it back."""


@dataclass(frozen=True)
class ProfilerShare:
    """Which nodes profile; `borrowed` is a node of the others, -1: none."""

    own: tuple[int, ...]
    borrowed: int = -1

    @staticmethod
    def now(snapshot: Snapshot, count: int, borrowed: int) -> ProfilerShare:
        """The profiler's nodes, the last ones that are up; a small cluster has none."""
        cluster = snapshot.cluster
        usable = np.flatnonzero((cluster.node_gpus > 0) & cluster.node_up).tolist()
        own = tuple(usable[-count:]) if count and len(usable) >= max(_FEWEST_NODES, count + 1) else ()
        return ProfilerShare(own, borrowed)

    def holds(self, seats: FreeSeats, options: OptionTable, rows: Ints) -> Bools:
        """Whether its own nodes, idle, would have room for these options; no job waits for a profile that it cannot have."""
        room = np.zeros(max(seats.kind, default=0) + 1, dtype=np.int64)
        for node in self.own:
            room[seats.kind[node]] += seats.node_gpus[node]
        gpus = options.I[Option.GPUS][rows]
        return np.asarray((gpus > 0) & (gpus <= room[options.I[Option.TYPE][rows]]))

    @property
    def nodes(self) -> tuple[int, ...]:
        return self.own if self.borrowed < 0 else (*self.own, self.borrowed)

    def resized(self, seats: FreeSeats, waiting: int, calm: bool) -> ProfilerShare:
        """Borrow the last idle node where many wait; give it back once it is idle, few wait and few are expected."""
        if not self.own:
            return self
        if self.borrowed >= 0:
            idle = len(seats.free[self.borrowed]) == int(seats.node_gpus[self.borrowed])
            return replace(self, borrowed=-1) if idle and calm and waiting < _SHORT else self
        if waiting <= _LONG:
            return self
        others = [node for node in range(len(seats.free)) if node not in self.own and seats.node_gpus[node]]
        idle_nodes = [node for node in others if len(seats.free[node]) == int(seats.node_gpus[node])]
        return replace(self, borrowed=idle_nodes[-1]) if idle_nodes and len(others) > 1 else self
