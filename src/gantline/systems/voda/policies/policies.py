"""Voda's eight schedulers by name, and the queues of two of them (Hsieh and Lee, IC2E 2023)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.plan import Plan
from gantline.core.policy import parameter
from gantline.core.snapshot import Snapshot
from gantline.policies.elastic.layouts import LaysOut
from gantline.policies.elastic.policies import compact, grow_by_gain, grow_in_turns, in_order, order_by, worth_it
from gantline.policies.elastic.pools import RATE_LIMIT, Pool, plan_of, share_again
from gantline.systems.afs.policies import apathetic_shares
from gantline.systems.ffdl.policies import best_sum
from gantline.systems.voda.policies.artifact import by_the_letter

# Voda's two Tiresias queues: demotion after an hour of GPU-time, promotion after long waiting.
#
# A job begins in the queue its priority names (zero and above: the first; below: the second). Service counts since the
# last promotion, as in Tiresias (Gu et al., NSDI 2019, section 3.2); Voda counts it since the last start, so that a
# preemption forgives everything, and promotes a demoted job again as soon as it restarts. The memory holds, per
# promoted job, its service and run time at that moment.


#: Queues change at times that were computed by division; what is this close counts as reached.
_CLOSE = 1e-6


@dataclass(frozen=True)
class Queues:
    """The queue of every job now, and what decides when it changes."""

    queue: Ints
    promoted: dict[str, list[float]]  # row -> [GPU-seconds, seconds] at its last promotion
    gained: Floats  # GPU-seconds since then
    ran: Floats  # seconds since then

    def next_change(self, snapshot: Snapshot, grants: Ints, limit: float, knob: float) -> float:
        """When a queue changes by itself if every job of the snapshot has the given devices from now on."""
        jobs, times = snapshot.jobs, [math.inf]
        if (moving := (grants > 0) & (self.queue == 0)).any():
            times.append(float(((limit - self.gained[moving]) / grants[moving]).min()))
        if (waiting := (grants == 0) & (self.queue > 0) & (jobs.attained > 0)).any():
            times.append(float((knob * self.ran[waiting] - jobs.waiting[waiting]).min()))
        return snapshot.now + max(min(times), 0.0)


def read_queues(snapshot: Snapshot, promoted: dict[str, Any], limit: float, knob: float) -> Queues:
    """Queues now; a job that has waited `knob` times as long as it ran since its last promotion returns to the first."""
    jobs, rows = snapshot.jobs, [str(row) for row in snapshot.jobs.rows.tolist()]
    base = np.array([promoted.get(row, (0.0, 0.0)) for row in rows]).reshape(-1, 2)
    gained, ran = jobs.attained_gpu - base[:, 0], jobs.attained - base[:, 1]
    named = np.maximum(-jobs.priority, 0.0).astype(np.int64)
    named[[place for place, row in enumerate(rows) if row in promoted]] = 0
    queue = np.where(gained >= limit - _CLOSE, np.maximum(named, 1), named)
    back = ~jobs.running & (queue > 0) & (jobs.attained > 0) & (jobs.waiting >= knob * ran - _CLOSE)
    kept = {row: [float(value) for value in promoted[row]] for row in rows if row in promoted}
    for place in np.flatnonzero(back).tolist():
        kept[rows[place]] = [float(jobs.attained_gpu[place]), float(jobs.attained[place])]
    zero = np.zeros(len(rows))
    return Queues(np.where(back, 0, queue), kept, np.where(back, zero, gained), np.where(back, zero, ran))


# Voda's eight schedulers by name (Hsieh and Lee, IC2E 2023).

PAPER = "Hsieh, Lee: Voda: A GPU Scheduling Platform for Elastic Deep Learning in Kubernetes Clusters (IC2E 2023)"


@dataclass(frozen=True)
class Voda(LaysOut):
    """Shares out the devices of each type anew whenever a job comes or goes, the nodes change, or a job changes its queue; not else."""

    paper = PAPER
    uses_queues = False

    compat: str = parameter("none", "'voda': the original's answer wherever it has one, slips included; or 'none'", one_of=("none", "voda"))

    rate_limit: float = parameter(0.0, RATE_LIMIT + " (Voda itself: 30)", low=0.0, unit="seconds")

    @abstractmethod
    def share(self, pool: Pool, queue: Ints) -> Ints:
        """How many devices each job of the pool gets."""

    def decide(self, snapshot: Snapshot) -> Plan:
        memory: dict[str, Any] = snapshot.memory or {}
        bounds = self._bounds
        queues = None if bounds is None else read_queues(snapshot, memory.get("promoted", {}), *bounds)
        queue = np.zeros(len(snapshot.jobs), dtype=np.int64) if queues is None else queues.queue
        found = share_again(snapshot, memory, queue.tolist(), lambda pool: self._share(pool, queue[pool.jobs]), self.rate_limit)
        if queues is None or bounds is None:
            return plan_of(snapshot, found.shares, self.devices_of, valid_until=found.until, memory=found.memory)
        given = np.zeros(len(queue), dtype=np.int64)
        for pool, grants in found.shares:
            given[pool.jobs] = grants
        change = min(queues.next_change(snapshot, given, *bounds), found.until)
        return plan_of(snapshot, found.shares, self.devices_of, valid_until=change, memory={**found.memory, "promoted": queues.promoted})

    def _share(self, pool: Pool, queue: Ints) -> Ints:
        answer = by_the_letter(pool, queue, self.name.partition(".")[2]) if self.compat == "voda" else None
        return self.share(pool, queue) if answer is None else answer

    @property
    def _bounds(self) -> tuple[float, float] | None:
        """Demotion limit and promotion knob, where there are queues."""
        return None


@dataclass(frozen=True)
class VodaFifo(Voda):
    """First come, first served at the minimum size; a job that does not fit is passed."""

    name = "voda.fifo"

    def share(self, pool: Pool, queue: Ints) -> Ints:
        return in_order(np.arange(len(pool)), pool.curves.least, pool.capacity)[0]


@dataclass(frozen=True)
class ElasticFifo(Voda):
    """First come, first served at the minimum size; what is left goes round in the same order, a step each."""

    name = "voda.elastic_fifo"

    def share(self, pool: Pool, queue: Ints) -> Ints:
        return _grown(pool, np.arange(len(pool)))


@dataclass(frozen=True)
class Srjf(Voda):
    """Shortest remaining time on one worker first, at the minimum size; longer ones are stopped for it."""

    name = "voda.srjf"
    needs = frozenset({"remaining"})

    def share(self, pool: Pool, queue: Ints) -> Ints:
        return in_order(order_by(pool.remaining), pool.curves.least, pool.capacity)[0]


@dataclass(frozen=True)
class ElasticSrjf(Voda):
    """Shortest remaining time first at the minimum size; what is left goes round in the same order, a step each."""

    name = "voda.elastic_srjf"
    needs = frozenset({"remaining"})

    def share(self, pool: Pool, queue: Ints) -> Ints:
        return _grown(pool, order_by(pool.remaining))


@dataclass(frozen=True)
class VodaTiresias(Voda):
    """Two queues by attained GPU-time, first started first inside; each job at the size it asks for."""

    name = "voda.tiresias"

    limit: float = parameter(3600.0, "GPU-seconds after which a job falls to the second queue", above=0.0, unit="GPU-seconds")
    promote: float = parameter(8.0, "back to the first queue after waiting this many times the time run; inf: never", above=0.0)

    @property
    def _bounds(self) -> tuple[float, float]:
        return self.limit, self.promote

    def share(self, pool: Pool, queue: Ints) -> Ints:
        return _at_request(pool, queue)[0]


@dataclass(frozen=True)
class ElasticTiresias(VodaTiresias):
    """Tiresias, then: if more than ten wait, demoted jobs shrink to their minimum; then steps go where they gain most speedup."""

    name = "voda.elastic_tiresias"

    resize_cost: float = parameter(0.0, "seconds; a running job grows only if that saves it more (needs estimates)")

    def share(self, pool: Pool, queue: Ints) -> Ints:
        grants, free = compact(pool.curves, queue, *_at_request(pool, queue))
        return worth_it(pool, grow_by_gain(pool.curves, queue.tolist(), grants, free), self.resize_cost)


@dataclass(frozen=True)
class FfdlOptimizer(Voda):
    """The sizes with the greatest sum of speedups over the first jobs whose minima fit together (a dynamic program)."""

    name = "voda.ffdl"
    paper = "Saxena et al.: Effective Elastic Scaling of Deep Learning Workloads (MASCOTS 2020); " + PAPER

    def share(self, pool: Pool, queue: Ints) -> Ints:
        first, _ = in_order(np.arange(len(pool)), pool.curves.least, pool.capacity)
        return best_sum(pool.curves, np.flatnonzero(first), pool.capacity)


@dataclass(frozen=True)
class AfsL(Voda):
    """One step at a time to the job in which it does most good, by AFS-L's comparison of two."""

    name = "voda.afs_l"
    paper = "Hwang et al.: Elastic Resource Sharing for Distributed Deep Learning (NSDI 2021); " + PAPER
    needs = frozenset({"remaining"})

    def share(self, pool: Pool, queue: Ints) -> Ints:
        return apathetic_shares(pool.curves, pool.remaining, pool.capacity)


def _grown(pool: Pool, order: Ints) -> Ints:
    grants, free = in_order(order, pool.curves.least, pool.capacity)
    return grow_in_turns(pool.curves, order, grants, free)


def _at_request(pool: Pool, queue: Ints) -> tuple[Ints, int]:
    """Tiresias' grants: the size asked for, or the next smaller one that the job may have."""
    started: Floats = pool.of(pool.snapshot.jobs.first_start)
    never = np.isnan(started)
    order = np.lexsort((np.where(never, 0.0, started), never, queue))  # never started: behind, by arrival
    asked = pool.of(pool.snapshot.jobs.gpus)
    entry = pool.curves.at_most(np.minimum(asked, pool.curves.most))
    size = np.where(entry >= 0, pool.curves.size[entry], pool.curves.least) if len(pool.curves.size) else np.zeros(len(pool), np.int64)
    return in_order(order, size, pool.capacity)
