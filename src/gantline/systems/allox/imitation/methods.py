"""IRFsim's baselines: each fills the pool at one event, with the slips of the original (docs/design/irfsim.md)."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.systems.allox.imitation.clock import advance
from gantline.systems.allox.imitation.world import (
    ARRIVAL,
    CAPACITY,
    CPU,
    EVENTS,
    GPU,
    LENGTH,
    LOGGED,
    MEMORY,
    NEEDS_MEMORY,
    NOW,
    OFFSET,
    QUEUE,
    REPORTED,
    SAMPLE,
    SCORE,
    SCRATCH,
    UNITS,
    USED,
    World,
    first_job,
    fits,
    preempt_jobs,
    sort_by,
    sort_queue,
    start,
)

DRF_FIFO, DRF, DRF_EXTENDED, EQUAL_SHARE, SJF, SRPT = 0, 1, 2, 3, 4, 5
FULL, DONE, BROKEN, PAUSED = 0, 1, 2, 3


@kernel
def run_method(
    w: World, pause: int, method: int, weight: Floats, number: Floats, on_cpu: Floats, on_gpu: Floats, shortest: Floats
) -> int:  # fmt: skip
    """Run until nothing is left to do, the log is nearly full, or so many events have been.

    ``number`` holds the memory of a node and how many cores a GPU counts as; then come the reported times per task.
    """
    while w.counts[LOGGED] + w.tasks.shape[1] <= w.log_codes.shape[1]:
        if w.counts[EVENTS] >= pause:
            return PAUSED
        if not advance(w):
            if w.pool[NOW] == np.inf:
                return DONE
            continue
        if method == DRF_FIFO:
            drf_fifo(w, weight, number[0])
        elif method == DRF:
            drf(w, weight, shortest)
        elif method == DRF_EXTENDED:
            drf_extended(w, weight, number[1], on_cpu, on_gpu)
        elif method == EQUAL_SHARE:
            equal_share(w, on_cpu, on_gpu)
        else:
            if method == SRPT:
                preempt_jobs(w)
            start_pairs(w)
    return FULL


@kernel
def poorest(w: World, weight: Floats, beta: float, passed: Ints) -> int:
    """The user with queued tasks and the lowest share, the earlier name if equal; -1: none. With beta, a GPU counts as cores."""
    best, lowest = -1, np.inf
    for user in range(w.queues.shape[1]):
        if w.queues[LENGTH, user] == 0 or passed[user]:
            continue
        cores, gpus, memory = w.users[USED + CPU, user], w.users[USED + GPU, user], w.users[USED + MEMORY, user]
        share = memory / w.pool[CAPACITY + MEMORY]
        if beta > 0.0:
            share = max(share, (cores + beta * gpus) / (w.pool[CAPACITY + CPU] + beta * w.pool[CAPACITY + GPU]))
        else:
            share = max(share, cores / w.pool[CAPACITY + CPU], gpus / w.pool[CAPACITY + GPU])
        share /= weight[user]
        if share < lowest:
            best, lowest = user, share
    return best


@kernel
def drf_fifo(w: World, weight: Floats, whole: float) -> None:
    """GPU only, in order of arrival, a whole node's memory each; the first job that does not fit ends the event."""
    passed = w.lists[SCRATCH + 0]
    passed[: w.queues.shape[1]] = 0
    while True:
        user = poorest(w, weight, 0.0, passed)
        if user < 0:
            return
        job = w.lists[QUEUE, w.queues[OFFSET, user]]
        w.tasks[NEEDS_MEMORY + CPU, job], w.tasks[NEEDS_MEMORY + GPU, job] = whole, whole
        if not fits(w, job, GPU):
            return
        start(w, job, GPU, job)


@kernel
def drf(w: World, weight: Floats, shortest: Floats) -> None:
    """Each job on the device that it reports faster; all queues are sorted when the event begins."""
    passed = w.lists[SCRATCH + 0]
    passed[: w.queues.shape[1]] = 0
    for user in range(w.queues.shape[1]):
        sort_queue(w, user, shortest)
    while True:
        user = poorest(w, weight, 0.0, passed)
        if user < 0:
            return
        job = first_job(w, user)
        if job < 0:
            passed[user] = 1
            continue
        device = CPU if w.tasks[REPORTED + CPU, job] < w.tasks[REPORTED + GPU, job] else GPU
        if not fits(w, job, device):
            return
        start(w, job, device, job)


@kernel
def drf_extended(w: World, weight: Floats, beta: float, on_cpu: Floats, on_gpu: Floats) -> None:
    """GPU first; the fallback starts the CPU-shortest job for the time and with the demand of the GPU-shortest one.

    A queue is sorted only when its user's turn comes, also if it then holds nothing but samples.
    """
    passed = w.lists[SCRATCH + 0]
    passed[: w.queues.shape[1]] = 0
    while True:
        user = poorest(w, weight, beta, passed)
        if user < 0:
            return
        sort_queue(w, user, on_gpu)
        job = first_job(w, user)
        if job < 0:
            passed[user] = 1
            continue
        if fits(w, job, GPU):
            start(w, job, GPU, job)
            continue
        sort_queue(w, user, on_cpu)
        if not fits(w, job, CPU):
            return
        start(w, first_job(w, user), CPU, job)


