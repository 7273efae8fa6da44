"""Pollux where a job's sizes and speeds are listed: any regime but that of its own simulator.

Each device type is a pool of its own. A job's speedup on so many devices is its speed there over that on its fair share of the pool;
devices beyond the largest size that it may have are worth nothing, and it does not get them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.plan import Assignments, Plan
from gantline.core.snapshot import Snapshot
from gantline.models.model import overrides
from gantline.models.solvers.allocation_search.search import Demand, Found, search
from gantline.policies.elastic.layouts import HeldDevices
from gantline.policies.elastic.pools import Curves, Pool, pools, rooms

_MOST_NODES = 16


@dataclass(frozen=True)
class Searched:
    """What a search of one pool found: the order of its jobs, their allocation, and what people should know."""

    order: Ints
    found: Found
    note: str = ""


#: (pool, nodes, devices per node, seed, start of an order) -> what was found
Search = Callable[[Pool, list[int], Ints, int, Callable[[Ints], "Ints | None"]], Searched]


def decide(snapshot: Snapshot, power: float, restart: float, avoid: bool, size: int, generations: Callable[[int], int]) -> Plan:
    """Pollux' own search of each pool: least served first, fair shares, the price of a restart. Generations may depend on the jobs."""
    jobs = snapshot.jobs

    def look(pool: Pool, nodes: list[int], capacity: Ints, seed: int, start: Callable[[Ints], Ints | None]) -> Searched:
        order = np.lexsort((pool.of(jobs.arrival), pool.of(jobs.attained_gpu)))
        demand = _demand(pool, order, nodes, int(capacity.sum()), restart, power)
        how: dict[str, Any] = {"size": size, "generations": generations(len(order)), "avoid": avoid, "most_nodes": _MOST_NODES}
        return Searched(order, search(demand, capacity, seed, start=start(order), **how))

    return plan_by_search(snapshot, look)


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
    penalty = np.maximum(age - restart * pool.of(jobs.restarts)[order], 0.0) / np.maximum(age + restart, 1e-9)
    penalty = np.where(present.any(axis=1), penalty, 1.0)  # a job that holds nothing has nothing to restart
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
