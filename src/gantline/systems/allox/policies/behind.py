"""Machines that a gang waits for need not stand idle: jobs that are done before it could start run there meanwhile.

AlloX knows jobs of one machine only. A gang that heads a list and finds too few machines idle would keep those it finds from others
behind it. Here the others may use them as long as no waiting gang could start later for it (by the estimates, as EASY backfilling does),
and as long as the job itself could not end sooner on another kind of machine.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.systems.allox.policies.allox import Decision, Machines, Waiting
from gantline.systems.allox.policies.fill import fits


def behind_gangs(waiting: Waiting, machines: Machines, decision: Decision, now: float) -> tuple[Ints, Ints]:
    """Jobs and kinds of machine that start besides what was decided."""
    left = np.ones(len(waiting.owner), dtype=bool)
    left[decision.jobs] = False
    gangs = left & (waiting.width.max(axis=1, initial=1) > 1)
    if not gangs.any():
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    kinds = waiting.time.shape[1]
    ends = [_ends(waiting, machines, decision, kind, now) for kind in range(kinds)]
    free = machines.free - waiting.need[decision.jobs, decision.kinds].sum(axis=0)
    jobs: list[int] = []
    chosen: list[int] = []
    for kind in range(kinds):
        idle = int((ends[kind] <= now).sum())
        blocked = np.flatnonzero(gangs & left & np.isfinite(waiting.time[:, kind]) & (waiting.width[:, kind] > idle))
        if not idle or not len(blocked):
            continue
        begins = np.array([_begin(ends[kind], int(waiting.width[gang, kind])) for gang in blocked])
        spare = np.searchsorted(ends[kind], begins, side="right") - waiting.width[blocked, kind]
        for job in np.lexsort((np.arange(len(left)), waiting.time[:, kind])):
            width, done = int(waiting.width[job, kind]), now + waiting.time[job, kind]
            if not left[job] or width > idle or not np.isfinite(done) or not fits(waiting.need[job, kind], free):
                continue
            in_the_way = begins < done
            if (spare[in_the_way] < width).any() or done > _soonest(waiting, ends, job, kind, now):
                continue
            spare[in_the_way] -= width
            left[job], idle, free = False, idle - width, free - waiting.need[job, kind]
            ends[kind] = np.sort(np.concatenate((ends[kind][width:], np.full(width, done))))
            jobs.append(int(job))
            chosen.append(kind)
    return np.array(jobs, dtype=np.int64), np.array(chosen, dtype=np.int64)


def _ends(waiting: Waiting, machines: Machines, decision: Decision, kind: int, now: float) -> Floats:
    """When each machine of a kind is free, in order, with what was decided under way."""
    own = machines.kind == kind
    ends = np.sort(np.where(machines.idle[own], now, np.maximum(machines.release[own], now + 1e-6)))
    for job in decision.jobs[decision.kinds == kind]:
        width = int(waiting.width[job, kind])
        ends = np.sort(np.concatenate((ends[width:], np.full(width, now + waiting.time[job, kind]))))
    return ends


def _begin(ends: Floats, width: int) -> float:
    """When so many machines are free at once; infinity: there are not so many."""
    return float(ends[width - 1]) if width <= len(ends) else np.inf


def _soonest(waiting: Waiting, ends: list[Floats], job: int, kind: int, now: float) -> float:
    """When the job could end on another kind of machine, if it were the next there."""
    found = [
        max(now, _begin(ends[other], int(waiting.width[job, other]))) + waiting.time[job, other]
        for other in range(len(ends))
        if other != kind and np.isfinite(waiting.time[job, other])
    ]
    return min(found, default=np.inf)
