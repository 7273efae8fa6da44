"""IRFsim's cluster and queues as columns: one pool of cores, GPUs and memory, tasks that are jobs or profiling samples.

Compiled, and changed in place: this is a simulator of its own, not a policy. Rows below `jobs` are jobs in the order of the
trace, the four rows from ``jobs + 4 j`` on the samples of job j. A user's queue is a stretch of `queue` in whatever order the
method's last sort left it.
"""

from __future__ import annotations

from math import ceil, floor
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled, kernel

CPU, GPU, MEMORY = 0, 1, 2

# tasks: float columns; from UNITS on there is a row per device, from HOLDS on a row per resource
ARRIVAL, STARTED, FIRST_START, RUNS_FOR, ENDS, FINISH = 0, 1, 2, 3, 4, 5
UNITS, NEEDS_MEMORY, TRUE, REPORTED = 6, 8, 10, 12  # cores or GPUs, GB, true and reported seconds
HOLDS = 14  # cores, GPUs and memory that it holds while it runs
TASK_COLUMNS = 17
# codes: integer columns of tasks
OWNER = 0  # users are numbered in the order of their names
SAMPLE = 1  # the device that a profiling sample is for; -1 for jobs
GROUP = 2  # jobs that arrive together become ready together
DEVICE = 3
MACHINE = 4  # of those that AlloX started; -1 otherwise
SPAN = 5  # its last interval in the log; -1: none
CODE_COLUMNS = 6
# users: float columns
USED, SCORE = 0, 3  # the score is kept by adding and subtracting, so that rounding decides between equal users
USER_COLUMNS = 4
# queues: where a user's stretch of the list QUEUE begins, and how long it is
OFFSET, LENGTH = 0, 1
# pool: cores, GPUs and memory in all and free, and the time
CAPACITY, FREE, NOW = 0, 3, 6
# counts: what moves
RUNNING, NEXT, LOGGED, FINISHED, EVENTS = 0, 1, 2, 3, 4
COUNTS = 5
# lists: of tasks that wait and that run, per group its first job and the samples it waits for, and three to work with
QUEUE, RUNS, GROUP_FIRST, SAMPLES_LEFT, SCRATCH = 0, 1, 2, 3, 4
LISTS = 7


class World(NamedTuple):
    """Everything that a run changes, and what it is given. Few matrices rather than many columns: that compiles four times as fast."""

    jobs: int
    tasks: Floats
    codes: Ints
    users: Floats
    queues: Ints
    pool: Floats
    counts: Ints
    lists: Ints
    keys: Floats  # to work with: two numbers per pair of task and device
    booked: Floats  # per machine, GPUs first: when it is free again by reported times; NaN: it is free
    log_codes: Ints  # task and device of each interval
    log_times: Floats  # its begin and end


@kernel
def fits(w: World, task: int, device: int) -> bool:
    """Whether the pool has room, without any tolerance."""
    return bool(w.tasks[UNITS + device, task] <= w.pool[FREE + device] and w.tasks[NEEDS_MEMORY + device, task] <= w.pool[FREE + MEMORY])


@kernel
def progress(w: World, task: int) -> float:
    """What a running job adds to its user's score: its dominant share on the truly faster device, discounted on the slower."""
    fast = CPU if w.tasks[TRUE + CPU, task] < w.tasks[TRUE + GPU, task] else GPU
    share: float = w.tasks[UNITS + fast, task] / w.pool[CAPACITY + fast]
    share = max(share, w.tasks[NEEDS_MEMORY + fast, task] / w.pool[CAPACITY + MEMORY])
    here = w.tasks[TRUE + w.codes[DEVICE, task], task]
    if w.codes[DEVICE, task] != fast and here > 0.0:  # nothing is left of one that was stopped at its very end
        share *= w.tasks[TRUE + fast, task] / here
    return share


@kernel
def append(w: World, task: int) -> None:
    """Queue a task behind the others of its user."""
    user = w.codes[OWNER, task]
    w.lists[QUEUE, w.queues[OFFSET, user] + w.queues[LENGTH, user]] = task
    w.queues[LENGTH, user] += 1


@kernel
def remove(w: World, task: int) -> None:
    """Take a task out of its user's queue."""
    user = w.codes[OWNER, task]
    first = w.queues[OFFSET, user]
    at = first
    while w.lists[QUEUE, at] != task:
        at += 1
    for i in range(at, first + w.queues[LENGTH, user] - 1):
        w.lists[QUEUE, i] = w.lists[QUEUE, i + 1]
    w.queues[LENGTH, user] -= 1


