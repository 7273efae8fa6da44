"""`optimus` and `optimus.drf`: how many workers each job gets, and how many parameter servers where it trains with them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.plan import Assignment, Part, Plan
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.models.model import overrides
from gantline.models.parameter_servers import SERVER, WORKER
from gantline.policies.elastic.policies import equal_sizes
from gantline.policies.elastic.pools import Pool, plan_of, pools, settled_until
from gantline.policies.interference import INTERFERENCE
from gantline.systems.optimus.policies.servers_and_workers import (
    JointDemand,
    JointTask,
    TaskPlacement,
    balance,
    by_gain,
    by_share,
    deal,
    free_room,
    read_beliefs,
    slow_nodes,
)

# Devices one by one to the job whose remaining time falls most by one more: Optimus for jobs that list sizes and speeds.


def marginal_gains(pool: Pool) -> Ints:
    """Devices per job of the pool; ties go to the one that came first."""
    curves, work = pool.curves, np.ascontiguousarray(pool.of(pool.snapshot.jobs.remaining), dtype=np.float64)
    size, entry, offer = np.zeros(len(pool), dtype=np.int64), curves.first[:-1].copy(), np.zeros(len(pool))
    _share(curves.first, curves.size, curves.rate, work, pool.capacity, size, entry, offer)
    return size


@kernel
def _share(first: Ints, sizes: Ints, rate: Floats, work: Floats, left: int, size: Ints, entry: Ints, offer: Floats) -> None:
    """``entry``: the size that each job has; ``offer``: seconds that its next size saves per device, 0 where it makes no offer."""
    jobs = size.size
    for job in range(jobs):
        if entry[job] < first[job + 1] and sizes[entry[job]] <= left:
            size[job] = sizes[entry[job]]
            left -= size[job]
            offer[job] = _saved(first, sizes, rate, work, entry, job)
    while left > 0:
        best = -1
        for job in range(jobs):
            if offer[job] > 0.0 and (best < 0 or offer[job] > offer[best]):
                best = job
        if best < 0:
            return
        more = sizes[entry[best] + 1] - sizes[entry[best]]
        offer[best] = 0.0
        if more <= left:
            entry[best] += 1
            size[best] = sizes[entry[best]]
            left -= more
            offer[best] = _saved(first, sizes, rate, work, entry, best)


@kernel
def _saved(first: Ints, sizes: Ints, rate: Floats, work: Floats, entry: Ints, job: int) -> float:
    """Seconds that the next size of a job saves per device; 0: it has none, or it is no faster."""
    here = entry[job]
    if here + 1 >= first[job + 1]:
        return 0.0
    saved = work[job] * (1.0 / rate[here] - 1.0 / rate[here + 1])
    return saved / float(sizes[here + 1] - sizes[here]) if saved > 0.0 else 0.0


# `optimus` and `optimus.drf`: how many workers each job gets, and how many parameter servers where it trains with them.


@dataclass(frozen=True)
class ServersAndWorkers(Policy):
    """Decides every `interval` seconds; in between nothing moves, and newcomers wait, as in Optimus' own controller."""

    interval: float = parameter(600.0, "seconds between decisions, where jobs train with parameter servers", above=0.0, unit="seconds")
    seats: str = parameter(
        "blocks", "'blocks': fewest nodes, equal numbers of servers and workers on each; 'spread': balanced", one_of=("blocks", "spread")
    )
    stragglers: str = parameter(
        "replace", "'replace': a job leaves nodes where workers have less than half the median speed; 'keep'", one_of=("replace", "keep")
    )

    @abstractmethod
    def sizes(self, pool: Pool) -> Ints:
        """Devices per job, where jobs list sizes and have no parameter servers."""

    @abstractmethod
    def tasks(self, pool: Pool, demand: JointDemand, most: list[int]) -> list[JointTask]:
        """Servers and workers per job of the pool."""

    def decide(self, snapshot: Snapshot) -> Plan:
        if not overrides(snapshot.performance, "profiled"):
            shared = [(pool, self.sizes(pool)) for pool in pools(snapshot)]
            return plan_of(snapshot, shared, valid_until=settled_until(snapshot, shared))
        memory: dict[str, Any] = snapshot.memory or {"until": -1.0, "seats": {}, "shunned": {}}
        placed = {row: TaskPlacement(*known) for row, known in memory["seats"].items()}
        until, rows = memory["until"], [str(row) for row in snapshot.jobs.rows.tolist()]
        shunned = {row: memory["shunned"][row] for row in rows if row in memory["shunned"]}
        if snapshot.now >= until:
            until = snapshot.now + self.interval
            shunned = slow_nodes(snapshot, rows, shunned) if self.stragglers == "replace" else {}
            placed = {row: found for pool in pools(snapshot) for row, found in self._placed(pool, placed, shunned).items()}
        placed = {row: placed[row] for row in rows if row in placed}
        plan = [Assignment(place, parts=_parts(snapshot, placed[row])) for place, row in enumerate(rows) if row in placed]
        remembered = {"until": until, "seats": {row: list(found) for row, found in placed.items()}, "shunned": shunned}
        return Plan.assign(plan, valid_until=until, memory=remembered)

    def _placed(self, pool: Pool, before: dict[str, TaskPlacement], shunned: dict[str, list[int]]) -> dict[str, TaskPlacement]:
        """Where each job is placed: one that keeps its size without a straggler stays, others are placed anew, the smallest first."""
        demand, room = JointDemand.of(pool), free_room(pool)
        tasks = self.tasks(pool, demand, pool.curves.most.tolist())
        rows = [str(row) for row in pool.of(pool.snapshot.jobs.rows).tolist()]
        found: dict[str, TaskPlacement] = {}
        for row, task in zip(rows, tasks):
            old = before.get(row)
            slow = old is not None and set(old.workers) & set(shunned.get(row, ()))
            if old is not None and old.task == task and old.type == pool.kind and not slow and room.take(old, demand):
                found[row] = old
        for row, task in sorted(zip(rows, tasks), key=lambda entry: sum(entry[1])):
            if row not in found and task.workers > 0:
                apart = self.seats == "spread"
                dealt = balance(task, demand, room, pool.kind) if apart else deal(task, demand, room, pool.kind, shunned.get(row, ()))
                found |= {} if dealt is None else {row: dealt}
        return found


