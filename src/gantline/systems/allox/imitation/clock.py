"""IRFsim's clock: ended tasks leave, arrivals and jobs that became ready enter, samples start, then the method has its turn."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.jit import kernel
from gantline.systems.allox.imitation.world import (
    ARRIVAL,
    CPU,
    ENDS,
    EVENTS,
    FINISH,
    FINISHED,
    GPU,
    GROUP,
    GROUP_FIRST,
    LENGTH,
    NEXT,
    NOW,
    OFFSET,
    QUEUE,
    RUNNING,
    RUNS,
    SAMPLE,
    SAMPLES_LEFT,
    SCRATCH,
    World,
    append,
    fits,
    release,
    start,
)


@kernel
def advance(w: World) -> bool:
    """Go to the next second in which something happens, and start samples there; whether full jobs may be scheduled in it.

    At the end, when nothing runs and nothing is to come, the clock is set to infinity.
    """
    now = np.inf
    for i in range(w.counts[RUNNING]):
        now = min(now, w.tasks[ENDS, w.lists[RUNS, i]])
    if w.counts[NEXT] < w.jobs:
        now = min(now, w.tasks[ARRIVAL, w.counts[NEXT]])
    if now == np.inf:
        w.pool[NOW] = now
        return False
    w.pool[NOW] = max(w.pool[NOW], now)
    w.counts[EVENTS] += 1
    remove_ended(w)
    while w.counts[NEXT] < w.jobs and w.tasks[ARRIVAL, w.counts[NEXT]] <= w.pool[NOW]:
        admit(w, w.counts[NEXT])
        w.counts[NEXT] += 1
    return start_samples(w)


@kernel
def remove_ended(w: World) -> None:
    """Tasks that end by now leave in the order in which they started; the last sample of a group makes its jobs ready."""
    kept = 0
    for i in range(w.counts[RUNNING]):
        task = w.lists[RUNS, i]
        if w.tasks[ENDS, task] > w.pool[NOW]:
            w.lists[RUNS, kept] = task
            kept += 1
            continue
        release(w, task)
        if w.codes[SAMPLE, task] < 0:
            w.tasks[FINISH, task] = w.pool[NOW]
            w.counts[FINISHED] += 1
            continue
        group = w.codes[GROUP, task]
        w.lists[SAMPLES_LEFT, group] -= 1
        if w.lists[SAMPLES_LEFT, group] == 0:
            job = w.lists[GROUP_FIRST, group]
            while job < w.jobs and w.codes[GROUP, job] == group:
                append(w, job)
                job += 1
    w.counts[RUNNING] = kept


@kernel
def admit(w: World, job: int) -> None:
    """Queue a job, or its four samples while the job waits for those of every job that arrived with it."""
    if w.tasks.shape[1] == w.jobs:
        append(w, job)
        return
    for sample in range(w.jobs + 4 * job, w.jobs + 4 * job + 4):
        append(w, sample)
    w.lists[SAMPLES_LEFT, w.codes[GROUP, job]] += 4


@kernel
def start_samples(w: World) -> bool:
    """Start samples round by round; False if both kinds met one that does not fit, which ends the event.

    Round r looks at each user's r-th sample among those still queued, so every start makes the next round step over one.
    """
    users = w.queues.shape[1]
    if w.tasks.shape[1] == w.jobs:
        return True
    waiting, first, count = w.lists[SCRATCH + 0], w.lists[SCRATCH + 1], w.lists[SCRATCH + 2]
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
            kind = w.codes[SAMPLE, task]
            if (kind == CPU and closed_cpu) or (kind == GPU and closed_gpu):
                continue
            if fits(w, task, kind):
                start(w, task, kind, task)
                for i in range(first[user] + r, first[user] + count[user] - 1):
                    waiting[i] = waiting[i + 1]
                count[user] -= 1
            elif kind == CPU:
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
    for user in range(w.queues.shape[1]):
        first[user] = found
        for i in range(w.queues[OFFSET, user], w.queues[OFFSET, user] + w.queues[LENGTH, user]):
            if w.codes[SAMPLE, w.lists[QUEUE, i]] >= 0:
                waiting[found] = w.lists[QUEUE, i]
                found += 1
        count[user] = found - first[user]
