"""IRFsim's cluster and queues as columns: one pool of cores, GPUs and memory, tasks that are jobs or profiling samples.

Compiled, and changed in place: this is a simulator of its own, not a policy. Rows below `jobs` are jobs in the order of the
trace, the four rows from ``jobs + 4 j`` on the samples of job j. A user's queue is a stretch of `queue` in whatever order the
method's last sort left it.
"""

from __future__ import annotations

from math import ceil, floor
from typing import NamedTuple

import numpy as np

from gantline.core.jit import kernel
from gantline.policies.allox.ways import Floats, Ints

CPU, GPU, MEMORY = 0, 1, 2

# counts: what moves
RUNNING, NEXT, LOGGED, FINISHED, EVENTS = 0, 1, 2, 3, 4
COUNTS = 5


class World(NamedTuple):
    """Everything that a run changes, and what it is given."""

    jobs: int
    # per task
    owner: Ints  # users are numbered in the order of their names
    arrival: Floats
    units: Floats  # per device: cores on the CPU, GPUs on the GPU
    memory: Floats  # per device
    true: Floats  # per device, seconds
    reported: Floats  # per device, seconds
    sample: Ints  # the device that a profiling sample is for; -1 for jobs
    group: Ints  # jobs that arrive together: they become ready together
    device: Ints
    machine: Ints  # of those that AlloX started; -1 otherwise
    started: Floats
    first_start: Floats
    runs_for: Floats
    ends: Floats
    holds: Floats  # cores, GPUs, memory
    finish: Floats
    span: Ints  # row of its last interval in the log; -1: none
    # per user
    used: Floats
    score: Floats  # kept by adding and subtracting, so that rounding decides between equal users
    queue: Ints
    offset: Ints
    length: Ints
    # the pool
    capacity: Floats
    free: Floats
    booked: Floats  # per machine, GPUs first: when it is free again by reported times; NaN: it is free
    # the rest
    running: Ints
    group_first: Ints  # per group: its first job
    samples_left: Ints  # per group
    counts: Ints
    clock: Floats
    log_task: Ints
    log_device: Ints
    log_begin: Floats
    log_end: Floats
    lists: Ints  # scratch: three lists as long as there are pairs of task and device
    keys: Floats  # scratch


@kernel
def fits(w: World, task: int, device: int) -> bool:
    """Whether the pool has room, without any tolerance."""
    return bool(w.units[task, device] <= w.free[device] and w.memory[task, device] <= w.free[MEMORY])


@kernel
def progress(w: World, task: int) -> float:
    """What a running job adds to its user's score: its dominant share on the truly faster device, discounted on the slower."""
    fast = CPU if w.true[task, CPU] < w.true[task, GPU] else GPU
    share: float = max(w.units[task, fast] / w.capacity[fast], w.memory[task, fast] / w.capacity[MEMORY])
    if w.device[task] != fast:
        share *= w.true[task, fast] / w.true[task, w.device[task]]
    return share


@kernel
def append(w: World, task: int) -> None:
    """Queue a task behind the others of its user."""
    user = w.owner[task]
    w.queue[w.offset[user] + w.length[user]] = task
    w.length[user] += 1


@kernel
def remove(w: World, task: int) -> None:
    """Take a task out of its user's queue."""
    user = w.owner[task]
    first = w.offset[user]
    at = first
    while w.queue[at] != task:
        at += 1
    for i in range(at, first + w.length[user] - 1):
        w.queue[i] = w.queue[i + 1]
    w.length[user] -= 1


