"""Earliest deadline first as ElasticFlow's artifact plans it: each job as wide as it may be, in what those before it leave."""

from __future__ import annotations

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled
from gantline.systems.elasticflow.imitation.board import Board
from gantline.systems.elasticflow.imitation.plan import gpus_of, level_within
from gantline.systems.elasticflow.imitation.share import FULL, IN_TIME, MISSED, P_END, P_GPUS
from gantline.systems.elasticflow.policies.free import canonical, ceiling, in_force, put, up


@compiled
def plan_by_deadline(b: Board, order: Ints, now: float) -> int:
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
def _plan(b: Board, job: int, now: float, t: Floats, v: Ints, n: int) -> tuple[int, float]:
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
