"""IRFsim's baseline methods: each fills the cluster at one event, with the slips of the original."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.oracles.irfsim import CPU, GPU, WHOLE_NODE_MEMORY, IRFsim, Task, User
from tests.oracles.java_sort import java_sorted

AGED = 500.0
Pair = tuple[Task, int]


def by_min_time(task: Task) -> float:
    return min(task.reported)


def by_gpu_time(task: Task) -> float:
    return task.reported[GPU]


def by_cpu_time(task: Task) -> float:
    return task.reported[CPU]


def dominant_share(sim: IRFsim, user: User) -> float:
    return max(use / whole for use, whole in zip(user.used, sim.capacity))


def extended_share(sim: IRFsim, user: User) -> float:
    """Dominant share with a GPU counted as ``beta`` cores."""
    cores, gpus, memory = user.used
    all_cores, all_gpus, all_memory = sim.capacity
    return max((cores + sim.beta * gpus) / (all_cores + sim.beta * all_gpus), memory / all_memory)


def poorest(sim: IRFsim, share: Callable[[IRFsim, User], float], but: set[str] | None = None) -> User | None:
    """The user with queued tasks and the lowest share, the earlier name if equal."""
    users = [user for user in sim.users.values() if user.queue and user.name not in (but or ())]
    return min(users, key=partial(share, sim), default=None)


def drf_fifo(sim: IRFsim) -> None:
    """GPU only, in order of arrival, a whole node's memory each; the first job that does not fit ends the event."""
    while (user := poorest(sim, dominant_share)) is not None:
        job = user.queue[0]
        job.memory = (WHOLE_NODE_MEMORY, WHOLE_NODE_MEMORY)
        if not sim.fits(job, GPU):
            return
        sim.start(job, GPU)


def drf(sim: IRFsim) -> None:
    """Each job on the device that it reports faster; all queues are sorted when the event begins."""
    for user in sim.users.values():
        user.queue.sort(key=by_min_time)
    passed: set[str] = set()
    while (user := poorest(sim, dominant_share, passed)) is not None:
        job = user.first_job
        if job is None:
            passed.add(user.name)
            continue
        device = CPU if job.reported[CPU] < job.reported[GPU] else GPU
        if not sim.fits(job, device):
            return
        sim.start(job, device)


def drf_ext(sim: IRFsim) -> None:
    """GPU first; the fallback starts the CPU-shortest job for the time and with the demand of the GPU-shortest one.

    A queue is sorted only when its user's turn comes, also if it then holds nothing but samples.
    """
    passed: set[str] = set()
    while (user := poorest(sim, extended_share, passed)) is not None:
        user.queue.sort(key=by_gpu_time)
        job = user.first_job
        if job is None:
            passed.add(user.name)
            continue
        if sim.fits(job, GPU):
            sim.start(job, GPU)
            continue
        user.queue.sort(key=by_cpu_time)
        other = user.first_job
        assert other is not None
        if not sim.fits(job, CPU):
            return
        other.units = (job.units[CPU], other.units[GPU])
        other.memory = (job.memory[CPU], other.memory[GPU])
        other.ran_as = (job.true[CPU], job.true[GPU])
        sim.start(other, CPU)


def equal_share(sim: IRFsim, *, repaired: bool = False) -> None:
    """Two fills per user: in GPU order with no cores at all (the slip), then in CPU order with what memory is left."""
    cores, gpus, memory = (whole / len(sim.users) for whole in sim.capacity)
    for user in sim.users.values():
        user.queue.sort(key=by_gpu_time)
        fill(sim, user, (user.used[CPU] if repaired else 0.0, gpus, memory))
        user.queue.sort(key=by_cpu_time)
        fill(sim, user, (cores, gpus, memory if repaired else memory - user.used[2]))


def fill(sim: IRFsim, user: User, limit: tuple[float, float, float]) -> None:
    """Start the head, sample or job, on the first device within the limit, while one is and the cluster has room."""
    while user.queue:
        head = user.queue[0]
        for device in (GPU, CPU):
            demand = sim.demand(head, device)
            if all(need <= most - use for need, most, use in zip(demand, limit, user.used)):
                break
        else:
            return
        if not sim.room(demand):
            return
        sim.start(head, device)


def pairs(sim: IRFsim) -> list[Pair]:
    """Poorest user first, jobs by arrival (not by when their samples ended), CPU before GPU."""
    for user in sim.users.values():
        user.queue.sort(key=lambda task: task.arrival)
    return [(job, device) for user in sim.users_by_score() for job in user.jobs for device in (CPU, GPU)]


def reported(pair: Pair) -> float:
    job, device = pair
    return job.reported[device]


def sjf(sim: IRFsim) -> None:
    """The shortest (job, device) pair that fits, on a slow device too."""
    started: set[Task] = set()
    for job, device in sorted(pairs(sim), key=reported):
        if job not in started and sim.fits(job, device):
            sim.start(job, device)
            started.add(job)


def srpt(sim: IRFsim) -> None:
    """Preempt every job, then as SJF: by total reported time, since preemption shrinks the true times only."""
    for task in [task for task in sim.running if task.sample is None]:
        sim.preempt(task)
    sjf(sim)


def allox_plus(sim: IRFsim) -> None:
    """One pair at a time, long-waiting jobs first, then by whole seconds of difference in Java's sort."""

    def compare(a: Pair, b: Pair) -> int:
        a_aged, b_aged = sim.now - a[0].arrival >= AGED, sim.now - b[0].arrival >= AGED
        if a_aged != b_aged:
            return -1 if a_aged else 1
        return int(reported(a) - reported(b))

    while any(sim.fits(*pair) for pair in pairs(sim)):
        sim.start(*next(pair for pair in java_sorted(pairs(sim), compare) if sim.fits(*pair)))
