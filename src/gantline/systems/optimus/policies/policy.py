"""`optimus` and `optimus.drf`: how many workers each job gets, and how many parameter servers where it trains with them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gantline.core.arrays import Ints
from gantline.core.plan import Assignment, Part, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.models.model import overrides
from gantline.models.parameter_servers import SERVER, WORKER
from gantline.policies.elastic.policies import equal_sizes
from gantline.policies.elastic.pools import Pool, plan_of, pools, settled_until
from gantline.policies.interference import INTERFERENCE
from gantline.systems.optimus.policies.beliefs import read_beliefs, slow_nodes
from gantline.systems.optimus.policies.by_size import marginal_gains
from gantline.systems.optimus.policies.dealing import Seats, balance, deal, free_room
from gantline.systems.optimus.policies.jointly import JointDemand, JointTask, by_gain, by_share


@dataclass(frozen=True)
class ServersAndWorkers(Policy):
    """Decides every `interval` seconds; in between nothing moves, and newcomers wait, as in Optimus' own controller."""

    interval: float = field(
        default=600.0, metadata=about("seconds between decisions, where jobs train with parameter servers", above=0.0, unit="seconds")
    )
    seats: str = field(
        default="blocks",
        metadata=about(
            "'blocks': fewest nodes, equal numbers of servers and workers on each; 'spread': balanced", one_of=("blocks", "spread")
        ),
    )
    stragglers: str = field(
        default="replace",
        metadata=about(
            "'replace': a job leaves nodes where workers have less than half the median speed; 'keep'", one_of=("replace", "keep")
        ),
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
        seats = {row: Seats(*known) for row, known in memory["seats"].items()}
        until, rows = memory["until"], [str(row) for row in snapshot.jobs.rows.tolist()]
        shunned = {row: memory["shunned"][row] for row in rows if row in memory["shunned"]}
        if snapshot.now >= until:
            until = snapshot.now + self.interval
            shunned = slow_nodes(snapshot, rows, shunned) if self.stragglers == "replace" else {}
            seats = {row: found for pool in pools(snapshot) for row, found in self._seats(pool, seats, shunned).items()}
        seats = {row: seats[row] for row in rows if row in seats}
        plan = [Assignment(place, parts=_parts(snapshot, seats[row])) for place, row in enumerate(rows) if row in seats]
        remembered = {"until": until, "seats": {row: list(found) for row, found in seats.items()}, "shunned": shunned}
        return Plan.assign(plan, valid_until=until, memory=remembered)

    def _seats(self, pool: Pool, before: dict[str, Seats], shunned: dict[str, list[int]]) -> dict[str, Seats]:
        """Where each job is placed: one that keeps its size without a straggler stays, others are placed anew, the smallest first."""
        demand, room = JointDemand.of(pool), free_room(pool)
        tasks = self.tasks(pool, demand, pool.curves.most.tolist())
        rows = [str(row) for row in pool.of(pool.snapshot.jobs.rows).tolist()]
        found: dict[str, Seats] = {}
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


def _parts(snapshot: Snapshot, seats: Seats) -> tuple[Part, ...]:
    server, worker = JointDemand.of_type(snapshot, seats.type).parts
    return (
        Part(SERVER, seats.type, len(seats.servers), gpus=0, cpus=server[1], memory=server[2], nodes=tuple(seats.servers)),
        Part(WORKER, seats.type, len(seats.workers), gpus=1, cpus=worker[1], memory=worker[2], nodes=tuple(seats.workers)),
    )


@dataclass(frozen=True)
class Optimus(ServersAndWorkers):
    """A server and a worker for each job while there is room; then, again and again, the task that saves most time for what it takes.

    Where a job trains with parameter servers, its speed and its epochs to go are fitted to its measurements. Where jobs list sizes and
    speeds, devices are all there is to share. In the regime `pollux` it is the baseline of Pollux' simulator, which knows true step times.
    """

    name: ClassVar[str] = "optimus"
    paper: ClassVar[str] = (
        "Peng, Bao, Chen, Wu, Guo: Optimus: An Efficient Dynamic Resource Scheduler for Deep Learning Clusters (EuroSys 2018)"
    )

    interference: float = field(default=0.0, metadata=about(INTERFERENCE, low=0.0, below=1.0, unit="a part"))

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

    name: ClassVar[str] = "optimus.drf"
    paper: ClassVar[str] = "Ghodsi et al.: Dominant Resource Fairness (NSDI 2011); baseline of Optimus (EuroSys 2018), section 6"

    def sizes(self, pool: Pool) -> Ints:
        return equal_sizes(pool.curves, pool.capacity)

    def tasks(self, pool: Pool, demand: JointDemand, most: list[int]) -> list[JointTask]:
        return by_share(demand, most)
