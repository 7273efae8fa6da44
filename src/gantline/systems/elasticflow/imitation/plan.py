"""The plan of one job: the least GPUs that meet its deadline, filled from the deadline backwards, as ElasticFlow's artifact does it.

A level is the exponent of a table size (GPUs = 2**level), -1 for none; `speed[job, level]` is in iterations per second, `top[job]` the
largest level a job may have. A plan is GPUs from each of its breakpoints on.
"""

from __future__ import annotations

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.systems.elasticflow.imitation.board import Board, StepMap
from gantline.systems.elasticflow.policies.free import canonical, ceiling, in_force, put, up

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
def plan_one(b: Board, job: int, now: float, free: StepMap, fn: int, forced: int, after: StepMap, plan: StepMap) -> int:
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
