"""IRFsim's baselines: each fills the pool at one event, with the slips of the original (docs/design/irfsim.md)."""

from __future__ import annotations

import numpy as np

from gantline.core.jit import kernel
from gantline.policies.allox.artifact.clock import advance
from gantline.policies.allox.artifact.sort import BROKEN as SORT_BROKEN
from gantline.policies.allox.artifact.sort import java_sort
from gantline.policies.allox.artifact.world import (
    CPU,
    GPU,
    LOGGED,
    MEMORY,
    World,
    first_job,
    fits,
    preempt_jobs,
    sort_queue,
    stable_sort,
    start,
)
from gantline.policies.allox.ways import Floats, Ints

DRF_FIFO, DRF, DRF_EXTENDED, EQUAL_SHARE, SJF, SRPT, ALLOX_PLUS = 0, 1, 2, 3, 4, 5, 6
FULL, DONE, BROKEN = 0, 1, 2


@kernel
def run_method(w: World, method: int, weight: Floats, number: Floats, on_cpu: Floats, on_gpu: Floats, shortest: Floats, rest: Ints) -> int:
    """Run until nothing is left to do, the log is nearly full, or Java's sort gives up.

    ``number`` holds the memory of a node, how many cores a GPU counts as, and the age from which jobs go first; then come the
    reported times per task.
    """
    while w.counts[LOGGED] + w.running.size <= w.log_task.size:
        if not advance(w):
            if w.clock[0] == np.inf:
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
        elif method == ALLOX_PLUS:
            if not allox_plus(w, number[2], rest):
                return BROKEN
        else:
            if method == SRPT:
                preempt_jobs(w)
            start_pairs(w)
    return FULL


@kernel
def poorest(w: World, weight: Floats, beta: float, passed: Ints) -> int:
    """The user with queued tasks and the lowest share, the earlier name if equal; -1: none. With beta, a GPU counts as cores."""
    best, lowest = -1, np.inf
    for user in range(w.length.size):
        if w.length[user] == 0 or passed[user]:
            continue
        share = w.used[user, MEMORY] / w.capacity[MEMORY]
        if beta > 0.0:
            cores = (w.used[user, CPU] + beta * w.used[user, GPU]) / (w.capacity[CPU] + beta * w.capacity[GPU])
            share = max(share, cores)
        else:
            share = max(share, w.used[user, CPU] / w.capacity[CPU], w.used[user, GPU] / w.capacity[GPU])
        share /= weight[user]
        if share < lowest:
            best, lowest = user, share
    return best


@kernel
def drf_fifo(w: World, weight: Floats, whole: float) -> None:
    """GPU only, in order of arrival, a whole node's memory each; the first job that does not fit ends the event."""
    passed = w.lists[0]
    passed[: w.length.size] = 0
    while True:
        user = poorest(w, weight, 0.0, passed)
        if user < 0:
            return
        job = w.queue[w.offset[user]]
        w.memory[job, CPU], w.memory[job, GPU] = whole, whole
        if not fits(w, job, GPU):
            return
        start(w, job, GPU, job)


@kernel
def drf(w: World, weight: Floats, shortest: Floats) -> None:
    """Each job on the device that it reports faster; all queues are sorted when the event begins."""
    passed = w.lists[0]
    passed[: w.length.size] = 0
    for user in range(w.length.size):
        sort_queue(w, user, shortest)
    while True:
        user = poorest(w, weight, 0.0, passed)
        if user < 0:
            return
        job = first_job(w, user)
        if job < 0:
            passed[user] = 1
            continue
        device = CPU if w.reported[job, CPU] < w.reported[job, GPU] else GPU
        if not fits(w, job, device):
            return
        start(w, job, device, job)


