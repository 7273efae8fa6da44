"""IRFsim's AlloX: one matching per started job, by the original's solver so that equals fall the same way."""

from __future__ import annotations

from math import ceil

import numpy as np
import numpy.typing as npt
from tests.oracles.irfsim import CPU, GPU, IRFsim, Task

MOST_JOBS = 50


def allox(sim: IRFsim) -> None:
    """Match the jobs of the users with the lowest scores; widen the choice of users when nothing could start."""
    alpha = sim.alpha
    active = [user for user in sim.users.values() if user.first_job is not None]
    while sim.free[CPU] >= sim.cores_per_node or sim.free[GPU] >= 1:
        active.sort(key=lambda user: user.score)  # in place: equal users stay as the last matching of this event found them
        chosen = active[: min(len(active), ceil(alpha * len(active)))]
        jobs = choose([job for user in chosen for job in user.jobs])
        if jobs and start_one(sim, jobs):
            continue
        if alpha > 1:
            return
        alpha *= 2


def choose(jobs: list[Task]) -> list[Task]:
    """The shortest on either device, taken in turns up to the size limit, in the order of a hash table of their ids."""
    by_gpu = sorted(jobs, key=lambda job: job.reported[GPU])
    by_cpu = sorted(jobs, key=lambda job: job.reported[CPU])
    chosen: dict[Task, None] = {}
    for on_gpu, on_cpu in zip(by_gpu, by_cpu):
        chosen[on_gpu] = chosen[on_cpu] = None
        if len(chosen) >= MOST_JOBS:
            break
    size = 16
    while len(chosen) > 0.75 * size:
        size *= 2
    return sorted(chosen, key=lambda job: job.number % size)


def start_one(sim: IRFsim, jobs: list[Task]) -> bool:
    """Solve, and start the head of the list of the highest-numbered machine that is free and not held by a sample."""
    kinds = [GPU] * sim.gpus + [CPU] * sim.nodes
    machines = range(len(kinds))
    avail = [sim.now if until is None else max(sim.now, until) for until in sim.busy_until]
    slots = [[(avail[i] - job.arrival) + k * job.reported[kinds[i]] for job in jobs] for k in range(1, len(jobs) + 1) for i in machines]
    column = match(np.array(slots))
    lists: list[list[Task]] = [[] for _ in machines]
    for slot in reversed(range(len(slots))):
        if column[slot] < len(jobs):
            lists[slot % len(kinds)].append(jobs[column[slot]])

    free = [i for i in machines if sim.busy_until[i] is None]
    for device in (CPU, GPU):
        samples = sum(task.sample == device for task in sim.running)
        held = [i for i in free if kinds[i] == device][:samples]
        free = [i for i in free if i not in held]
    for i in reversed(free):
        if lists[i]:
            assert sim.fits(lists[i][0], kinds[i]), "the original loops for ever when memory is short"
            sim.start(lists[i][0], kinds[i], machine=i)
            until = sim.now
            for job in lists[i]:
                until += job.reported[kinds[i]]
            sim.busy_until[i] = until
            return True
    return False


def match(slots: npt.NDArray[np.float64]) -> list[int]:
    """The column of each row in a least-cost matching, with the original's choice among equals.

    Zero columns make the matrix square, column minima are taken off, every row takes its first free zero, and each
    row left over, in order, grows an alternating tree by the column of least slack.
    """
    size, jobs = slots.shape
    cost = np.zeros((size, size))
    cost[:, :jobs] = slots - slots.min(axis=0)
    row_label, column_label = np.zeros(size), np.zeros(size)
    column_of, row_of = np.full(size, -1), np.full(size, -1)
    for row in range(size):
        zeros = np.flatnonzero((cost[row] == 0) & (row_of < 0))
        if zeros.size:
            column_of[row], row_of[zeros[0]] = zeros[0], row
    for root in np.flatnonzero(column_of < 0):
        in_tree = np.zeros(size, dtype=bool)
        in_tree[root] = True
        parent, nearest = np.full(size, -1), np.full(size, root)
        slack = cost[root] - row_label[root] - column_label
        while True:
            column = int(np.where(parent < 0, slack, np.inf).argmin())
            step = slack[column]
            if step > 0:
                row_label[in_tree] += step
                column_label[parent >= 0] -= step
                slack[parent < 0] -= step
            parent[column] = nearest[column]
            row = row_of[column]
            if row < 0:
                break
            in_tree[row] = True
            reach = cost[row] - row_label[row] - column_label
            closer = (parent < 0) & (reach < slack)
            slack[closer], nearest[closer] = reach[closer], row
        while column >= 0:
            row = parent[column]
            column_of[row], row_of[column], column = column, row, column_of[row]
    return [int(column) for column in column_of]
