"""Filling a pool: by lowest share, within limits, or the best way anywhere.

Three loops that the baselines share. Each looks for the way with the smallest (tier, key) among those of a user (or of
all), starts it, takes its need off the pool and looks again; the earlier row wins a draw.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import compiled, kernel
from gantline.systems.allox.policies.ways import dominant_share


class FillMisfit(IntEnum):
    """What happens when a user's best way does not fit."""

    SKIP = 0  # the user's next way is tried
    PASS = 1  # the user is passed over
    STOP = 2  # nothing more starts (DRF's algorithm box; IRFsim)


class RankedWays(NamedTuple):
    """Ways of jobs with what they are chosen by: the smallest tier, then the smallest key. ``need`` is [way, resource]."""

    user: Ints
    job: Ints
    tier: Ints
    key: Floats
    need: Floats
    jobs: int  # how many there are


@kernel
def fits(need: Floats, free: Floats) -> bool:
    """Whether every resource suffices, with room for rounding."""
    lacking = 0
    for r in range(free.size):
        lacking += need[r] > free[r] + 1e-9
    return lacking == 0


@kernel
def take(need: Floats, free: Floats) -> None:
    """Leave so much less of every resource."""
    for r in range(free.size):
        free[r] -= need[r]


@compiled
def best_way(who: int, ways: RankedWays, free: Floats, gone: Bools, fitting: bool) -> int:
    """The way with the smallest (tier, key) of a user (-1: of anyone) whose job is not gone; -1 if there is none."""
    user, job, tier, key, need, _ = ways
    best = -1
    for w in range(tier.size):
        if gone[job[w]] or (who >= 0 and user[w] != who):
            continue
        if best >= 0 and (tier[w] > tier[best] or (tier[w] == tier[best] and key[w] >= key[best])):
            continue
        if not fitting or fits(need[w], free):
            best = w
    return best


@compiled
def fill_by_share(
    ways: RankedWays, free: Floats, used: Floats, capacity: Floats, weight: Floats, group: Ints, value: Floats, misfit: int
) -> Ints:
    """Progressive filling: again and again the best way of the user with the lowest share. Returns ways in order."""
    users, need = used.shape[0], ways.need
    free, used = free.copy(), used.copy()
    gone, started = np.zeros(ways.jobs, np.bool_), np.empty(ways.jobs, np.int64)
    share, best = np.empty(users), np.empty(users, np.int64)
    for u in range(users):
        share[u] = dominant_share(used[u], capacity, group, value) / weight[u]
        best[u] = best_way(u, ways, free, gone, misfit == 0)
    count = 0
    while True:
        poorest = -1
        for u in range(users):
            if best[u] >= 0 and (poorest < 0 or share[u] < share[poorest]):
                poorest = u
        if poorest < 0:
            return started[:count]
        w = best[poorest]
        if not fits(need[w], free):
            if misfit == 2:
                return started[:count]
            best[poorest] = best_way(poorest, ways, free, gone, True) if misfit == 0 else -1
            continue
        started[count] = w
        count += 1
        gone[ways.job[w]] = True
        free -= need[w]
        used[poorest] += need[w]
        share[poorest] = dominant_share(used[poorest], capacity, group, value) / weight[poorest]
        best[poorest] = best_way(poorest, ways, free, gone, misfit == 0)


@compiled
def fill_within(ways: RankedWays, free: Floats, used: Floats, limit: Floats) -> Ints:
    """User by user, the best ways that fit both the pool and what is left of the user's limit."""
    free, used = free.copy(), used.copy()
    gone, started = np.zeros(ways.jobs, np.bool_), np.empty(ways.jobs, np.int64)
    count = 0
    for u in range(used.shape[0]):
        while True:
            room = np.minimum(free, limit[u] - used[u])
            w = best_way(u, ways, room, gone, True)
            if w < 0:
                break
            started[count] = w
            count += 1
            gone[ways.job[w]] = True
            free -= ways.need[w]
            used[u] += ways.need[w]
    return started[:count]


@compiled
def fill_best(ways: RankedWays, free: Floats) -> Ints:
    """The best way of anyone, again and again; what does not fit is passed over."""
    free = free.copy()
    gone, started = np.zeros(ways.jobs, np.bool_), np.empty(ways.jobs, np.int64)
    count = 0
    while True:
        w = best_way(-1, ways, free, gone, True)
        if w < 0:
            return started[:count]
        started[count] = w
        count += 1
        gone[ways.job[w]] = True
        free -= ways.need[w]
