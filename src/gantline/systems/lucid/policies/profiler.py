"""What Lucid's decision looks at: free devices, the nodes that profile newcomers, and how many jobs are expected."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import FREE
from gantline.core.columns import Option as OptionColumn
from gantline.core.options import Option, OptionTable
from gantline.core.snapshot import Snapshot

# Which devices are free, and where a gang goes: on the node with the tightest gap, else on whole idle nodes and a tight rest.


_SLACK = 1e-9


class FreeByNode:
    """Free devices, CPUs and memory of each node while a plan is made."""

    def __init__(self, snapshot: Snapshot) -> None:
        cluster = snapshot.cluster
        node = cluster.device_node
        idle = np.flatnonzero((cluster.device_holder == FREE) & cluster.device_open)
        self.free: list[list[int]] = [[] for _ in range(cluster.nodes)]
        for device in idle.tolist():
            self.free[int(node[device])].append(device)
        self.node_gpus: Ints = cluster.node_gpus
        self.kind = cluster.node_type.tolist()
        self._cpus, self._memory = cluster.node_cpus_free.tolist(), cluster.node_memory_free.tolist()

    def take(self, option: Option, nodes: Collection[int]) -> tuple[int, ...] | None:
        """Devices for one option on some of these nodes; None: there is no room."""
        able = [node for node in nodes if self.kind[node] == option.type]
        size = max((int(self.node_gpus[node]) for node in able), default=0)
        if not size or not option.gpus:
            return None
        whole, rest = (0, option.gpus) if option.gpus <= size else divmod(option.gpus, size)
        idle = [node for node in able if self._room(node, option) >= size][:whole]
        if len(idle) < whole:
            return None
        counts = [(node, size) for node in idle]
        if rest:
            fits = [node for node in able if node not in idle and self._room(node, option) >= rest]
            if not fits:
                return None
            counts.append((min(fits, key=lambda node: len(self.free[node])), rest))
        return tuple(device for node, count in counts for device in self._give(node, count, option))

    def _room(self, node: int, option: Option) -> int:
        """How many devices of the option's demand the node has room for."""
        found = len(self.free[node])
        for amount, each in ((self._cpus[node], option.cpus), (self._memory[node], option.memory)):
            found = min(found, int((amount + _SLACK) // each)) if each > 0.0 else found
        return found

    def _give(self, node: int, count: int, option: Option) -> list[int]:
        taken, self.free[node] = self.free[node][:count], self.free[node][count:]
        self._cpus[node] -= count * option.cpus
        self._memory[node] -= count * option.memory
        return taken


# The nodes that profile newcomers: the last ones of the cluster, and in bursts one more (Lucid, ASPLOS 2023, section 3.2).

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

    def holds(self, free_devices: FreeByNode, options: OptionTable, rows: Ints) -> Bools:
        """Whether its own nodes, idle, would have room for these options; no job waits for a profile that it cannot have."""
        room = np.zeros(max(free_devices.kind, default=0) + 1, dtype=np.int64)
        for node in self.own:
            room[free_devices.kind[node]] += free_devices.node_gpus[node]
        gpus = options.I[OptionColumn.GPUS][rows]
        return np.asarray((gpus > 0) & (gpus <= room[options.I[OptionColumn.TYPE][rows]]))

    @property
    def nodes(self) -> tuple[int, ...]:
        return self.own if self.borrowed < 0 else (*self.own, self.borrowed)

    def resized(self, free_devices: FreeByNode, waiting: int, calm: bool) -> ProfilerShare:
        """Borrow the last idle node where many wait; give it back once it is idle, few wait and few are expected."""
        if not self.own:
            return self
        if self.borrowed >= 0:
            idle = len(free_devices.free[self.borrowed]) == int(free_devices.node_gpus[self.borrowed])
            return replace(self, borrowed=-1) if idle and calm and waiting < _SHORT else self
        if waiting <= _LONG:
            return self
        others = [node for node in range(len(free_devices.free)) if node not in self.own and free_devices.node_gpus[node]]
        idle_nodes = [node for node in others if len(free_devices.free[node]) == int(free_devices.node_gpus[node])]
        return replace(self, borrowed=idle_nodes[-1]) if idle_nodes and len(others) > 1 else self


# How many jobs are expected in the ten minutes to come: what Lucid's time-aware scaling goes by (ASPLOS 2023, section 3.4).
#
# Submissions are counted in bins of ten minutes. The forecast is the mean of the last hour and, once they have been
# seen, of the same hour a day and a week ago: a model of a daily and weekly rhythm that people can check by hand.

BIN = 600.0
_HOUR, _DAY, _WEEK = 6, 144, 1008  # bins
_KEPT = _WEEK + _HOUR


@dataclass(frozen=True)
class SubmissionCounts:
    """Jobs and GPUs that were asked for, by bin; `first` is the bin in which counting began, `last` the row counted last."""

    counts: dict[int, tuple[int, int]]
    first: int
    last: int

    @staticmethod
    def seen_in(snapshot: Snapshot, memory: dict[str, Any]) -> SubmissionCounts:
        """What is remembered, with the jobs that have come since."""
        present = int(snapshot.now // BIN)
        counts = {at: (jobs, gpus) for at, jobs, gpus in memory.get("bins", ()) if at > present - _KEPT}
        first, last = memory.get("first", present), memory.get("row", -1)
        jobs = snapshot.jobs
        for row, arrival, gpus in zip(jobs.rows.tolist(), jobs.arrival.tolist(), jobs.gpus.tolist()):
            if row > last:
                before = counts.get(int(arrival // BIN), (0, 0))
                counts[int(arrival // BIN)] = (before[0] + 1, before[1] + gpus)
        newest = max([last, *jobs.rows.tolist()])
        return SubmissionCounts(counts, min([first, *counts]), newest)

    def remembered(self) -> dict[str, Any]:
        """The plain value that the next decision starts from."""
        return {"bins": [[at, *self.counts[at]] for at in sorted(self.counts)], "first": self.first, "row": self.last}

    def expected(self, now: float) -> tuple[float, float]:
        """Jobs and GPUs in ten minutes."""
        present = int(now // BIN)
        hours = [self._hour_before(present + 1)]
        hours += [self._hour_before(present + _HOUR - ago) for ago in (_DAY, _WEEK) if present - ago >= self.first]
        jobs, gpus = (sum(each) / len(hours) for each in zip(*hours))
        return jobs, gpus

    def _hour_before(self, end: int) -> tuple[float, float]:
        """The mean over the six bins before this one, as far as they were counted."""
        bins = range(max(end - _HOUR, self.first), max(end, self.first + 1))
        totals = [self.counts.get(at, (0, 0)) for at in bins]
        return sum(jobs for jobs, _ in totals) / len(bins), sum(gpus for _, gpus in totals) / len(bins)
