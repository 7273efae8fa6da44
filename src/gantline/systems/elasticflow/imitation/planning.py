"""How ElasticFlow's artifact plans: the plan of one job, of all jobs in order of deadlines, spare GPUs, and EDF; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled, kernel
from gantline.systems.elasticflow.policies.reservations import canonical, ceiling, give_back, gpu_seconds, in_force, put, up

# What ElasticFlow's planning reads and writes, as bundles that compiled functions take.


class StepMap(NamedTuple):
    """A number of GPUs from each breakpoint on."""

    t: Floats
    v: Ints


class PlanState(NamedTuple):
    """Everything planning reads and writes; one column per job of the trace."""

    rem: Floats  # iterations left
    deadline: Floats
    speed: Floats  # per job and level
    top: Ints  # largest level of each job
    capacity: int
    slot: float
    free_t: Floats  # the free map, room[0] breakpoints
    free_v: Ints
    plan_t: Floats  # entries of all plans, room[1] used
    plan_v: Ints
    known: Ints
    times: Floats
    room: Ints
    scratch_t: Floats  # three more maps
    scratch_v: Ints
    out: Floats


# The plan of one job: the least GPUs that meet its deadline, filled from the deadline backwards, as ElasticFlow's artifact does it.
#
# A level is the exponent of a table size (GPUs = 2**level), -1 for none; `speed[job, level]` is in iterations per second, `top[job]` the
# largest level a job may have. A plan is GPUs from each of its breakpoints on.

NONE = -1  # no forced level


@kernel
def gpus_of(level: int) -> int:
    """GPUs of a level."""
    return 1 << level if level >= 0 else 0


@kernel
def level_within(speed: Floats, top: Ints, job: int, gpus: int) -> int:
    """The largest level of a job that so many GPUs allow; -1: none."""
    level: int = top[job]
    while level >= 0 and ((1 << level) > gpus or not speed[job, level] > 0.0):
        level -= 1
    return level


@kernel
def plan_one(b: PlanState, job: int, now: float, free: StepMap, fn: int, forced: int, after: StepMap, plan: StepMap) -> int:
    """Plan a job into the free map of ``fn`` breakpoints, which stays; ``after`` becomes the map after it, ``plan`` its plan.

    Returns the number of breakpoints of the map; ``b.out``: [entries of the plan, exact end, end, whether in time].
    """
    rem, deadline, slot, capacity, speed, top, out = b.rem[job], b.deadline[job], b.slot, b.capacity, b.speed, b.top, b.out
    (ft, fv), (gt, gv), (at, av) = free, after, plan
    end = up(deadline, now, slot)
    gn = 0
    for k in range(fn):
        gt[k], gv[k] = ft[k], fv[k]
    gn = fn
    if end >= now:
        where = in_force(gt, gn, end)
        if gt[where] != end:
            gn = put(gt, gv, gn, end, gv[where])
    begin, count = now, 0
    if forced >= 0:
        following = ft[1] if fn > 1 else end
        exact = ceiling(now + rem / speed[job, forced])
        last = up(exact, now, slot)
        at[0], av[0], count = now, 1 << forced, 1
        gv[0] -= 1 << forced
        if last <= following and exact <= deadline:
            gn = _release(ft, fn, gt, gv, gn, last, fv[0])
            return _finish(gt, gv, gn, at, av, count, exact, last, deadline, out)
        rem -= ((deadline if following == end else following) - now) * speed[job, forced]
        begin = following
    largest = level_within(speed, top, job, capacity)
    first = in_force(gt, gn, begin)
    stop = in_force(gt, gn, end) if end >= now else 0  # the breakpoint at the deadline
    before = -1
    for level in range(largest + 1):
        if not speed[job, level] > 0.0:
            continue
        done = 0.0
        start = -1
        for k in range(stop - 1, first - 1, -1):
            a = min(level, level_within(speed, top, job, gv[k]))
            if a >= 0:
                done += ((deadline if k + 1 == stop else gt[k + 1]) - gt[k]) * speed[job, a]
                if done >= rem:
                    start = k
                    break
        if start < 0:
            before = level
            continue
        for k in range(first, stop):
            a = min(level if k >= start else before, level_within(speed, top, job, gv[k]))
            at[count], av[count] = gt[k], gpus_of(a)
            count += 1
            if a < 0:
                continue
            gv[k] -= 1 << a
            work = ((deadline if k + 1 == stop else gt[k + 1]) - gt[k]) * speed[job, a]
            if work >= rem:
                seconds = ceiling(rem / speed[job, a])
                exact, last = gt[k] + seconds, gt[k] + ceiling(seconds / slot) * slot
                for later in range(k + 1, stop):
                    at[count], av[count] = gt[later], 0
                    count += 1
                left = fv[in_force(ft, fn, last)]
                if ft[in_force(ft, fn, last)] == last and in_force(ft, fn, last) > 0:
                    left = fv[in_force(ft, fn, last) - 1]
                gn = _release(ft, fn, gt, gv, gn, last, left)
                return _finish(gt, gv, gn, at, av, count, exact, last, deadline, out)
            rem -= work
    # no level is enough: all it can have until the deadline, then on until it is done
    for k in range(first, stop):
        a = min(largest, level_within(speed, top, job, gv[k]))
        at[count], av[count] = gt[k], gpus_of(a)
        count += 1
        if a >= 0:
            gv[k] -= 1 << a
            rem -= ((deadline if k + 1 == stop else gt[k + 1]) - gt[k]) * speed[job, a]
    k = in_force(gt, gn, max(end, begin))
    while k + 1 < gn:
        a = level_within(speed, top, job, gv[k])
        at[count], av[count] = gt[k], gpus_of(a)
        count += 1
        if a >= 0:
            work = (gt[k + 1] - gt[k]) * speed[job, a]
            left = gv[k]
            gv[k] -= 1 << a
            if work >= rem:
                exact = ceiling(gt[k] + rem / speed[job, a])
                last = up(exact, now, slot)
                gn = _release(ft, fn, gt, gv, gn, last, left)
                return _finish(gt, gv, gn, at, av, count, exact, last, deadline, out)
            rem -= work
        k += 1
    a = largest if forced < 0 else forced
    exact = ceiling(gt[k] + rem / speed[job, a])
    last = up(exact, now, slot)
    at[count], av[count] = gt[k], 1 << a
    count += 1
    gv[k] = capacity - (1 << a)
    gn = put(gt, gv, gn, last, capacity)
    return _finish(gt, gv, gn, at, av, count, exact, last, deadline, out)


@kernel
def _release(ft: Floats, fn: int, gt: Floats, gv: Ints, gn: int, end: float, free: int) -> int:
    """From its end on a job's GPUs are free again, unless the map had a breakpoint there."""
    if ft[in_force(ft, fn, end)] == end:
        return gn
    return put(gt, gv, gn, end, free)


