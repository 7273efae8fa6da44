"""Sia where a job's configurations are its sizes and their believed speeds its goodputs: any regime but Sia's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.plan import Assignments, Plan
from gantline.core.snapshot import Snapshot
from gantline.models.model import overrides
from gantline.policies.elastic.layouts import NamedDevices, TypeLayout
from gantline.systems.sia.policies.matrix import costs, normalised, restart_factor
from gantline.systems.sia.policies.program import choose_configurations
from gantline.systems.sia.policies.ways import DERIVED, SiaWays, read_ways


def decide(
    snapshot: Snapshot,
    p: float,
    idle: float,
    restart: float,
    layout: str = "engine",
    move_cost: str = "auto",
    reserved: Bools | None = None,
) -> Plan:
    """The sizes that cost least together; a locked job keeps its own, and one with a reservation has what is reserved."""
    jobs = snapshot.jobs
    if not len(jobs):
        return Plan.assign(Assignments(np.zeros(0, dtype=np.int64)))
    kept = np.zeros(len(jobs), dtype=np.bool_) if reserved is None else reserved & ~jobs.locked
    ways = read_ways(snapshot, kept)
    columns, holds = ways.columns, ways.held(snapshot)
    unit = np.broadcast_to(np.maximum(columns.gpus, 1).astype(np.float64), ways.rate.shape)
    goodput, unit = _believed(snapshot, ways, unit)
    factor = restart_factor(snapshot.now - jobs.arrival, jobs.restarts, np.full(len(jobs), restart))
    cost = costs(normalised(goodput, unit), factor, holds, jobs.weight, p)
    forced = np.where(jobs.locked, holds, -1)
    if kept.any():
        only = kept & (ways.offered.sum(axis=1) == 1)
        forced[only] = ways.offered[only].argmax(axis=1)
    choice = choose_configurations(cost, columns, idle * jobs.weight, forced)
    chosen = choice.column
    runs = np.flatnonzero(chosen >= 0)
    rows, kind, gpus = ways.option[runs, chosen[runs]], columns.group[chosen[runs]], columns.gpus[chosen[runs]]
    named: dict[str, Any] = {"option": np.where(rows == DERIVED, -1, rows - jobs.option_first[runs])}
    if (rows == DERIVED).any():
        named |= {"gpus": np.where(rows == DERIVED, gpus, -1), "type": np.where(rows == DERIVED, kind, -1)}
    seats = _seats(snapshot, kind, gpus, runs, layout, move_cost) if layout != "engine" else {}
    if seats:
        named["devices"] = [seats.get(job, ()) for job in runs.tolist()]
    return Plan.assign(Assignments(runs, **named), notes=(choice.note,) if choice.note else ())


def _seats(snapshot: Snapshot, kinds: Ints, sizes: Ints, runs: Ints, layout: str, move_cost: str) -> NamedDevices:
    """Devices of the jobs that change or move, by job; those that are stopped, or go to another type, leave theirs to the others."""
    jobs, found = snapshot.jobs, dict[int, tuple[int, ...]]()
    kind, gpus = np.full(len(jobs), -1, dtype=np.int64), np.zeros(len(jobs), dtype=np.int64)
    kind[runs], gpus[runs] = kinds, sizes
    settled = (jobs.phase == PENDING) | (jobs.phase == STARTING) | (jobs.phase == RUNNING)
    for one in range(len(snapshot.cluster.types)):
        mine = np.flatnonzero(settled & ((kind == one) | (jobs.running & (jobs.type == one))))
        seats = TypeLayout(snapshot, one, mine, np.where(kind[mine] == one, gpus[mine], 0), jobs.locked[mine]).devices(layout, move_cost)
        found |= {int(mine[place]): devices for place, devices in seats.items()}
    return found


def _believed(snapshot: Snapshot, ways: SiaWays, unit: Floats) -> tuple[Floats, Floats]:
    """Goodputs as the run's model gives them to policies, where it does; a job that has not run yet is offered its least of each type."""
    model = snapshot.performance
    if not overrides(model, "goodputs"):
        return ways.rate, unit
    cluster, columns, found = snapshot.cluster, ways.columns, np.zeros_like(ways.rate)
    node = np.zeros(len(cluster.types), dtype=np.int64)
    np.maximum.at(node, cluster.node_type, np.bincount(cluster.device_node, minlength=len(cluster.node_type)))
    for row, name in enumerate(snapshot.jobs.ids):
        for group in np.unique(columns.group).tolist():
            mine = np.flatnonzero((columns.group == group) & ways.offered[row])
            if not len(mine):
                continue
            sizes = columns.gpus[mine]
            given = model.goodputs(snapshot.learned, name, group, sizes)
            if given is None:
                found[row, mine[sizes == sizes.min()]] = 1.0
            else:
                found[row, mine] = given[(sizes > node[group]).astype(np.int64), np.arange(len(sizes))]
    return found, np.ones_like(unit)