@kernel
def start(w: World, task: int, device: int, like: int) -> None:
    """Run a queued task on a device, with the demand and for the time of the task `like` (itself, but for one slip)."""
    remove(w, task)
    w.running[w.counts[RUNNING]] = task
    w.counts[RUNNING] += 1
    now = w.clock[0]
    w.device[task], w.started[task] = device, now
    if np.isnan(w.first_start[task]):
        w.first_start[task] = now
    if like != task:
        w.units[task, CPU], w.memory[task, CPU] = w.units[like, CPU], w.memory[like, CPU]
    w.runs_for[task] = w.true[like, device]
    w.ends[task] = whole_second(now + w.runs_for[task])
    user = w.owner[task]
    w.holds[task, 1 - device] = 0.0
    w.holds[task, device], w.holds[task, MEMORY] = w.units[task, device], w.memory[task, device]
    for r in range(3):
        w.free[r] -= w.holds[task, r]
        w.used[user, r] += w.holds[task, r]
    if w.sample[task] < 0:
        w.score[user] += progress(w, task)
    write(w, task)


@kernel
def whole_second(time: float) -> float:
    """The first whole second not before a time that is rounded to six decimals."""
    low = floor(time)
    return float(low) if time - low < 5e-7 else float(ceil(time))


@kernel
def write(w: World, task: int) -> None:
    """Log that a task runs from now on; one that was stopped in this instant on the same device just goes on."""
    at = w.span[task]
    if at >= 0 and w.log_end[at] == w.clock[0] and w.log_device[at] == w.device[task]:
        w.log_end[at] = np.nan
        return
    at = w.counts[LOGGED]
    w.counts[LOGGED] += 1
    w.span[task] = at
    w.log_task[at], w.log_device[at], w.log_begin[at], w.log_end[at] = task, w.device[task], w.clock[0], np.nan


@kernel
def release(w: World, task: int) -> None:
    """Give back what a running task holds."""
    user = w.owner[task]
    for r in range(3):
        w.free[r] += w.holds[task, r]
        w.used[user, r] -= w.holds[task, r]
    if w.sample[task] < 0:
        w.score[user] -= progress(w, task)
    if w.machine[task] >= 0:
        w.booked[w.machine[task]] = np.nan
        w.machine[task] = -1
    w.log_end[w.span[task]] = w.clock[0]


@kernel
def preempt_jobs(w: World) -> None:
    """Put all running jobs back at the end of their queues, with their true times shrunk by the part done."""
    kept = 0
    for i in range(w.counts[RUNNING]):
        task = w.running[i]
        if w.sample[task] >= 0:
            w.running[kept] = task
            kept += 1
            continue
        release(w, task)
        left = 1.0 - (w.clock[0] - w.started[task]) / w.runs_for[task]
        w.true[task, CPU] *= left
        w.true[task, GPU] *= left
        append(w, task)
    w.counts[RUNNING] = kept


@kernel
def sort_queue(w: World, user: int, keys: Floats) -> None:
    """Sort one user's queue by a key per task, stably."""
    stable_sort(w.queue[w.offset[user] : w.offset[user] + w.length[user]], keys, w.lists[2])


@kernel
def stable_sort(items: Ints, keys: Floats, spare: Ints) -> None:
    """Sort items by the keys they name: by insertion while few are out of place, else by merging."""
    size = items.size
    falls = 0
    for i in range(1, size):
        falls += keys[items[i]] < keys[items[i - 1]]
    if falls == 0:
        return
    width = size if falls <= 4 else 8
    for first in range(0, size, width):
        for i in range(first + 1, min(first + width, size)):
            item = items[i]
            at = i
            while at > first and keys[items[at - 1]] > keys[item]:
                items[at] = items[at - 1]
                at -= 1
            items[at] = item
    while width < size:
        for first in range(0, size, 2 * width):
            middle, end = min(first + width, size), min(first + 2 * width, size)
            i, j, at = first, middle, first
            while at < end:
                if j == end or (i < middle and keys[items[i]] <= keys[items[j]]):
                    spare[at] = items[i]
                    i += 1
                else:
                    spare[at] = items[j]
                    j += 1
                at += 1
        for i in range(size):
            items[i] = spare[i]
        width *= 2


@kernel
def first_job(w: World, user: int) -> int:
    """The first full job in a user's queue; -1: none."""
    for i in range(w.offset[user], w.offset[user] + w.length[user]):
        task: int = w.queue[i]
        if w.sample[task] < 0:
            return task
    return -1
