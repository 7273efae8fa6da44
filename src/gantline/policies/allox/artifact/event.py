"""IRFsim's AlloX: one start per matching, at most fifty jobs in it, and machines booked for all jobs matched to them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from gantline.core.errors import RefusedError
from gantline.policies.allox.artifact.queued import CPU, GPU, Queued, Start, room
from gantline.policies.allox.artifact.solver import match_slots
from gantline.policies.allox.ways import Floats, Ints

MOST_JOBS = 50


@dataclass(frozen=True)
class Cluster:
    """Machines by number, GPUs first; NaN in ``booked`` is a free one, samples hold the lowest free ones of a kind."""

    kind: Ints
    booked: Floats  # when it is free again, by the times reported for all jobs once matched to it
    samples: tuple[int, int]  # how many run on CPU nodes and on GPUs
    free: Floats  # cores, GPUs, memory


def allox(queued: Queued, cluster: Cluster, score: Floats, gain: Floats, now: float, alpha: float) -> tuple[list[Start], Floats, Floats]:
    """What starts, and the bookings and scores afterwards; ``gain`` is what a start adds to its user's score."""
    booked, free, score = cluster.booked.copy(), cluster.free.copy(), score.copy()
    queues = queued.queues()
    active = [user for user, queue in enumerate(queues) if queue]
    starts: list[Start] = []
    while np.any(np.isnan(booked[unblocked(cluster, booked)])):
        chosen = sorted(active, key=lambda user: float(score[user]))[: ceil(alpha * len(active))]
        rows = choose([row for user in chosen for row in queues[user]], queued)
        start, until = start_one(rows, queued, cluster, booked, free, now) if rows else (None, 0.0)
        if start is None:
            if alpha > 1:
                break
            alpha *= 2
            continue
        user = int(queued.owner[start.row])
        queues[user].remove(start.row)
        booked[start.machine] = until
        free -= queued.need[start.row, start.device]
        score[user] += gain[start.row, start.device]
        starts.append(start)
    return starts, booked, score


def choose(rows: list[int], queued: Queued) -> list[int]:
    """The shortest on either device in turns up to the size limit, in the order of a hash table of their numbers."""
    by_gpu = sorted(rows, key=lambda row: float(queued.time[row, GPU]))
    by_cpu = sorted(rows, key=lambda row: float(queued.time[row, CPU]))
    chosen: dict[int, None] = {}
    for pair in zip(by_gpu, by_cpu):
        chosen.update(dict.fromkeys(pair))
        if len(chosen) >= MOST_JOBS:
            break
    size = 16
    while len(chosen) > 0.75 * size:
        size *= 2
    return sorted(chosen, key=lambda row: int(queued.number[row]) % size)


def unblocked(cluster: Cluster, booked: Floats) -> Ints:
    """The free machines on which something may start, by number: samples stand on the lowest of each kind."""
    free: list[int] = []
    for kind in (GPU, CPU):
        mine = np.flatnonzero((cluster.kind == kind) & np.isnan(booked))
        free += mine[cluster.samples[kind] :].tolist()
    return np.array(sorted(free), dtype=np.int64)


def start_one(rows: list[int], queued: Queued, cluster: Cluster, booked: Floats, free: Floats, now: float) -> tuple[Start | None, float]:
    """Solve, and start the head of the list of the highest-numbered machine that may start something."""
    machines, jobs = len(cluster.kind), len(rows)
    avail = np.where(np.isnan(booked), now, np.fmax(booked, now))
    time = queued.time[rows][:, cluster.kind].T
    base = avail[:, None] - queued.arrival[rows]
    slots = np.concatenate([base + k * time for k in range(1, jobs + 1)])
    column = match_slots(slots)
    for machine in unblocked(cluster, booked)[::-1].tolist():
        mine = [rows[c] for c in column[machine::machines][::-1].tolist() if c < jobs]
        if not mine:
            continue
        kind = int(cluster.kind[machine])
        if not room(queued.need[mine[0], kind], free):
            raise RefusedError(
                f"job {int(queued.number[mine[0]])} lacks memory, and the original would try it for ever",
                fix="give the cluster more memory, or leave the artifact's rules off",
            )
        until = now
        for row in mine:
            until += float(queued.time[row, kind])
        return Start(mine[0], kind, machine), until
    return None, 0.0
