"""Newcomers one by one: admitted into what the others leave free, else with all jobs planned anew, else refused with an offer."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled, kernel
from gantline.systems.elasticflow.policies.booking import CLOSE, FULL, Book, boundary, hold, keep, least, open_map, walk

#: Plans that one decision may make to find earlier deadlines to offer; then offers are what is left beside the plans that stand.
_SEARCH = 40_000
NO, YES = 0, 1


@compiled
def admit_each(b: Book, order: Ints, known: int, newcomers: Ints, now: float, offer: Floats) -> int:
    """Admit each newcomer that can be in time without making another job late; returns the number of admitted jobs, or FULL.

    order: the `known` jobs admitted so far, by deadline, with room for all; it grows. The book holds their plans; a job without one is late
    already. offer: NaN for a newcomer that is admitted, else the earliest deadline that would do.
    """
    planned, search = 0, _SEARCH
    for k in range(known):
        planned += b.plan_count[order[k]] > 0
    untidy = False  # whether a plan was put into what was left, not in order of deadlines
    for job in newcomers:
        n, used = b.used[0], b.used[1]
        if used + n + 4 > b.plan_t.size or 2 * n + 16 > b.free_t.size:
            return FULL
        count, finish = least(b, job, now, -1, b.free_t, b.free_v, n, b.plan_t[used:], b.plan_v[used:])
        if count > 0:
            b.used[0], b.used[1] = keep(b, job, n, used, count, finish)
            _insert(b, order, known, job)
            untidy = True
        else:
            verdict = NO
            if _soonest(b, job, now) <= b.deadline[job] + CLOSE:
                _insert(b, order, known, job)
                verdict = _replan(b, order, known + 1, planned + 1, job, now, True)
                if verdict == NO:
                    _remove(order, known, job)
            if verdict == FULL:
                return FULL
            if verdict == NO:
                offer[job], search = _offer(b, order, known, planned, job, now, search)
                continue
            untidy = False
        known, planned = known + 1, planned + 1
    if untidy and _replan(b, order, known, planned, -1, now, True) == FULL:
        return FULL
    return known


@kernel
def _insert(b: Book, order: Ints, known: int, job: int) -> None:
    """Put a job into its place by deadline, behind equals."""
    place = known
    while place > 0 and b.deadline[order[place - 1]] > b.deadline[job]:
        order[place] = order[place - 1]
        place -= 1
    order[place] = job


@kernel
def _remove(order: Ints, known: int, job: int) -> None:
    """Take a job out again; `known` others stay."""
    place = 0
    while order[place] != job:
        place += 1
    for k in range(place, known):
        order[k] = order[k + 1]


@kernel
def _soonest(b: Book, job: int, now: float) -> float:
    """When a job could end with all of the cluster to itself and nothing lost."""
    best = np.inf
    for entry in range(b.first[job], b.top[job] + 1):
        best = min(best, now + b.left[job] / b.rate[entry])
    return best


@compiled
def _offer(b: Book, order: Ints, known: int, planned: int, job: int, now: float, search: int) -> tuple[float, int]:
    """The earliest deadline that would be accepted, in slots (or seconds) before what is free allows; plans that may still be made."""
    asked, best = b.deadline[job], np.inf
    for entry in range(b.first[job], b.top[job] + 1):
        _, finish = walk(b, job, now, -1, entry, b.free_t, b.free_v, b.used[0], b.scratch_t[0], b.scratch_v[0])
        best = min(best, finish)
    best = max(boundary(best, b.grid), asked)
    unit = b.grid if b.grid > 0.0 else 1.0
    floor = max(asked, _soonest(b, job, now) - CLOSE)
    good, bad = 0, 1  # so many units earlier
    if best - floor < 1e15 * unit:
        bad = int((best - floor) / unit) + 1
    while bad - good > 1 and search > known:
        middle = (good + bad) // 2
        b.deadline[job] = best - middle * unit
        _insert(b, order, known, job)
        if _replan(b, order, known + 1, planned + 1, job, now, False) == YES:
            good = middle
        else:
            bad = middle
        _remove(order, known, job)
        search -= known + 1
    b.deadline[job] = asked
    return best - good * unit, search


@compiled
def _replan(b: Book, order: Ints, known: int, wanted: int, newcomer: int, now: float, stay: bool) -> int:
    """Plan all from nothing: whether as many as wanted are in time, the newcomer among them. If not, or not to stay, nothing changes."""
    n, used = b.used[0], b.used[1]
    free_t, free_v, plan_t, plan_v = b.free_t[:n].copy(), b.free_v[:n].copy(), b.plan_t[:used].copy(), b.plan_v[:used].copy()
    first, count, finish, end = b.plan_first.copy(), b.plan_count.copy(), b.finish.copy(), b.end.copy()
    verdict = _plan_by_deadline(b, order, known, wanted, newcomer, now)
    if verdict == NO or not stay:
        b.free_t[:n], b.free_v[:n], b.plan_t[:used], b.plan_v[:used] = free_t, free_v, plan_t, plan_v
        b.plan_first[:], b.plan_count[:], b.finish[:], b.end[:] = first, count, finish, end
        b.used[0], b.used[1] = n, used
    return verdict


@kernel
def _plan_by_deadline(b: Book, order: Ints, known: int, wanted: int, newcomer: int, now: float) -> int:
    n, used, late = open_map(b, now), 0, 0
    b.plan_count[:] = 0
    for k in range(known):
        job = order[k]
        if used + n + 4 > b.plan_t.size or 2 * n + 16 > b.free_t.size:
            return FULL
        n = hold(b, job, now, n, -b.held[job])
        count, finish = least(b, job, now, -1, b.free_t, b.free_v, n, b.plan_t[used:], b.plan_v[used:])
        if count > 0:
            n, used = keep(b, job, n, used, count, finish)
            continue
        n = hold(b, job, now, n, b.held[job])
        late += 1
        if job == newcomer or known - late < wanted:
            return NO
    b.used[0], b.used[1] = n, used
    return YES
