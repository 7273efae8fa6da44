"""`lyra`: shortest jobs first at their base size, extra workers by a knapsack, on own servers and on servers that are on loan."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.plan import Assignments, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.policies.elastic.pools import Pool, pools
from gantline.systems.lyra.policies.knapsack import best_extras
from gantline.systems.lyra.policies.loans import DayAndNight, Schedule
from gantline.systems.lyra.policies.reclaim import at_random, cheapest, fewest_jobs
from gantline.systems.lyra.policies.seating import seat_jobs

_RECLAIM = ("cheapest", "fewest", "random")
Seat = list[Any]  # position of the job, device type, devices: a plain value that can be remembered


@dataclass(frozen=True)
class Lyra(Policy):
    """Jobs start shortest first at their base size; what is left goes to extra workers that save most time.

    Servers of the `lender` are used while they are on loan; those that are called back are chosen so that few jobs are stopped.
    """

    name: ClassVar[str] = "lyra"
    names_devices: ClassVar[bool] = True
    paper: ClassVar[str] = "Li, Xu, Zhu, Liu, Guo, Chen: Lyra: Elastic Scheduling for Deep Learning Clusters (EuroSys 2023)"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    lender: str = field(default="inference", metadata={"help": "pool or rack of the servers that may be on loan"})
    loans: str = field(default="daily", metadata={"help": "'daily': by the load of a day; '0:4,2h:0': so many from then on; 'none'"})
    low: float = field(
        default=0.35, metadata=about("part of the lender's servers that it needs at night", low=0.0, high=1.0, unit="a part")
    )
    high: float = field(default=0.95, metadata=about("part that it needs at its peak", low=0.0, high=1.0, unit="a part"))
    peak: float = field(default=43_200.0, metadata={"help": "when its peak is, in seconds after the start of the day"})
    noise: float = field(default=0.05, metadata=about("deviation of its load, new every five minutes", low=0.0))
    load_seed: int = field(default=0, metadata={"help": "seed of that noise"})
    elastic: bool = field(default=True, metadata={"help": "whether jobs get extra workers"})
    reclaim: str = field(
        default="cheapest", metadata=about("servers that go back: 'cheapest' (Lyra), 'fewest' jobs, or 'random'", one_of=_RECLAIM)
    )
    resize_cost: float = field(
        default=0.0, metadata=about("seconds that a change of size costs, taken off its worth", low=0.0, unit="seconds")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise UsageError(f"low is {self.low:g}, high {self.high:g}", where="policy 'lyra'", fix="give a low that is not above high")
        if self.loans not in ("daily", "none"):
            Schedule.parse(self.loans)

    @property
    def _lent(self) -> DayAndNight | Schedule:
        if self.loans == "daily":
            return DayAndNight(self.low, self.high, self.peak, self.noise, seed=self.load_seed)
        return Schedule((), ()) if self.loans == "none" else Schedule.parse(self.loans)

    def decide(self, snapshot: Snapshot) -> Plan:
        nodes, up = snapshot.cluster.description.nodes, snapshot.cluster.node_up
        theirs = [n for n, node in enumerate(nodes) if self.lender in (node.pool, node.rack) and node.gpus > 0]
        spare = self._lent.spare(snapshot.now, len(theirs))
        until = self._lent.next_change(snapshot.now, len(theirs)) if theirs else math.inf
        memory: dict[str, Any] = snapshot.memory or {}
        lent = [n for n in memory.get("lent", []) if up[n]]
        if len(lent) > spare:
            away = self._away(snapshot, lent, len(lent) - spare)
            lent = [n for n in lent if n not in away]
        lent = sorted([*lent, *[n for n in theirs if up[n] and n not in lent][: spare - len(lent)]])
        usable = {n for n in range(len(nodes)) if up[n] and (n not in theirs or n in lent)}
        found = list(pools(snapshot))
        cause = [snapshot.jobs.rows.tolist(), sorted(usable), [[pool.kind, pool.capacity, *pool.jobs.tolist()] for pool in found]]
        seats = memory["seats"] if memory.get("cause") == cause else [seat for pool in found for seat in self._pool(pool, usable, lent)]
        on_cpus = np.flatnonzero(snapshot.jobs.gpus == 0).tolist()
        rows = Assignments(
            [*(seat[0] for seat in seats), *on_cpus],
            type=[*(seat[1] for seat in seats), *[-1] * len(on_cpus)],
            devices=[*(tuple(seat[2]) for seat in seats), *[()] * len(on_cpus)],
        )
        return Plan.assign(rows, valid_until=until, memory={"lent": lent, "cause": cause, "seats": seats})

    def _away(self, snapshot: Snapshot, lent: list[int], count: int) -> list[int]:
        """Servers that go back."""
        seats = _seats(snapshot)
        if self.reclaim == "cheapest":
            return cheapest(seats, dict(enumerate(snapshot.jobs.min_gpus.tolist())), lent, count)
        return fewest_jobs(seats, lent, count) if self.reclaim == "fewest" else at_random(lent, count, snapshot.rng("reclaim"))

    def _pool(self, pool: Pool, usable: set[int], lent: list[int]) -> list[Seat]:
        """Sizes, then seats, for the jobs of one device type."""
        snapshot, curves, cluster = pool.snapshot, pool.curves, pool.snapshot.cluster
        up, loaned = np.zeros(len(cluster.node_type), dtype=np.bool_), np.zeros(len(cluster.node_type), dtype=np.bool_)
        up[list(usable)], loaned[lent] = True, True
        inside = (up & (cluster.node_type == pool.kind))[cluster.device_node]
        holds = snapshot.jobs.held > 0
        elsewhere = holds.copy()
        elsewhere[pool.jobs] = False
        others = [d for job in np.flatnonzero(elsewhere).tolist() for d in snapshot.jobs.devices(job)]
        open_ = inside.copy()
        open_[others] = False
        capacity, within = int(open_.sum()), inside.tolist()
        held = [[d for d in snapshot.jobs.devices(job) if within[d]] if holds[job] else [] for job in pool.jobs.tolist()]
        base = np.where(curves.count > 0, curves.least, 0)
        runs = np.array([len(devices) >= size > 0 for devices, size in zip(held, base.tolist())], dtype=bool)
        free = capacity - int(base[runs].sum())
        first = np.minimum(curves.first[:-1], max(len(curves.rate) - 1, 0))
        alone = pool.of(snapshot.jobs.remaining) / curves.rate[first] if len(curves.rate) else np.full(len(pool), np.inf)
        for place in np.argsort(alone, kind="stable").tolist():  # shortest first; a job that does not fit is skipped
            if not runs[place] and 0 < base[place] <= free:
                runs[place] = True
                free -= int(base[place])
        extras = np.zeros(len(pool), dtype=np.int64)
        if self.elastic and free > 0:
            first, extra, worth = self._values(pool, runs, alone, np.array([len(devices) for devices in held], dtype=np.int64))
            extras = best_extras(first, extra, worth, free)
        size = np.where(runs, base + extras, 0)
        return _listed(pool, held, seat_jobs(cluster.device_node, loaned, open_, held, base, size))

    def _values(self, pool: Pool, runs: Bools, alone: Floats, held: Ints) -> tuple[Ints, Ints, Floats]:
        """Extra workers that jobs may have, and the seconds they save over the base size; what changes a job's size costs."""
        curves = pool.curves
        owner = np.repeat(np.arange(len(pool)), curves.count)
        base = curves.first[:-1][owner]
        grown = runs[owner] & (np.arange(len(owner)) > base)
        owner, base, size, rate = owner[grown], base[grown], curves.size[grown], curves.rate[grown]
        cost = np.where((held[owner] > 0) & (size != held[owner]), self.resize_cost, 0.0)
        first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(pool)))])
        return first, size - curves.size[base], alone[owner] * (1.0 - curves.rate[base] / rate) - cost


def _listed(pool: Pool, held: list[list[int]], seats: list[list[int]]) -> list[Seat]:
    """The plan lists jobs that shrink first, then those that start, then those that grow."""
    change = [(0 if len(old) > len(new) else 1 if not old else 2) for old, new in zip(held, seats)]
    order = sorted((place for place in range(len(pool)) if seats[place]), key=lambda place: (change[place], place))
    return [[int(pool.jobs[place]), pool.kind, seats[place]] for place in order]


def _seats(snapshot: Snapshot) -> dict[int, dict[int, int]]:
    """Devices per server of each job that holds some."""
    found: dict[int, dict[int, int]] = {}
    for job in np.flatnonzero(snapshot.jobs.held > 0).tolist():
        for device in snapshot.jobs.devices(job):
            node = int(snapshot.cluster.device_node[device])
            found.setdefault(job, {})[node] = found.get(job, {}).get(node, 0) + 1
    return found