def _parts(snapshot: Snapshot, placed: TaskPlacement) -> tuple[Part, ...]:
    server, worker = JointDemand.of_type(snapshot, placed.type).parts
    return (
        Part(SERVER, placed.type, len(placed.servers), gpus=0, cpus=server[1], memory=server[2], nodes=tuple(placed.servers)),
        Part(WORKER, placed.type, len(placed.workers), gpus=1, cpus=worker[1], memory=worker[2], nodes=tuple(placed.workers)),
    )


@dataclass(frozen=True)
class Optimus(ServersAndWorkers):
    """A server and a worker for each job while there is room; then, again and again, the task that saves most time for what it takes.

    Where a job trains with parameter servers, its speed and its epochs to go are fitted to its measurements. Where jobs list sizes and
    speeds, devices are all there is to share. In the regime `pollux` it is the baseline of Pollux' simulator, which knows true step times.
    """

    name = "optimus"
    paper = "Peng, Bao, Chen, Wu, Guo: Optimus: An Efficient Dynamic Resource Scheduler for Deep Learning Clusters (EuroSys 2018)"

    interference: float = parameter(0.0, INTERFERENCE, low=0.0, below=1.0, unit="a part")

    def unread(self, regime: str) -> tuple[str, ...]:
        """Pollux' simulator alone knows what interference is."""
        return () if regime == "pollux" else ("interference",)

    def sizes(self, pool: Pool) -> Ints:
        return marginal_gains(pool)

    def tasks(self, pool: Pool, demand: JointDemand, most: list[int]) -> list[JointTask]:
        return by_gain(read_beliefs(pool), demand, most)


@dataclass(frozen=True)
class OptimusDrf(ServersAndWorkers):
    """A server and a worker at a time to the job with the smallest dominant share: the fair scheduler that Optimus is compared with."""

    name = "optimus.drf"
    paper = "Ghodsi et al.: Dominant Resource Fairness (NSDI 2011); baseline of Optimus (EuroSys 2018), section 6"

    def sizes(self, pool: Pool) -> Ints:
        return equal_sizes(pool.curves, pool.capacity)

    def tasks(self, pool: Pool, demand: JointDemand, most: list[int]) -> list[JointTask]:
        return by_share(demand, most)