@kernel
def _finish(gt: Floats, gv: Ints, gn: int, at: Floats, av: Ints, count: int, exact: float, end: float, deadline: float, out: Floats) -> int:
    out[0] = canonical(at, av, count)
    out[1], out[2] = exact, end
    out[3] = 1.0 if exact <= deadline else 0.0
    return canonical(gt, gv, gn)


# One round of ElasticFlow's planning: the plan of each job in order of deadlines, then spare GPUs step by step.

FULL, MISSED, IN_TIME = -1, 0, 1  # what planning answers: no room left for plans, a job is late, all jobs are in time
# rows of `known` and `times`
P_FIRST, P_COUNT, P_GPUS = 0, 1, 2  # where a plan begins, how many entries it has, GPUs now
P_EXACT, P_END = 0, 1


@compiled
def plan_all(b: PlanState, order: Ints, now: float) -> int:
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
def _note(b: PlanState, job: int, first: int) -> int:
    """Keep what is known of a plan that begins at `first`; where the next one may begin."""
    count = int(b.out[0])
    b.known[P_FIRST, job], b.known[P_COUNT, job], b.known[P_GPUS, job] = first, count, b.plan_v[first]
    b.times[P_EXACT, job], b.times[P_END, job] = b.out[1], b.out[2]
    return first + count


@compiled
def share_spare(b: PlanState, order: Ints, now: float, most_first: bool, steps: Ints, ends: Floats) -> int:
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
def _next_level(b: PlanState, job: int) -> int:
    """The level above what a job has now; -1: it is at its top."""
    have = b.known[P_GPUS, job]
    for level in range(b.top[job] + 1):
        if (1 << level) > have and b.speed[job, level] > 0.0:
            return level
    return -1


@kernel
def _grown(b: PlanState, job: int, now: float, at: Floats, av: Ints) -> int:
    """Plan a job again with its next level now, its own reservation given back; the map is scratch 0, the plan (at, av)."""
    first, count, end = b.known[P_FIRST, job], b.known[P_COUNT, job], b.times[P_END, job]
    ht, hv = b.scratch_t[1], b.scratch_v[1]
    hn = give_back(b.free_t, b.free_v, b.room[0], b.plan_t[first:], b.plan_v[first:], count, end, ht, hv)
    level = _next_level(b, job)
    return plan_one(b, job, now, StepMap(ht, hv), hn, level, StepMap(b.scratch_t[0], b.scratch_v[0]), StepMap(at, av))


@compiled
def _weigh(b: PlanState, order: Ints, now: float, most_first: bool, added: Floats) -> None:
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


# Earliest deadline first as ElasticFlow's artifact plans it: each job as wide as it may be, in what those before it leave.


@compiled
def plan_by_deadline(b: PlanState, order: Ints, now: float) -> int:
    """Plan the jobs in the given order; a plan has an end and the GPUs of its first interval only."""
    t, v = b.free_t, b.free_v
    t[0], v[0], n = now, b.capacity, 1
    verdict = IN_TIME
    for job in order:
        if n + 8 > t.size:
            return FULL
        n, end = _plan(b, job, now, t, v, n)
        b.times[P_END, job] = end
        if end > b.deadline[job]:
            verdict = MISSED
    return verdict


@compiled
def _plan(b: PlanState, job: int, now: float, t: Floats, v: Ints, n: int) -> tuple[int, float]:
    rem, base = b.rem[job], level_within(b.speed, b.top, job, b.capacity)
    b.known[P_GPUS, job] = 0
    for k in range(n - 1):
        a = level_within(b.speed, b.top, job, v[k])
        if a < 0:
            continue
        if k == 0:
            b.known[P_GPUS, job] = gpus_of(a)
        end = ceiling(t[k] + rem / b.speed[job, a])
        free = v[k]
        v[k] -= gpus_of(a)
        if end <= t[k + 1]:
            if t[in_force(t, n, end)] != end:
                n = put(t, v, n, up(end, now, b.slot), free)
            return canonical(t, v, n), end
        rem -= (t[k + 1] - t[k]) * b.speed[job, a]
    k = n - 1
    if k == 0:
        b.known[P_GPUS, job] = gpus_of(base)
    end = ceiling(t[k] + rem / b.speed[job, base])
    v[k] = b.capacity - gpus_of(base)
    n = put(t, v, n, up(end, now, b.slot), b.capacity)
    return canonical(t, v, n), end
