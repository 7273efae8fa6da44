"""The jobs of a pool as delay scheduling sees them: demand, wait, what they had of their ideal speed, where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gantline.core.cluster import Cluster
from gantline.core.columns import Option
from gantline.models.model import overrides
from gantline.policies.elastic.pools import Pool


@dataclass
class DelayedGangs:
    """Lists over the jobs of one pool; ``held`` is what the plan gives so far, at first what each holds already."""

    pool: Pool
    gpus: list[int]
    option: list[int]
    rate: list[float]  # work per second on one machine
    row: list[int]
    since: list[float]  # from when on it waits
    had: list[float]  # work done over what one machine would have done in the time it ran; lower: it lost more to the network
    before: dict[int, list[int]]
    held: dict[int, list[int]]
    given: dict[int, tuple[int, int, float]] = field(default_factory=dict)  # devices, tier and wait of those that start now

    @staticmethod
    def of(pool: Pool, idle: Mapping[str, float]) -> DelayedGangs:
        snapshot, jobs, curves = pool.snapshot, pool.snapshot.jobs, pool.curves
        entry = curves.at_most(pool.of(jobs.gpus))
        entry = np.where((entry < 0) & (curves.count > 0), curves.first[:-1], entry)
        some = entry >= 0
        rate = np.where(some, curves.rate[entry], 1.0)
        ran = pool.of(jobs.attained)
        had = np.divide(pool.of(jobs.done), rate * ran, out=np.ones(len(pool)), where=rate * ran > 0.0)
        row, arrival = pool.of(jobs.rows).tolist(), pool.of(jobs.arrival).tolist()
        devices = ((k, jobs.devices(int(job))) for k, job in enumerate(pool.jobs.tolist()))
        before = {k: sorted(held) for k, held in devices if held}
        # a job that was stopped waits from this instant on
        since = [idle.get(str(r), at if not ran[k] else snapshot.now) for k, (r, at) in enumerate(zip(row, arrival))]
        gpus = np.where(some, curves.size[entry], 0).tolist()
        option = np.where(some, curves.option[entry], -1).tolist()
        return DelayedGangs(pool, gpus, option, rate.tolist(), row, since, had.tolist(), before, dict(before))

    @property
    def now(self) -> float:
        return self.pool.snapshot.now

    @property
    def cluster(self) -> Cluster:
        found: Cluster = self.pool.snapshot.cluster.description
        return found

    @cached_property
    def node(self) -> list[int]:
        """The node of every device."""
        found: list[int] = self.pool.snapshot.cluster.device_node.tolist()
        return found

    @cached_property
    def order(self) -> list[int]:
        """Those that lost most to the network first, of equals those that had least service."""
        service = self.pool.of(self.pool.snapshot.jobs.attained_gpu)
        found: list[int] = np.lexsort((np.arange(len(self.pool)), service, np.round(self.had, 9))).tolist()
        return found

    def nodes_of(self, k: int) -> list[int]:
        return sorted({self.node[device] for device in self.held[k]})

    def seconds_left(self, k: int, nodes: Sequence[int]) -> float:
        """How long a gang has yet to run on these nodes."""
        snapshot = self.pool.snapshot
        job = int(self.pool.jobs[k])
        return float(snapshot.jobs.remaining[job]) * self._slowdown(job, nodes) / self.rate[k]

    def _slowdown(self, job: int, nodes: Sequence[int]) -> float:
        snapshot, jobs = self.pool.snapshot, self.pool.snapshot.jobs
        model = snapshot.performance
        if overrides(model, "slowdown"):
            return float(model.slowdown(snapshot.models[jobs.model[job]], tuple(nodes), self.cluster))
        if len(nodes) < 2:
            return 1.0
        first = int(jobs.option_first[job])
        rate, spread = snapshot.options.F[Option.RATE, first], snapshot.options.F[Option.RATE_SPREAD, first]
        return float(rate / spread) if rate > 0.0 and spread > 0.0 else 1.0

    def cost_of_move(self, k: int) -> float:
        costs = self.pool.snapshot.costs
        return costs.scaled(max(costs.move, costs.resume), self.gpus[k])