@kernel
def start(w: World, task: int, device: int, like: int) -> None:
    """Run a queued task on a device, with the demand and for the time of the task `like` (itself, but for one slip)."""
    remove(w, task)
    w.lists[RUNS, w.counts[RUNNING]] = task
    w.counts[RUNNING] += 1
    now = w.pool[NOW]
    w.codes[DEVICE, task], w.tasks[STARTED, task] = device, now
    if np.isnan(w.tasks[FIRST_START, task]):
        w.tasks[FIRST_START, task] = now
    if like != task:
        w.tasks[UNITS + CPU, task], w.tasks[NEEDS_MEMORY + CPU, task] = w.tasks[UNITS + CPU, like], w.tasks[NEEDS_MEMORY + CPU, like]
    w.tasks[RUNS_FOR, task] = w.tasks[TRUE + device, like]
    w.tasks[ENDS, task] = whole_second(now + w.tasks[RUNS_FOR, task])
    user = w.codes[OWNER, task]
    w.tasks[HOLDS + (1 - device), task] = 0.0
    w.tasks[HOLDS + device, task], w.tasks[HOLDS + MEMORY, task] = w.tasks[UNITS + device, task], w.tasks[NEEDS_MEMORY + device, task]
    for r in range(3):
        w.pool[FREE + r] -= w.tasks[HOLDS + r, task]
        w.users[USED + r, user] += w.tasks[HOLDS + r, task]
    if w.codes[SAMPLE, task] < 0:
        w.users[SCORE, user] += progress(w, task)
    write(w, task)


@kernel
def whole_second(time: float) -> float:
    """The first whole second not before a time that is rounded to six decimals."""
    low = floor(time)
    return float(low) if time - low < 5e-7 else float(ceil(time))


@kernel
def write(w: World, task: int) -> None:
    """Log that a task runs from now on; one that was stopped in this instant on the same device just goes on."""
    at = w.codes[SPAN, task]
    if at >= 0 and w.log_times[1, at] == w.pool[NOW] and w.log_codes[1, at] == w.codes[DEVICE, task]:
        w.log_times[1, at] = np.nan
        return
    at = w.counts[LOGGED]
    w.counts[LOGGED] += 1
    w.codes[SPAN, task] = at
    w.log_codes[0, at], w.log_codes[1, at] = task, w.codes[DEVICE, task]
    w.log_times[0, at], w.log_times[1, at] = w.pool[NOW], np.nan


@kernel
def release(w: World, task: int) -> None:
    """Give back what a running task holds."""
    user = w.codes[OWNER, task]
    for r in range(3):
        w.pool[FREE + r] += w.tasks[HOLDS + r, task]
        w.users[USED + r, user] -= w.tasks[HOLDS + r, task]
    if w.codes[SAMPLE, task] < 0:
        w.users[SCORE, user] -= progress(w, task)
    if w.codes[MACHINE, task] >= 0:
        w.booked[w.codes[MACHINE, task]] = np.nan
        w.codes[MACHINE, task] = -1
    w.log_times[1, w.codes[SPAN, task]] = w.pool[NOW]


@kernel
def preempt_jobs(w: World) -> None:
    """Put all running jobs back at the end of their queues, with their true times shrunk by the part done."""
    kept = 0
    for i in range(w.counts[RUNNING]):
        task = w.lists[RUNS, i]
        if w.codes[SAMPLE, task] >= 0:
            w.lists[RUNS, kept] = task
            kept += 1
            continue
        release(w, task)
        left = 1.0 - (w.pool[NOW] - w.tasks[STARTED, task]) / w.tasks[RUNS_FOR, task] if w.tasks[RUNS_FOR, task] > 0.0 else 0.0
        w.tasks[TRUE + CPU, task] *= left
        w.tasks[TRUE + GPU, task] *= left
        append(w, task)
    w.counts[RUNNING] = kept


@kernel
def sort_queue(w: World, user: int, keys: Floats) -> None:
    """Sort one user's queue by a key per task, stably."""
    first = w.queues[OFFSET, user]
    sort_by(w.lists[QUEUE, first : first + w.queues[LENGTH, user]], keys)


@compiled
def sort_by(items: Ints, keys: Floats) -> None:
    """Sort items by the keys that they name; those with equal keys stay in the order they have."""
    items[:] = items[np.argsort(keys[items], kind="mergesort")]


@kernel
def first_job(w: World, user: int) -> int:
    """The first full job in a user's queue; -1: none."""
    for i in range(w.queues[OFFSET, user], w.queues[OFFSET, user] + w.queues[LENGTH, user]):
        task: int = w.lists[QUEUE, i]
        if w.codes[SAMPLE, task] < 0:
            return task
    return -1
