"""IRFsim's equal share and extended DRF, with their slips; each returns what starts and the order of the queues afterwards."""

from __future__ import annotations

from gantline.policies.allox.artifact.queued import CPU, GPU, Queued, Start, flat, room
from gantline.policies.allox.shares import Worth, dominant_share
from gantline.policies.allox.ways import Floats, Ints, Pool


def equal_share(queued: Queued, pool: Pool) -> tuple[list[Start], Ints]:
    """Two fills per user: by GPU time with a limit of no cores at all, then by CPU time with memory taken off twice."""
    free, used = pool.free.copy(), pool.used.copy()
    part = pool.capacity / len(used)
    queues = queued.queues()
    starts: list[Start] = []

    def fill(user: int, limit: Floats) -> None:
        """Start the head, sample or job, on the first device within the limit; a full cluster ends the fill."""
        queue = queues[user]
        while queue:
            head = queue[0]
            inside = [d for d in (GPU, CPU) if room(queued.need[head, d], limit - used[user])]
            if not inside or not room(queued.need[head, inside[0]], free):
                return
            need = queued.need[head, inside[0]]
            free[:] -= need
            used[user] += need
            starts.append(Start(queue.pop(0), inside[0]))

    for user, queue in enumerate(queues):
        queue.sort(key=lambda row: float(queued.time[row, GPU]))
        limit = part.copy()
        limit[CPU] = 0.0
        fill(user, limit)
        queue.sort(key=lambda row: float(queued.time[row, CPU]))
        limit = part.copy()
        limit[2] -= used[user, 2]
        fill(user, limit)
    return starts, flat(queues)


def drf_extended(queued: Queued, pool: Pool, worth: Worth) -> tuple[list[Start], Ints]:
    """If a user's GPU-shortest job finds no GPU, its CPU-shortest job starts with the other's CPU demand and time.

    The first job that does not fit either way ends the event. A queue is sorted only when its user's turn comes.
    """
    free, used = pool.free.copy(), pool.used.copy()
    queues = queued.queues()
    passed = {user for user, queue in enumerate(queues) if not queue}
    starts: list[Start] = []

    def share(user: int) -> float:
        return dominant_share(used[user], pool.capacity, worth.group, worth.value) / float(pool.weight[user])

    while len(passed) < len(queues):
        user = min((u for u in range(len(queues)) if u not in passed), key=share)
        queue = queues[user]
        queue.sort(key=lambda row: float(queued.time[row, GPU]))
        job = next(queued.jobs(queue), -1)
        if job < 0:
            passed.add(user)
            continue
        start = Start(job, GPU, like=job)
        if not room(queued.need[job, GPU], free):
            queue.sort(key=lambda row: float(queued.time[row, CPU]))
            start = Start(next(queued.jobs(queue)), CPU, like=job)
            if not room(queued.need[job, CPU], free):
                break
        need = queued.need[job, start.device]
        free -= need
        used[user] += need
        queue.remove(start.row)
        starts.append(start)
        if not queue:
            passed.add(user)
    return starts, flat(queues)
