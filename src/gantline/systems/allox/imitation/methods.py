"""IRFsim's baselines: each fills the pool at one event, with the slips of the original (docs/design/irfsim.md)."""

from __future__ import annotations

from collections.abc import Container
from operator import attrgetter

from gantline.core.errors import RefusedError
from gantline.systems.allox.imitation.irfsim import CPU, GPU, MEMORY, IRFsim, IrfsimTask, User
from gantline.systems.allox.imitation.java_sort import ContradictoryError, java_sort

Pair = tuple[IrfsimTask, int]


def _least(task: IrfsimTask) -> float:
    return min(task.reported)


def _on_cpu(task: IrfsimTask) -> float:
    return task.reported[CPU]


def _on_gpu(task: IrfsimTask) -> float:
    return task.reported[GPU]


def poorest(sim: IRFsim, passed: Container[int] = (), beta: float = 0.0) -> User | None:
    """The user with queued tasks and the lowest share, the earlier name if equal. With beta, a GPU counts as so many cores."""
    best, lowest = None, float("inf")
    all_cores, all_gpus, all_memory = sim.capacity
    for user in sim.users:
        if not user.queue or id(user) in passed:
            continue
        cores, gpus, memory = user.used
        share = memory / all_memory
        if beta > 0.0:
            share = max(share, (cores + beta * gpus) / (all_cores + beta * all_gpus))
        else:
            share = max(share, cores / all_cores, gpus / all_gpus)
        if share / user.weight < lowest:
            best, lowest = user, share / user.weight
    return best


def drf_fifo(sim: IRFsim, whole: float) -> None:
    """GPU only, in order of arrival, a whole node's memory each; the first job that does not fit ends the event."""
    while (user := poorest(sim)) is not None:
        job = user.queue[0]
        job.memory = [whole, whole]
        if not sim.fits(job, GPU):
            return
        sim.start(job, GPU)


def drf(sim: IRFsim) -> None:
    """Each job on the device that it reports faster; all queues are sorted when the event begins."""
    for user in sim.users:
        user.queue.sort(key=_least)
    passed: set[int] = set()
    while (poor := poorest(sim, passed)) is not None:
        job = poor.first_job
        if job is None:
            passed.add(id(poor))
            continue
        device = CPU if job.reported[CPU] < job.reported[GPU] else GPU
        if not sim.fits(job, device):
            return
        sim.start(job, device)


def drf_extended(sim: IRFsim, beta: float) -> None:
    """GPU first; the fallback starts the CPU-shortest job for the time and with the demand of the GPU-shortest one.

    A queue is sorted only when its user's turn comes, also if it then holds nothing but samples.
    """
    passed: set[int] = set()
    while (user := poorest(sim, passed, beta)) is not None:
        user.queue.sort(key=_on_gpu)
        job = user.first_job
        if job is None:
            passed.add(id(user))
        elif sim.fits(job, GPU):
            sim.start(job, GPU)
        else:
            user.queue.sort(key=_on_cpu)
            if not sim.fits(job, CPU):
                return
            sim.start(user.jobs[0], CPU, like=job)


def equal_share(sim: IRFsim) -> None:
    """Two fills per user: by GPU time with no cores at all (the slip), then by CPU time with memory taken off twice."""
    cores, gpus, memory = (whole / len(sim.users) for whole in sim.capacity)
    for user in sim.users:
        user.queue.sort(key=_on_gpu)
        _fill(sim, user, (0.0, gpus, memory))
        user.queue.sort(key=_on_cpu)
        _fill(sim, user, (cores, gpus, memory - user.used[MEMORY]))


def _fill(sim: IRFsim, user: User, limit: tuple[float, float, float]) -> None:
    """Start the head, sample or job, on the first device within the user's limits, as long as the pool has room for that."""
    while user.queue:
        head, left = user.queue[0], [most - use for most, use in zip(limit, user.used)]
        device = next(
            (
                device
                for device in (GPU, CPU)
                if head.units[device] <= left[device] and left[1 - device] >= 0.0 and head.memory[device] <= left[MEMORY]
            ),
            None,
        )
        if device is None or not sim.fits(head, device):
            return
        sim.start(head, device)


def _pairs(sim: IRFsim) -> list[Pair]:
    """Pairs of job and device: poorest user first, jobs by arrival (not by when their samples ended), CPU before GPU."""
    for user in sim.users:
        user.queue.sort(key=attrgetter("arrival"))
    return [(job, device) for user in sorted(sim.users, key=attrgetter("score")) for job in user.jobs for device in (CPU, GPU)]


def _reported(pair: Pair) -> float:
    return pair[0].reported[pair[1]]


def shortest_pair(sim: IRFsim) -> None:
    """The shortest pair that fits, on a slow device too (SJF)."""
    started: set[IrfsimTask] = set()
    for job, device in sorted(_pairs(sim), key=_reported):
        if job not in started and sim.fits(job, device):
            sim.start(job, device)
            started.add(job)


def shortest_remaining_pair(sim: IRFsim) -> None:
    """Preempt every job, then as SJF: by total reported time, since preemption shrinks the true times only (SRPT)."""
    sim.preempt_jobs()
    shortest_pair(sim)


def allox_plus(sim: IRFsim, age: float) -> None:
    """One pair at a time, long-waiting jobs first, then by whole seconds of difference, which is not transitive, in Java's sort."""

    def before(one: Pair, other: Pair) -> bool:
        old, other_old = sim.now - one[0].arrival >= age, sim.now - other[0].arrival >= age
        return old if old != other_old else _reported(one) - _reported(other) <= -1.0

    while any(sim.fits(*pair) for pair in _pairs(sim)):
        pairs = _pairs(sim)
        try:
            java_sort(pairs, before)
        except ContradictoryError:
            raise RefusedError(
                "AlloXPlus' comparison contradicts itself, and the original would end here", where="--regime irfsim"
            ) from None
        sim.start(*next(pair for pair in pairs if sim.fits(*pair)))
