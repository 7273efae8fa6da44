"""One round of ElasticFlow's planning: the plan of each job in order of deadlines, then spare GPUs step by step."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled, kernel
from gantline.systems.elasticflow.imitation.board import Board, StepMap
from gantline.systems.elasticflow.imitation.plan import NONE, plan_one
from gantline.systems.elasticflow.policies.free import give_back, gpu_seconds

FULL, MISSED, IN_TIME = -1, 0, 1  # what planning answers: no room left for plans, a job is late, all jobs are in time
# rows of `known` and `times`
P_FIRST, P_COUNT, P_GPUS = 0, 1, 2  # where a plan begins, how many entries it has, GPUs now
P_EXACT, P_END = 0, 1


@compiled
def plan_all(b: Board, order: Ints, now: float) -> int:
    """Plan the jobs in the given order, each into what those before it leave free."""
    ft, fv, gt, gv = b.free_t, b.free_v, b.scratch_t[0], b.scratch_v[0]
    ft[0], fv[0], fn, used = now, b.capacity, 1, 0
    verdict = IN_TIME
    for job in order:
        if used + fn + 4 > b.plan_t.size or 2 * fn + 16 > ft.size:
            return FULL
        plan = StepMap(b.plan_t[used:], b.plan_v[used:])
        fn = plan_one(b, job, now, StepMap(ft, fv), fn, NONE, StepMap(gt, gv), plan)
        ft[:fn], fv[:fn] = gt[:fn], gv[:fn]
        used = _note(b, job, used)
        if b.out[3] == 0.0:
            verdict = MISSED
    b.room[0], b.room[1] = fn, used
    return verdict


@kernel
def _note(b: Board, job: int, first: int) -> int:
    """Keep what is known of a plan that begins at `first`; where the next one may begin."""
    count = int(b.out[0])
    b.known[P_FIRST, job], b.known[P_COUNT, job], b.known[P_GPUS, job] = first, count, b.plan_v[first]
    b.times[P_EXACT, job], b.times[P_END, job] = b.out[1], b.out[2]
    return first + count


@compiled
def share_spare(b: Board, order: Ints, now: float, most_first: bool, steps: Ints, ends: Floats) -> int:
    """Give the GPUs away that are free now; `order` is left sorted as the original leaves it.

    steps and ends: the jobs that grew, and when each will end then. Returns the number of steps, or FULL.
    """
    if b.free_v[0] == 0:
        return 0
    added = np.full(b.rem.size, -np.inf)
    taken = 0
    _weigh(b, order, now, most_first, added)
    while b.free_v[0] > 0:
        chosen = -1
        for job in order:
            more = _next_level(b, job)
            if more >= 0 and (1 << more) - b.known[P_GPUS, job] <= b.free_v[0]:
                chosen = job
                break
        if chosen < 0:
            break
        used = b.room[1]
        if used + b.room[0] + 8 > b.plan_t.size or 2 * b.room[0] + 32 > b.free_t.size or taken >= steps.size:
            return FULL
        fn = _grown(b, chosen, now, b.plan_t[used:], b.plan_v[used:])
        b.free_t[:fn], b.free_v[:fn] = b.scratch_t[0, :fn], b.scratch_v[0, :fn]
        b.room[0], b.room[1] = fn, _note(b, chosen, used)
        steps[taken], ends[taken] = chosen, b.out[2]
        taken += 1
        _weigh(b, order, now, most_first, added)
    return taken


@kernel
def _next_level(b: Board, job: int) -> int:
    """The level above what a job has now; -1: it is at its top."""
    have = b.known[P_GPUS, job]
    for level in range(b.top[job] + 1):
        if (1 << level) > have and b.speed[job, level] > 0.0:
            return level
    return -1


@kernel
def _grown(b: Board, job: int, now: float, at: Floats, av: Ints) -> int:
    """Plan a job again with its next level now, its own reservation given back; the map is scratch 0, the plan (at, av)."""
    first, count, end = b.known[P_FIRST, job], b.known[P_COUNT, job], b.times[P_END, job]
    ht, hv = b.scratch_t[1], b.scratch_v[1]
    hn = give_back(b.free_t, b.free_v, b.room[0], b.plan_t[first:], b.plan_v[first:], count, end, ht, hv)
    level = _next_level(b, job)
    return plan_one(b, job, now, StepMap(ht, hv), hn, level, StepMap(b.scratch_t[0], b.scratch_v[0]), StepMap(at, av))


@compiled
def _weigh(b: Board, order: Ints, now: float, most_first: bool, added: Floats) -> None:
    """What GPU-time each job's next step would add per GPU, and the jobs in that order; a job at its largest size keeps its old number."""
    for job in order:
        more = _next_level(b, job)
        if more < 0:
            continue
        step = (1 << more) - b.known[P_GPUS, job]
        if step > b.free_v[0]:
            added[job] = -np.inf
        elif b.known[P_GPUS, job] == 0:
            added[job] = np.inf
        else:
            _grown(b, job, now, b.scratch_t[2], b.scratch_v[2])
            then = gpu_seconds(b.scratch_t[2], b.scratch_v[2], int(b.out[0]), b.out[2])
            first, count = b.known[P_FIRST, job], b.known[P_COUNT, job]
            added[job] = (then - gpu_seconds(b.plan_t[first:], b.plan_v[first:], count, b.times[P_END, job])) / step
    for k in range(1, order.size):  # stable, and nearly sorted after the first time
        job = order[k]
        place = k
        while place > 0 and _before(added[job], added[order[place - 1]], most_first):
            order[place] = order[place - 1]
            place -= 1
        order[place] = job


@kernel
def _before(a: float, b: float, most_first: bool) -> bool:
    """Whether one step goes before another: the most added GPU-time first, or the least; infinite ones stay at their ends."""
    if most_first or np.isinf(a) or np.isinf(b):
        return a > b
    return a < b