@kernel
def equal_share(w: World, on_cpu: Floats, on_gpu: Floats) -> None:
    """Two fills per user: by GPU time with no cores at all (the slip), then by CPU time with memory taken off twice.

    The original sorts for each fill. What the first sort leaves shows in draws of the second only, so one sort by both, and
    a search for the first fill's head, come to the same.
    """
    users = w.queues.shape[1]
    cores, gpus, memory = w.pool[CAPACITY + CPU] / users, w.pool[CAPACITY + GPU] / users, w.pool[CAPACITY + MEMORY] / users
    for user in range(users):
        while w.queues[LENGTH, user] > 0:
            head = w.lists[QUEUE, w.queues[OFFSET, user]]
            for i in range(w.queues[OFFSET, user] + 1, w.queues[OFFSET, user] + w.queues[LENGTH, user]):
                if on_gpu[w.lists[QUEUE, i]] < on_gpu[head]:
                    head = w.lists[QUEUE, i]
            if not start_within(w, user, head, 0.0, gpus, memory):
                break
        stable_sort_by_two(w, user, on_cpu, on_gpu)
        memory_left = memory - w.users[USED + MEMORY, user]
        while w.queues[LENGTH, user] > 0 and start_within(w, user, w.lists[QUEUE, w.queues[OFFSET, user]], cores, gpus, memory_left):
            pass


@kernel
def stable_sort_by_two(w: World, user: int, first: Floats, second: Floats) -> None:
    """Sort a queue by two keys, by insertion: but for newcomers it is in that order already."""
    low = w.queues[OFFSET, user]
    mine = w.lists[QUEUE, low : low + w.queues[LENGTH, user]]
    for i in range(1, mine.size):
        task = mine[i]
        at = i
        while at > 0:
            other = mine[at - 1]
            if first[other] < first[task] or (first[other] == first[task] and second[other] <= second[task]):
                break
            mine[at] = other
            at -= 1
        mine[at] = task


@kernel
def start_within(w: World, user: int, task: int, cores: float, gpus: float, memory: float) -> bool:
    """Start a sample or job on the first device within the limits, if the pool has room for that."""
    if within(w, user, task, GPU, gpus, cores, memory):
        device = GPU
    elif within(w, user, task, CPU, cores, gpus, memory):
        device = CPU
    else:
        return False
    if not fits(w, task, device):
        return False
    start(w, task, device, task)
    return True


@kernel
def within(w: World, user: int, task: int, device: int, limit: float, other_limit: float, memory: float) -> bool:
    """Whether the demand is within the limits minus use, in all three resources: also in that of which it wants nothing."""
    return bool(
        w.tasks[UNITS + device, task] <= limit - w.users[USED + device, user]
        and other_limit - w.users[USED + 1 - device, user] >= 0.0
        and w.tasks[NEEDS_MEMORY + device, task] <= memory - w.users[USED + MEMORY, user]
    )


@kernel
def list_pairs(w: World, pairs: Ints) -> int:
    """Pairs of job and device (``2 x task + device``): poorest user first, jobs by arrival, CPU before GPU; how many there are."""
    users = w.lists[SCRATCH + 2][: w.queues.shape[1]]
    for user in range(w.queues.shape[1]):
        sort_queue(w, user, w.tasks[ARRIVAL])
    for user in range(w.queues.shape[1]):
        users[user] = user
    sort_by(users, w.users[SCORE])
    count = 0
    for user in users:
        for i in range(w.queues[OFFSET, user], w.queues[OFFSET, user] + w.queues[LENGTH, user]):
            if w.codes[SAMPLE, w.lists[QUEUE, i]] < 0:
                pairs[count], pairs[count + 1] = 2 * w.lists[QUEUE, i] + CPU, 2 * w.lists[QUEUE, i] + GPU
                count += 2
    return count


@kernel
def start_pairs(w: World) -> None:
    """Start the pairs that are reported shortest, as they fit."""
    order, pairs, time = w.lists[SCRATCH], w.lists[SCRATCH + 1], w.keys[0]
    count = list_pairs(w, pairs)
    for i in range(count):
        order[i], time[i] = i, w.tasks[REPORTED + pairs[i] % 2, pairs[i] // 2]
    sort_by(order[:count], time)
    for i in order[:count]:
        task, device = pairs[i] // 2, pairs[i] % 2
        if task >= 0 and fits(w, task, device):
            start(w, task, device, task)
            pairs[i - i % 2] = pairs[i - i % 2 + 1] = -2
