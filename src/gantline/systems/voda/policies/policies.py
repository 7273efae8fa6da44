"""Voda's eight schedulers by name (Hsieh and Lee, IC2E 2023)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.plan import Plan
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.policies.elastic.layouts import LaysOut
from gantline.policies.elastic.policies import compact, grow_by_gain, grow_in_turns, in_order, order_by, worth_it
from gantline.policies.elastic.pools import RATE_LIMIT, Pool, plan_of, share_again
from gantline.systems.afs.policies.apathetic import apathetic_shares
from gantline.systems.ffdl.policies.optimizer import best_sum
from gantline.systems.voda.policies.artifact import by_the_letter
from gantline.systems.voda.policies.queues import Queues, read_queues

PAPER = "Hsieh, Lee: Voda: A GPU Scheduling Platform for Elastic Deep Learning in Kubernetes Clusters (IC2E 2023)"


@dataclass(frozen=True)
class Voda(LaysOut):
    """Shares out the devices of each type anew whenever a job comes or goes, the nodes change, or a job changes its queue; not else."""

    paper: ClassVar[str] = PAPER
    uses_queues: ClassVar[bool] = False

    compat: str = field(
        default="none",
        metadata=about("'voda': the original's answer wherever it has one, slips included; or 'none'", one_of=("none", "voda")),
    )

    rate_limit: float = field(default=0.0, metadata=about(RATE_LIMIT + " (Voda itself: 30)", low=0.0, unit="seconds"))

    @abstractmethod
    def share(self, pool: Pool, queue: Ints) -> Ints:
        """How many devices each job of the pool gets."""

    def decide(self, snapshot: Snapshot) -> Plan:
        memory: dict[str, Any] = snapshot.memory or {}
        queues = self._queues(snapshot, memory)
        queue = np.zeros(len(snapshot.jobs), dtype=np.int64) if queues is None else queues.queue
        found = share_again(snapshot, memory, queue.tolist(), lambda pool: self._share(pool, queue[pool.jobs]), self.rate_limit)
        if queues is None:
            return plan_of(snapshot, found.shares, self.seats, valid_until=found.until, memory=found.memory)
        given = np.zeros(len(queue), dtype=np.int64)
        for pool, grants in found.shares:
            given[pool.jobs] = grants
        change = min(queues.next_change(snapshot, given, *self._bounds), found.until)
        return plan_of(snapshot, found.shares, self.seats, valid_until=change, memory={**found.memory, "promoted": queues.promoted})

    def _share(self, pool: Pool, queue: Ints) -> Ints:
        answer = by_the_letter(pool, queue, self.name.partition(".")[2]) if self.compat == "voda" else None
        return self.share(pool, queue) if answer is None else answer

    @property
    def _bounds(self) -> tuple[float, float]:
        """Demotion limit and promotion knob, where there are queues."""
        return np.inf, np.inf

    def _queues(self, snapshot: Snapshot, memory: dict[str, Any]) -> Queues | None:
        return read_queues(snapshot, memory.get("promoted", {}), *self._bounds) if self.uses_queues else None


@dataclass(frozen=True)
class VodaFifo(Voda):
    """First come, first served at the minimum size; a job that does not fit is passed."""

    name: ClassVar[str] = "voda.fifo"

    def share(self, pool: Pool, queue: Ints) -> Ints:
        return in_order(np.arange(len(pool)), pool.curves.least, pool.capacity)[0]


@dataclass(frozen=True)
class ElasticFifo(Voda):
    """First come, first served at the minimum size; what is left goes round in the same order, a step each."""

    name: ClassVar[str] = "voda.elastic_fifo"

    def share(self, pool: Pool, queue: Ints) -> Ints:
        return _grown(pool, np.arange(len(pool)))


@dataclass(frozen=True)
class Srjf(Voda):
    """Shortest remaining time on one worker first, at the minimum size; longer ones are stopped for it."""

    name: ClassVar[str] = "voda.srjf"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    def share(self, pool: Pool, queue: Ints) -> Ints:
        return in_order(order_by(pool.remaining), pool.curves.least, pool.capacity)[0]


@dataclass(frozen=True)
class ElasticSrjf(Voda):
    """Shortest remaining time first at the minimum size; what is left goes round in the same order, a step each."""

    name: ClassVar[str] = "voda.elastic_srjf"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    def share(self, pool: Pool, queue: Ints) -> Ints:
        return _grown(pool, order_by(pool.remaining))


@dataclass(frozen=True)
class VodaTiresias(Voda):
    """Two queues by attained GPU-time, first started first inside; each job at the size it asks for."""

    name: ClassVar[str] = "voda.tiresias"
    uses_queues: ClassVar[bool] = True

    limit: float = field(
        default=3600.0, metadata=about("GPU-seconds after which a job falls to the second queue", above=0.0, unit="GPU-seconds")
    )
    promote: float = field(
        default=8.0, metadata=about("back to the first queue after waiting this many times the time run; inf: never", above=0.0)
    )

    @property
    def _bounds(self) -> tuple[float, float]:
        return self.limit, self.promote

    def share(self, pool: Pool, queue: Ints) -> Ints:
        return _at_request(pool, queue)[0]


@dataclass(frozen=True)
class ElasticTiresias(VodaTiresias):
    """Tiresias, then: if more than ten wait, demoted jobs shrink to their minimum; then steps go where they gain most speedup."""

    name: ClassVar[str] = "voda.elastic_tiresias"

    resize_cost: float = field(default=0.0, metadata={"help": "seconds; a running job grows only if that saves it more (needs estimates)"})

    def share(self, pool: Pool, queue: Ints) -> Ints:
        grants, free = compact(pool.curves, queue, *_at_request(pool, queue))
        return worth_it(pool, grow_by_gain(pool.curves, queue.tolist(), grants, free), self.resize_cost)


@dataclass(frozen=True)
class FfdlOptimizer(Voda):
    """The sizes with the greatest sum of speedups over the first jobs whose minima fit together (a dynamic program)."""

    name: ClassVar[str] = "voda.ffdl"
    paper: ClassVar[str] = "Saxena et al.: Effective Elastic Scaling of Deep Learning Workloads (MASCOTS 2020); " + PAPER

    def share(self, pool: Pool, queue: Ints) -> Ints:
        first, _ = in_order(np.arange(len(pool)), pool.curves.least, pool.capacity)
        return best_sum(pool.curves, np.flatnonzero(first), pool.capacity)


@dataclass(frozen=True)
class AfsL(Voda):
    """One step at a time to the job in which it does most good, by AFS-L's comparison of two."""

    name: ClassVar[str] = "voda.afs_l"
    paper: ClassVar[str] = "Hwang et al.: Elastic Resource Sharing for Distributed Deep Learning (NSDI 2021); " + PAPER
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

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
