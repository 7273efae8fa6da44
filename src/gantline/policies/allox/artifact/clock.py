"""IRFsim's clock: ended tasks leave, arrivals and jobs that became ready enter, samples start, then the method has its turn."""

from __future__ import annotations

import numpy as np

from gantline.core.jit import kernel
from gantline.policies.allox.artifact import world as at
from gantline.policies.allox.artifact.world import World, append, fits, release, start
from gantline.policies.allox.ways import Ints


@kernel
def advance(w: World) -> bool:
    """Go to the next second in which something happens, and start samples there; whether full jobs may be scheduled in it.

    At the end, when nothing runs and nothing is to come, the clock is set to infinity.
    """
    now = np.inf
    for i in range(w.counts[at.RUNNING]):
        now = min(now, w.ends[w.running[i]])
    if w.counts[at.NEXT] < w.jobs:
        now = min(now, w.arrival[w.counts[at.NEXT]])
    if now == np.inf:
        w.clock[0] = now
        return False
    w.clock[0] = max(w.clock[0], now)
    w.counts[at.EVENTS] += 1
    remove_ended(w)
    while w.counts[at.NEXT] < w.jobs and w.arrival[w.counts[at.NEXT]] <= w.clock[0]:
        admit(w, w.counts[at.NEXT])
        w.counts[at.NEXT] += 1
    return start_samples(w)


@kernel
def remove_ended(w: World) -> None:
    """Tasks that end by now leave in the order in which they started; the last sample of a group makes its jobs ready."""
    kept = 0
    for i in range(w.counts[at.RUNNING]):
        task = w.running[i]
        if w.ends[task] > w.clock[0]:
            w.running[kept] = task
            kept += 1
            continue
        release(w, task)
        if w.sample[task] < 0:
            w.finish[task] = w.clock[0]
            w.counts[at.FINISHED] += 1
            continue
        group = w.group[task]
        w.samples_left[group] -= 1
        if w.samples_left[group] == 0:
            job = w.group_first[group]
            while job < w.jobs and w.group[job] == group:
                append(w, job)
                job += 1
    w.counts[at.RUNNING] = kept


@kernel
def admit(w: World, job: int) -> None:
    """Queue a job, or its four samples while the job waits for those of everyone who arrived with it."""
    if w.owner.size == w.jobs:
        append(w, job)
        return
    for sample in range(w.jobs + 4 * job, w.jobs + 4 * job + 4):
        append(w, sample)
    w.samples_left[w.group[job]] += 4


@kernel
def start_samples(w: World) -> bool:
    """Start samples round by round; False if both kinds met one that does not fit, which ends the event.

    Round r looks at each user's r-th sample among those still queued, so every start makes the next round step over one.
    """
    users = w.length.size
    if w.owner.size == w.jobs:
        return True
    waiting, first, count = w.lists[0], w.lists[1], w.lists[2]
    list_samples(w, waiting, first, count)
    closed_cpu = closed_gpu = False
    r = 0
    looked = True
    while looked:
        looked = False
        for user in range(users):
            if r >= count[user]:
                continue
            looked = True
            task = waiting[first[user] + r]
            kind = w.sample[task]
            if (kind == at.CPU and closed_cpu) or (kind == at.GPU and closed_gpu):
                continue
            if fits(w, task, kind):
                start(w, task, kind, task)
                for i in range(first[user] + r, first[user] + count[user] - 1):
                    waiting[i] = waiting[i + 1]
                count[user] -= 1
            elif kind == at.CPU:
                closed_cpu = True
            else:
                closed_gpu = True
            if closed_cpu and closed_gpu:
                return False
        r += 1
    return True


@kernel
def list_samples(w: World, waiting: Ints, first: Ints, count: Ints) -> None:
    """The samples that wait, user by user in queue order; where each user's begin and how many there are."""
    found = 0
    for user in range(w.length.size):
        first[user] = found
        for i in range(w.offset[user], w.offset[user] + w.length[user]):
            if w.sample[w.queue[i]] >= 0:
                waiting[found] = w.queue[i]
                found += 1
        count[user] = found - first[user]
