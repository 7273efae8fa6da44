"""Spare GPUs: what no job needs now goes, step by step, to the job whose next step adds least GPU-time per GPU."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled, kernel
from gantline.systems.elasticflow.policies.reservations import (
    CLOSE,
    FULL,
    ReservationTable,
    boundary,
    fits,
    give_back,
    gpu_seconds,
    keep,
    least,
    split,
)


@compiled
def share_spare(b: ReservationTable, order: Ints, now: float, most_first: bool, now_gpus: Ints) -> int:
    """Give away what is free now: a start first, then the step that adds least GPU-time per GPU (or most, as the artifact does).

    A job with a plan is planned again with its next size now, and only if it is still in time and ends sooner; others have their GPUs until
    the next breakpoint. Costs are found again when a job's turn comes, which is when they matter: only that of the job on top of the heap
    changes. `now_gpus`: GPUs of every job now.
    """
    n, steps, waiting = order.size, 0, 0
    cost, found_at, heap = np.empty(n), np.full(n, -1), np.empty(n, np.int64)  # found_at: after how many steps its cost was found
    if b.free_v[0] > 0:
        for k in range(n):
            cost[k], useless = -np.inf, False
            if now_gpus[order[k]] > 0:
                cost[k], useless = _cost(b, order[k], now, now_gpus[order[k]], most_first)
                found_at[k] = 0
            if not useless:
                heap[waiting] = k
                waiting += 1
        for at in range(waiting // 2 - 1, -1, -1):
            _sink(heap, waiting, at, cost)
    while b.free_v[0] > 0 and waiting > 0:
        best = heap[0]
        job = order[best]
        if found_at[best] < steps:
            value, useless = _cost(b, job, now, now_gpus[job], most_first)
            cost[best] = -np.inf if now_gpus[job] == 0 else value
            found_at[best] = steps
            if useless:
                waiting -= 1
                heap[0] = heap[waiting]
            _sink(heap, waiting, 0, cost)
            continue
        entry = _next(b, job, now_gpus[job])
        if b.plan_count[job] == 0:
            if 2 * b.used[0] + 16 > b.free_t.size:
                return FULL
            _lend(b, now, b.size[entry] - now_gpus[job])
        elif not _replan(b, job, now, entry):
            return FULL
        now_gpus[job] = b.size[entry]
        steps += 1
    return 0


@kernel
def _sink(heap: Ints, count: int, at: int, cost: Floats) -> None:
    """Let an entry of the heap down to where it belongs: the least cost is on top, of equal ones the first in order."""
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and _before(cost, heap[child + 1], heap[child]):
            child += 1
        if not _before(cost, heap[child], heap[at]):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@kernel
def _before(cost: Floats, k: int, other: int) -> bool:
    return bool(cost[k] < cost[other] or (cost[k] == cost[other] and k < other))


@kernel
def _next(b: ReservationTable, job: int, gpus: int) -> int:
    """The entry above what a job has; top + 1: there is none."""
    entry = int(b.first[job])
    while entry <= b.top[job] and b.size[entry] <= gpus:
        entry += 1
    return entry


@kernel
def _room(b: ReservationTable, now: float) -> int:
    """What is free for a whole run, as short as one may be, that begins now."""
    room, until = b.free_v[0], boundary(now + b.soon + b.min_run, b.grid)
    for k in range(1, b.used[0]):
        if b.free_t[k] < until - CLOSE:
            room = min(room, b.free_v[k])
    return int(room)


@kernel
def _lend(b: ReservationTable, now: float, gpus: int) -> None:
    """Let a job without a plan have them: until the next breakpoint, or for as long as it cannot be made to give them up."""
    if b.min_run > 0.0:
        until = boundary(now + b.soon + b.min_run, b.grid)
        b.used[0] = split(b.free_t, b.free_v, b.used[0], until)
        for k in range(1, b.used[0]):
            if b.free_t[k] < until - CLOSE:
                b.free_v[k] -= gpus
    b.free_v[0] -= gpus


@kernel
def _cost(b: ReservationTable, job: int, now: float, gpus: int, most_first: bool) -> tuple[float, bool]:
    """GPU-time that the next step adds per GPU, and whether the step is useless."""
    entry = _next(b, job, gpus)
    if entry > b.top[job] or b.size[entry] - gpus > b.free_v[0]:
        return 0.0, True
    step = b.size[entry] - gpus
    if b.plan_count[job] == 0:
        if b.min_run > 0.0 and (b.bound[job] > now + CLOSE or step > _room(b, now)):
            return 0.0, True
        if gpus == 0:
            return 0.0, False
        here = fits(b.first[job], b.top[job], b.size, gpus)
        added = b.left[job] * (b.size[entry] / b.rate[entry] - gpus / b.rate[here])
    else:
        first, count = b.plan_first[job], b.plan_count[job]
        own_t, own_v = b.plan_t[first : first + count], b.plan_v[first : first + count]
        m = give_back(b.free_t, b.free_v, b.used[0], own_t, own_v, count, b.end[job], b.scratch_t[1], b.scratch_v[1])
        at, av = b.scratch_t[2], b.scratch_v[2]
        found, finish = least(b, job, now, entry, b.scratch_t[1], b.scratch_v[1], m, at, av)
        if found == 0 or finish >= b.finish[job] - CLOSE:
            return 0.0, True
        added = gpu_seconds(at, av, found, boundary(finish, b.grid)) - gpu_seconds(own_t, own_v, count, b.end[job])
    return (-added if most_first else added) / step, False


@compiled
def _replan(b: ReservationTable, job: int, now: float, entry: int) -> bool:
    """Give a job its next size now, and plan the rest of it again; False: no room."""
    first, count, used = b.plan_first[job], b.plan_count[job], b.used[1]
    own_t, own_v = b.plan_t[first : first + count], b.plan_v[first : first + count]
    m = give_back(b.free_t, b.free_v, b.used[0], own_t, own_v, count, b.end[job], b.scratch_t[1], b.scratch_v[1])
    if used + m + 4 > b.plan_t.size or 2 * m + 16 > b.free_t.size:
        return False
    b.free_t[:m], b.free_v[:m] = b.scratch_t[1, :m], b.scratch_v[1, :m]
    found, finish = least(b, job, now, entry, b.free_t, b.free_v, m, b.plan_t[used:], b.plan_v[used:])
    b.used[0], b.used[1] = keep(b, job, m, used, found, finish)
    return True
