"""`adaptdl`: Pollux as it was deployed (AdaptDL, github.com/petuum/adaptdl, 2023), with nodes that cost something.

It differs from the paper's policy: speedups are relative to one device and simply added up, any change costs a tenth, and the second
objective of the search is the number of nodes in use. How many nodes are worth having follows from *utility*, speedup per device of the
nodes in use: in a band the cluster keeps its size, else the size is wanted whose utility is nearest to the middle of the band.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.models.solvers.allocation_search.search import Demand, search
from gantline.policies.elastic.pools import Pool, read_curves
from gantline.systems.pollux.policies.by_options import Searched, plan_by_search, present_rows, speeds

_CHANGE = 0.9  # what a speedup counts if the job's row changes
_MOST_NODES = 16


@dataclass(frozen=True)
class AdaptDL(Policy):
    """The sum of speedups over one device, on as many nodes as keep their utility within a band."""

    name: ClassVar[str] = "adaptdl"
    names_devices: ClassVar[bool] = True
    paper: ClassVar[str] = "Qiao et al.: Pollux (OSDI 2021), as deployed in AdaptDL (Petuum, 2023)"

    low: float = field(default=0.35, metadata=about("speedup per device of the nodes in use below which nodes are given up", low=0.0))
    high: float = field(default=0.65, metadata={"help": "and above which more are wanted"})
    size: int = field(default=100, metadata=about("members of the population", low=2))
    generations: int = field(default=100, metadata=about("generations of a search", low=1))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            raise UsageError(f"a band from {self.low} to {self.high}", where="policy 'adaptdl'", fix="use for example low=0.35 high=0.65")

    def decide(self, snapshot: Snapshot) -> Plan:
        return plan_by_search(snapshot, self._search)

    def _search(self, pool: Pool, nodes: list[int], capacity: Ints, seed: int, start: Any) -> Searched:
        """Search the nodes there are and as many more that might be had; then those that are worth having."""
        jobs = pool.snapshot.jobs
        order = np.lexsort((pool.of(jobs.arrival), pool.curves.least))
        both = np.concatenate((capacity, capacity))
        more = np.zeros((len(order), len(nodes)), dtype=np.int64)
        present = present_rows(pool, order, nodes)
        grown = replace(pool, curves=read_curves(pool.snapshot, pool.jobs, pool.kind, int(both.sum())))
        wide = search(self._demand(grown, order, np.concatenate((present, more), axis=1), both), both, seed, **self._how())
        wanted = self._wanted(grown, order, wide.front, capacity)
        kept = _emptiest_last(present)[: max(min(wanted, len(nodes)), 1)]
        room = np.zeros_like(capacity)
        room[kept] = capacity[kept]
        found = search(self._demand(pool, order, present, capacity), room, seed + 1, start=start(order), **self._how())
        note = f"{len(nodes)} nodes of '{pool.snapshot.cluster.types[pool.kind]}', {wanted} would be right" if wanted != len(nodes) else ""
        return Searched(order, found, note)

    def _how(self) -> dict[str, Any]:
        return {"size": self.size, "generations": self.generations, "avoid": True, "most_nodes": _MOST_NODES}

    def _demand(self, pool: Pool, order: Ints, present: Ints, capacity: Ints) -> Demand:
        speedup = self._speedup(pool, order, int(capacity.sum()))
        penalty = np.where(present.any(axis=1), _CHANGE, 1.0)
        table = np.repeat(speedup[:, None, :], 2, axis=1)
        return Demand(present, pool.curves.most[order], table, penalty, 1.0, 1.0, count_nodes=True)

    def _speedup(self, pool: Pool, order: Ints, devices: int) -> Floats:
        """Relative to one device: of the smallest size, each device's part."""
        found: Floats = speeds(pool.curves, devices)[order] / pool.curves.unit[order][:, None]
        return found

    def _wanted(self, pool: Pool, order: Ints, front: Ints, capacity: Ints) -> int:
        """How many nodes are worth having, from the members that no other dominates."""
        both, now = np.concatenate((capacity, capacity)), len(capacity)
        speedup = self._speedup(pool, order, int(both.sum()))
        in_use = front.any(axis=1)
        nodes = in_use.sum(axis=1)
        summed = np.array([speedup[np.arange(len(order)), member.sum(axis=1)].sum() for member in front])
        utility = summed / np.maximum((in_use * both).sum(axis=1), 1)
        here = np.flatnonzero(nodes <= now)
        if len(here) and self.low <= utility[here[np.argmax(summed[here])]] <= self.high:
            return now
        worth = np.flatnonzero((utility >= self.low) & (nodes > 0))
        if not len(worth):
            return 1
        middle = (self.low + self.high) / 2
        distance = np.abs(utility[worth] - middle).round(9)
        return int(nodes[worth[np.lexsort((-nodes[worth], distance))[0]]])  # of equals the larger


def _emptiest_last(present: Ints) -> Ints:
    """Nodes by falling use, so that those given up are the emptiest; among equals the first stay."""
    return np.argsort(-present.sum(axis=0), kind="stable")
