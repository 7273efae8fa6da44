"""Sia where a job's configurations are its listed options and their listed speeds its goodputs: any regime but Sia's own."""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.plan import Assignments, Plan
from gantline.core.snapshot import Snapshot
from gantline.performance.model import overrides
from gantline.policies.elastic.layouts import NamedDevices, TypeLayout
from gantline.systems.sia.policies.configurations import Configurations
from gantline.systems.sia.policies.matrix import costs, normalised, restart_factor
from gantline.systems.sia.policies.program import choose_configurations


def decide(
    snapshot: Snapshot,
    p: float,
    idle: float,
    restart: float,
    layout: str = "engine",
    move_cost: str = "auto",
    reserved: Bools | None = None,
) -> Plan:
    """The options that cost least together; who is locked keeps its own, and who has a reservation has it."""
    jobs = snapshot.jobs
    if not len(jobs):
        return Plan.assign(Assignments(np.zeros(0, dtype=np.int64)))
    columns, option = _columns(snapshot)
    goodput = np.where(option >= 0, snapshot.options.F[c.O_RATE][np.maximum(option, 0)], 0.0)
    unit = np.broadcast_to(np.maximum(columns.gpus, 1).astype(np.float64), goodput.shape)
    goodput, unit = _believed(snapshot, columns, option, goodput, unit)
    holds = _held(snapshot, option)
    factor = restart_factor(snapshot.now - jobs.arrival, jobs.restarts, np.full(len(jobs), restart))
    cost = costs(normalised(goodput, unit), factor, holds, jobs.weight, p)
    forced = np.where(jobs.locked, holds, -1)
    if reserved is not None and reserved.any():
        only = reserved & ((option >= 0).sum(axis=1) == 1) & ~jobs.locked
        forced[only] = (option[only] >= 0).argmax(axis=1)
    chosen = choose_configurations(cost, columns, idle * jobs.weight, forced).column
    runs = np.flatnonzero(chosen >= 0)
    picked = option[runs, chosen[runs]] - jobs.option_first[runs]
    seats = _seats(snapshot, option[runs, chosen[runs]], runs, layout, move_cost) if layout != "engine" else {}
    if not seats:
        return Plan.assign(Assignments(runs, option=picked))
    return Plan.assign(Assignments(runs, option=picked, devices=[seats.get(job, ()) for job in runs.tolist()]))


def _seats(snapshot: Snapshot, option: Ints, runs: Ints, layout: str, move_cost: str) -> NamedDevices:
    """Devices of those who change or move, by job; those who are stopped, or go to another type, leave theirs to the others."""
    jobs, found = snapshot.jobs, dict[int, tuple[int, ...]]()
    kind, gpus = np.full(len(jobs), -1, dtype=np.int64), np.zeros(len(jobs), dtype=np.int64)
    kind[runs], gpus[runs] = snapshot.options.I[c.O_TYPE, option], snapshot.options.I[c.O_GPUS, option]
    settled = (jobs.phase == PENDING) | (jobs.phase == STARTING) | (jobs.phase == RUNNING)
    for one in range(len(snapshot.cluster.types)):
        mine = np.flatnonzero(settled & ((kind == one) | (jobs.running & (jobs.type == one))))
        seats = TypeLayout(snapshot, one, mine, np.where(kind[mine] == one, gpus[mine], 0), jobs.locked[mine]).devices(layout, move_cost)
        found |= {int(mine[place]): devices for place, devices in seats.items()}
    return found


def _believed(snapshot: Snapshot, columns: Configurations, option: Ints, listed: Floats, unit: Floats) -> tuple[Floats, Floats]:
    """Goodputs as the run's model lets policies know, where it has such a view; who has not run yet is offered its least of each type."""
    model = snapshot.performance
    if not overrides(model, "goodputs"):
        return listed, unit
    cluster, found = snapshot.cluster, np.zeros_like(listed)
    node = np.zeros(len(cluster.types), dtype=np.int64)
    np.maximum.at(node, cluster.node_type, np.bincount(cluster.device_node, minlength=len(cluster.node_type)))
    for row, name in enumerate(snapshot.jobs.ids):
        for group in np.unique(columns.group).tolist():
            mine = np.flatnonzero((columns.group == group) & (option[row] >= 0))
            if not len(mine):
                continue
            sizes = columns.gpus[mine]
            told = model.goodputs(snapshot.learned, name, group, sizes)
            if told is None:
                found[row, mine[sizes == sizes.min()]] = 1.0
            else:
                found[row, mine] = told[(sizes > node[group]).astype(np.int64), np.arange(len(sizes))]
    return found, np.ones_like(unit)


def _columns(snapshot: Snapshot) -> tuple[Configurations, Ints]:
    """One column per type and count that any option has, and the option of each job in each column (-1: none)."""
    jobs, table = snapshot.jobs, snapshot.options.I
    types = len(snapshot.cluster.types)
    capacity = snapshot.cluster.capacity.astype(np.float64)
    owner = np.repeat(np.arange(len(jobs)), jobs.option_count)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(jobs.option_count) - jobs.option_count, jobs.option_count)
    row = np.repeat(jobs.option_first, jobs.option_count) + within
    kinds = np.stack([table[c.O_TYPE, row], table[c.O_GPUS, row]], axis=1)
    found, column = np.unique(kinds, axis=0, return_inverse=True)
    group, gpus = found[:, 0].astype(np.int64), found[:, 1].astype(np.int64)
    use: Floats = np.zeros((len(found), types))
    use[np.arange(len(found)), group] = gpus
    option = np.full((len(jobs), len(found)), -1, dtype=np.int64)
    option[owner[::-1], column.reshape(-1)[::-1]] = row[::-1]  # the first of several alike
    nodes_used = np.ones(len(found), dtype=np.int64)
    return Configurations((), group, nodes_used, gpus, np.ones(len(found), dtype=np.bool_), use, capacity), option


def _held(snapshot: Snapshot, option: Ints) -> Ints:
    """The column that each job holds; -1: none."""
    jobs = snapshot.jobs
    now = np.where(jobs.running & (jobs.option >= 0), jobs.option_first + jobs.option, -2)
    match = option == now[:, None]
    return np.where(match.any(axis=1), match.argmax(axis=1), -1)
