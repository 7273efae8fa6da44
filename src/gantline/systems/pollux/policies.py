"""`pollux` and `adaptdl`: every interval a population search for the allocation with the best speedups (Qiao et al., OSDI 2021)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.plan import Assignments, Plan
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.models.model import overrides
from gantline.models.solvers.allocation_search.search import Demand, Found, restart_penalty, search
from gantline.policies.drawn_places import moved, other_places
from gantline.policies.elastic.layouts import HeldDevices
from gantline.policies.elastic.pools import Curves, Pool, pools, read_curves, rooms
from gantline.policies.interference import INTERFERENCE

# Pollux where a job's sizes and speeds are listed: any regime but that of its own simulator.
#
# Each device type is a pool of its own. A job's speedup on so many devices is its speed there over that on its fair share of the pool;
# devices beyond the largest size that it may have are worth nothing, and it does not get them.


_MOST_NODES = 16


@dataclass(frozen=True)
class Searched:
    """What a search of one pool found: the order of its jobs, their allocation, and what people should know."""

    order: Ints
    found: Found
    note: str = ""


#: (pool, nodes, devices per node, seed, start of an order) -> what was found
Search = Callable[[Pool, list[int], Ints, int, Callable[[Ints], "Ints | None"]], Searched]


def plan_by_search(snapshot: Snapshot, look: Search) -> Plan:
    """Search each pool, begun with the best allocations of the last decision, and name the devices."""
    jobs = snapshot.jobs
    memory: dict[str, Any] = snapshot.memory or {}
    kept: dict[str, Any] = {}
    job: list[int] = np.flatnonzero(jobs.gpus == 0).tolist()  # a job that wants no devices runs as it asks
    devices: list[tuple[int, ...]] = [()] * len(job)
    option, kind, notes = [0] * len(job), [-1] * len(job), []
    for pool in pools(snapshot):
        room = rooms(pool)
        nodes = sorted(room)
        if not nodes:
            continue
        capacity = np.array([len(room[node]) for node in nodes], dtype=np.int64)
        seed = int(snapshot.rng(f"pollux/{pool.kind}").integers(1 << 62))
        before = memory.get(str(pool.kind))

        def start(order: Ints, before: Any = before, pool: Pool = pool, nodes: list[int] = nodes) -> Ints | None:
            return _start(before, [jobs.ids[pool.jobs[place]] for place in order], nodes)

        searched = look(pool, nodes, capacity, seed, start)
        order, found = searched.order, searched.found
        names = [jobs.ids[pool.jobs[place]] for place in order]
        kept[str(pool.kind)] = {"jobs": names, "nodes": nodes, "front": found.front.astype(np.int8), "note": searched.note}
        if searched.note and searched.note != (before or {}).get("note"):
            notes.append(searched.note)
        named = _devices(pool, order, found.best, nodes, room)
        size = np.zeros(len(pool), dtype=np.int64)
        size[list(named)] = [len(held) for held in named.values()]
        entries = pool.curves.at_most(size)
        for place, held in named.items():
            job.append(int(pool.jobs[place]))
            devices.append(held)
            option.append(int(pool.curves.option[entries[place]]))
            kind.append(pool.kind)
    gpus = np.array([len(held) if held else -1 for held in devices], dtype=np.int64)
    assigned = Assignments(job, option=option, gpus=gpus, type=kind, devices=devices)
    return Plan.assign(assigned, memory=kept, notes=tuple(notes))


def _demand(pool: Pool, order: Ints, nodes: list[int], devices: int, restart: float, power: float) -> Demand:
    snapshot, curves, jobs = pool.snapshot, pool.curves, pool.snapshot.jobs
    present = present_rows(pool, order, nodes)
    fair = max(-(-devices // max(len(order), 1)), 1)
    speed, most = _believed(pool, devices, speeds(curves, devices))
    speed, most = speed[order], most[order]
    per_node = -(-devices // max(len(nodes), 1))
    base = speed[:, 0 if fair <= per_node else 1, min(fair, devices)]
    base = np.where(base > 0.0, base, speed.max(axis=(1, 2), initial=0.0))  # a fair share too small or too large for it: its best
    speedup = np.divide(speed, base[:, None, None], out=np.zeros_like(speed), where=base[:, None, None] > 0.0)
    age = snapshot.now - pool.of(jobs.arrival)[order]
    penalty = np.where(
        present.any(axis=1), restart_penalty(age, pool.of(jobs.restarts)[order], restart), 1.0
    )  # a job that holds nothing has nothing to restart
    return Demand(present, most, speedup, penalty, len(nodes) / max(devices, 1), power)


def _believed(pool: Pool, devices: int, listed: Floats) -> tuple[Floats, Ints]:
    """Speed [job, on one node or several, devices] and the most devices of each: as listed, or as the run's model lets policies know.

    A job that has not run yet is given one device, and is thought to scale in proportion until then.
    """
    both, most = np.repeat(listed[:, None, :], 2, axis=1), pool.curves.most.copy()
    model = pool.snapshot.performance
    if not overrides(model, "goodputs"):
        return both, most
    sizes = np.arange(1, devices + 1)
    for place, job in enumerate(pool.jobs.tolist()):
        found = model.goodputs(pool.snapshot.learned, pool.snapshot.jobs.ids[job], pool.kind, sizes)
        least = int(pool.curves.least[place])
        both[place, :, 1:] = sizes if found is None else found
        both[place, :, :least] = 0.0  # a job that needs more gains nothing by them
        most[place] = least if found is None else max(min(int(most[place]), int(np.flatnonzero(found.any(axis=0))[-1:].sum()) + 1), least)
    return both, most


def present_rows(pool: Pool, order: Ints, nodes: list[int]) -> Ints:
    """Devices [job, node] that the jobs hold now."""
    snapshot = pool.snapshot
    place_of = np.full(len(snapshot.cluster.node_type), -1, dtype=np.int64)
    place_of[nodes] = np.arange(len(nodes))
    held = HeldDevices.of([snapshot.jobs.devices(job) for job in pool.jobs[order].tolist()])
    at = place_of[snapshot.cluster.device_node[held.device]]
    present = np.zeros((len(order), len(nodes)), dtype=np.int64)
    np.add.at(present, (held.owner[at >= 0], at[at >= 0]), 1)
    return present


def speeds(curves: Curves, devices: int) -> Floats:
    """Speed [job, devices]: that of the largest size within so many devices."""
    found = np.zeros((len(curves), devices + 1))
    for job in range(len(curves)):
        for entry in range(int(curves.first[job]), int(curves.first[job + 1])):
            found[job, int(curves.size[entry]) :] = curves.rate[entry]
    return found


def _start(memory: dict[str, Any] | None, names: list[str], nodes: list[int]) -> Ints | None:
    """The front of the last decision, where jobs and nodes are still there."""
    if memory is None or not len(memory["front"]):
        return None
    front: Ints = np.asarray(memory["front"], dtype=np.int64)
    start = np.zeros((len(front), len(names), len(nodes)), dtype=np.int64)
    known = {name: place for place, name in enumerate(memory["jobs"])}
    at = {node: place for place, node in enumerate(memory["nodes"])}
    rows: Ints = np.array([here for here, name in enumerate(names) if name in known], dtype=np.int64)
    columns: Ints = np.array([here for here, node in enumerate(nodes) if node in at], dtype=np.int64)
    old_rows: Ints = np.array([known[names[here]] for here in rows.tolist()], dtype=np.int64)
    old_columns: Ints = np.array([at[nodes[here]] for here in columns.tolist()], dtype=np.int64)
    start[:, rows[:, None], columns] = front[:, old_rows[:, None], old_columns]
    return start


def _devices(pool: Pool, order: Ints, best: Ints, nodes: list[int], room: dict[int, list[int]]) -> dict[int, tuple[int, ...]]:
    """Exact devices: each job keeps its own where it stays on a node, and gets the lowest others; never more than a size it may have."""
    jobs, curves, cluster = pool.snapshot.jobs, pool.curves, pool.snapshot.cluster
    given = np.zeros((len(pool), len(nodes)), dtype=np.int64)
    given[order] = best
    entries = curves.at_most(given.sum(axis=1))
    size = np.where(entries >= 0, curves.size[entries], 0) if len(curves.size) else np.zeros(len(pool), dtype=np.int64)
    before = np.cumsum(given, axis=1) - given
    layout = np.clip(size[:, None] - before, 0, given)
    shared = np.array([device for node in nodes for device in room[node]], dtype=np.int64)
    node_of = np.full(len(cluster.device_node), -1, dtype=np.int64)
    capacity = np.array([len(room[node]) for node in nodes], dtype=np.int64)
    node_of[shared] = np.repeat(np.arange(len(nodes)), capacity)
    held = [jobs.devices(job) for job in pool.jobs.tolist()]
    found = HeldDevices.of(held).named(layout, order, node_of, shared, capacity)
    return {place: tuple(sorted(found.get(place, held[place]))) for place in order[layout[order].any(axis=1)].tolist()}


# `pollux`: every interval a population search for the allocation with the best power mean of speedups (Qiao et al., OSDI 2021).

FITS = ("compiled", "artifact")


@dataclass(frozen=True)
class Pollux(Policy):
    """Speedups relative to a fair share, their power mean as large as possible; changes cost a restart, spanning jobs keep apart.

    In the regime `pollux`, and on the engine with profiles, speedups are believed: models fitted to the measurements of each job. Elsewhere
    they follow from the sizes that a job may have and their speeds.
    """

    believes = True
    usual_round = 60.0  # seconds; on the engine it decides whenever it is asked
    name = "pollux"
    names_devices = True
    paper = (
        "Qiao, Choe, Subramanya, Neiswanger, Ho, Zhang, Ganger, Xing: Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized "
        "Deep Learning (OSDI 2021)"
    )

    p: float = parameter(-1.0, "power of the mean of speedups: 1 their sum, below 0 the slow count more, 0 geometric", low=-20.0, high=20.0)
    restart: float = parameter(30.0, "seconds that a change is thought to cost", low=0.0, unit="seconds")
    avoid: bool = parameter(True, "whether jobs that span nodes never share one")
    size: int = parameter(100, "members of the population", low=2)
    generations: int = parameter(100, "generations of a search", low=1)
    work: int = parameter(0, "rows (members x generations x jobs) of a search at most, so that it is bounded; 0: no bound", low=0)
    fit: str = parameter("compiled", "regime pollux: how models are fitted, 'compiled' or 'artifact' (L-BFGS-B)", one_of=FITS)
    interference: float = parameter(0.0, INTERFERENCE, low=0.0, below=1.0, unit="a part")

    def unread(self, regime: str) -> tuple[str, ...]:
        """Pollux' simulator alone knows what interference is."""
        return () if regime == "pollux" else ("interference",)

    def decide(self, snapshot: Snapshot) -> Plan:
        return plan_by_search(snapshot, self._search)

    def _search(self, pool: Pool, nodes: list[int], capacity: Ints, seed: int, start: Callable[[Ints], Ints | None]) -> Searched:
        """Least served first, fair shares, the price of a restart. Generations may depend on the jobs."""
        jobs = pool.snapshot.jobs
        order = np.lexsort((pool.of(jobs.arrival), pool.of(jobs.attained_gpu)))
        demand = _demand(pool, order, nodes, int(capacity.sum()), self.restart, self.p)
        how: dict[str, Any] = {"size": self.size, "generations": self.affordable(len(order)), "avoid": self.avoid}
        return Searched(order, search(demand, capacity, seed, start=start(order), most_nodes=_MOST_NODES, **how))

    def alternatives(self, snapshot: Snapshot, plan: Plan, count: int) -> list[Plan]:
        """The gangs that this plan starts or moves, on other devices: a search prices nodes and restarts, not which nodes they are."""
        grants = plan.assignments
        assert grants is not None
        held = [set(snapshot.jobs.devices(job)) for job in grants.job.tolist()]
        changed = [job for job, now, devices in zip(grants.job.tolist(), held, grants.entries("devices")) if now != {*devices}]
        return [moved(plan, places) for places in other_places(snapshot, plan, changed, count)]

    def affordable(self, jobs: int) -> int:
        """Generations of a search for so many jobs."""
        return self.generations if self.work == 0 else min(self.generations, max(self.work // (self.size * max(jobs, 1)), 1))


# `adaptdl`: Pollux as it was deployed (AdaptDL, github.com/petuum/adaptdl, 2023), with nodes that cost something.
#
# It differs from the paper's policy: speedups are relative to one device and simply added up, any change costs a tenth, and the second
# objective of the search is the number of nodes in use. How many nodes are worth having follows from *utility*, speedup per device of the
# nodes in use: in a band the cluster keeps its size, else the size is wanted whose utility is nearest to the middle of the band.

_CHANGE = 0.9  # what a speedup counts if the job's row changes


@dataclass(frozen=True)
class AdaptDL(Policy):
    """The sum of speedups over one device, on as many nodes as keep their utility within a band."""

    name = "adaptdl"
    names_devices = True
    paper = "Qiao et al.: Pollux (OSDI 2021), as deployed in AdaptDL (Petuum, 2023)"

    low: float = parameter(0.35, "speedup per device of the nodes in use below which nodes are given up", low=0.0)
    high: float = parameter(0.65, "and above which more are wanted")
    size: int = parameter(100, "members of the population", low=2)
    generations: int = parameter(100, "generations of a search", low=1)

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
