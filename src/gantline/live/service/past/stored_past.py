"""The past of a stored run: its allocations, and the time between them in which jobs waited."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.lab.report.frames import RunLike, node_gpus_of, settled, span_of, unfinished
from gantline.live.service.past.occupancy import JobName, Occupancy


def occupancy_of(run: RunLike) -> Occupancy:
    """Times count from the beginning of the run's clock."""
    run = settled(run)
    begin, end = span_of(run)
    jobs = run.jobs
    names = [
        JobName(str(id), "", str(user), str(queue), int(gpus)) for id, user, queue, gpus in jobs["job", "user", "queue", "gpus"].rows()
    ]
    place_of = {one.id: place for place, one in enumerate(names)}
    held = run.allocations.filter(run.allocations["job"].is_in(jobs["job"].implode()))
    job = np.array([place_of[id] for id in held["job"].to_list()], dtype=np.int64)
    start, stop = held["start"].to_numpy(), held["end"].to_numpy()
    devices = held["devices"].explode().drop_nulls().to_numpy().astype(np.int64)
    first = np.concatenate(([0], np.cumsum(held["devices"].list.len().to_numpy()))).astype(np.int64)
    is_open: Ints = np.array([place_of[id] for id in unfinished(jobs)["job"].to_list()], dtype=np.int64)
    waits = _waits(jobs["arrival"].to_numpy(), is_open, job, start, stop, end)
    nodes = _nodes(run, int(devices.max()) + 1 if devices.size else 0)
    return Occupancy(names, nodes, begin, end, start, stop, job, first, devices, *waits)


def _nodes(run: RunLike, least: int) -> list[tuple[str, int]]:
    """Nodes as the run lists them; without a list, all devices that were held form one node."""
    sizes = [size for size in node_gpus_of(run) if size]
    given = run.summary.get("node_names")
    names = [str(name) for name in given] if given and len(given) == len(sizes) else [f"node{k}" for k in range(len(sizes))]
    return list(zip(names, sizes)) if sum(sizes) >= least else [("devices", least)]


def _waits(arrival: Floats, is_open: Ints, job: Ints, start: Floats, stop: Floats, end: float) -> tuple[Floats, Floats, Ints]:
    """Jobs that have arrived and hold nothing: before their first stay, between two, and, where they have not ended, to the end."""
    order = np.lexsort((start, job))
    owner, begins, ends = job[order], start[order], stop[order]
    is_first = np.append(True, owner[1:] != owner[:-1])[: owner.size]
    before = np.where(is_first, arrival[owner], np.append(0.0, ends[:-1])[: owner.size])
    last = arrival.copy()  # up to when a job is accounted for
    np.maximum.at(last, owner, ends)
    froms, tos, jobs = np.append(before, last[is_open]), np.append(begins, np.full(is_open.size, end)), np.append(owner, is_open)
    waits = froms < tos
    return froms[waits], tos[waits], jobs[waits]