@kernel
def drf_extended(w: World, weight: Floats, beta: float, on_cpu: Floats, on_gpu: Floats) -> None:
    """GPU first; the fallback starts the CPU-shortest job for the time and with the demand of the GPU-shortest one.

    A queue is sorted only when its user's turn comes, also if it then holds nothing but samples.
    """
    passed = w.lists[0]
    passed[: w.length.size] = 0
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
    users = w.length.size
    cores, gpus, memory = w.capacity[CPU] / users, w.capacity[GPU] / users, w.capacity[MEMORY] / users
    for user in range(users):
        while w.length[user] > 0:
            head = w.queue[w.offset[user]]
            for i in range(w.offset[user] + 1, w.offset[user] + w.length[user]):
                if on_gpu[w.queue[i]] < on_gpu[head]:
                    head = w.queue[i]
            if not start_within(w, user, head, 0.0, gpus, memory):
                break
        stable_sort_by_two(w, user, on_cpu, on_gpu)
        memory_left = memory - w.used[user, MEMORY]
        while w.length[user] > 0 and start_within(w, user, w.queue[w.offset[user]], cores, gpus, memory_left):
            pass


@kernel
def stable_sort_by_two(w: World, user: int, first: Floats, second: Floats) -> None:
    """Sort a queue by two keys, by insertion: but for newcomers it is in that order already."""
    low = w.offset[user]
    for i in range(low + 1, low + w.length[user]):
        task = w.queue[i]
        at = i
        while at > low and (
            first[w.queue[at - 1]] > first[task] or (first[w.queue[at - 1]] == first[task] and second[w.queue[at - 1]] > second[task])
        ):
            w.queue[at] = w.queue[at - 1]
            at -= 1
        w.queue[at] = task


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
        w.units[task, device] <= limit - w.used[user, device]
        and other_limit - w.used[user, 1 - device] >= 0.0
        and w.memory[task, device] <= memory - w.used[user, MEMORY]
    )


@kernel
def list_pairs(w: World, pairs: Ints) -> int:
    """Pairs of job and device (``2 x task + device``): poorest user first, jobs by arrival, CPU before GPU; how many there are."""
    users = w.lists[2][: w.length.size]
    for user in range(w.length.size):
        sort_queue(w, user, w.arrival)
    for user in range(w.length.size):
        users[user] = user
    stable_sort(users, w.score, w.lists[2][w.length.size :])
    count = 0
    for user in users:
        for i in range(w.offset[user], w.offset[user] + w.length[user]):
            if w.sample[w.queue[i]] < 0:
                pairs[count], pairs[count + 1] = 2 * w.queue[i] + CPU, 2 * w.queue[i] + GPU
                count += 2
    return count


@kernel
def start_pairs(w: World) -> None:
    """Start the pairs that are reported shortest, as they fit."""
    order, pairs = w.lists[0], w.lists[1]
    count = list_pairs(w, pairs)
    for i in range(count):
        order[i], w.keys[i] = i, w.reported[pairs[i] // 2, pairs[i] % 2]
    stable_sort(order[:count], w.keys, w.lists[2])
    for i in order[:count]:
        task, device = pairs[i] // 2, pairs[i] % 2
        if task >= 0 and fits(w, task, device):
            start(w, task, device, task)
            pairs[i - i % 2] = pairs[i - i % 2 + 1] = -2


@kernel
def allox_plus(w: World, age: float, rest: Ints) -> bool:
    """One pair at a time, long-waiting jobs first, then by whole seconds of difference in Java's sort; False: that gives up."""
    pairs = w.lists[0]
    while True:
        count = list_pairs(w, pairs)
        fitting = 0
        for pair in pairs[:count]:
            fitting += fits(w, pair // 2, pair % 2)
        if fitting == 0:
            return True
        if java_sort(w, pairs[:count], age, w.lists[1], w.lists[2], rest) == SORT_BROKEN:
            return False
        for pair in pairs[:count]:
            if fits(w, pair // 2, pair % 2):
                start(w, pair // 2, pair % 2, pair // 2)
                break
