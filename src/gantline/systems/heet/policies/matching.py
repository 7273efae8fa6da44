"""Free devices find jobs by minimum-weight full matching: first jobs that wait, then jobs that would grow.

One side are jobs, the other slots, groups of 1, 2, 4 or 8 free devices of a type (more where a job needs more at least). A waiting job
is matched at the price that it would then have, fully: as many as possible, at the least total. One that runs is matched at the change
of its price, and only if that falls. Rounds are repeated until nothing changes.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from gantline.systems.heet.policies.prices import Prices
from gantline.systems.heet.policies.ways import Way

_SLOT = 8
_NEVER = 1e15


def match(prices: Prices, grants: dict[int, Way], free: list[int], fixed: set[int]) -> None:
    """Hand out what is free, in place."""
    while _round(prices, grants, free, [job for job in prices.table if job not in grants and job not in fixed], growing=False):
        pass
    while _round(prices, grants, free, [job for job in grants if job in prices.table and job not in fixed], growing=True):
        pass


def _round(prices: Prices, grants: dict[int, Way], free: list[int], jobs: list[int], growing: bool) -> bool:
    """One matching; says whether anything was granted."""
    slots = _slots(prices, free, jobs, grants if growing else {})
    if not jobs or not slots:
        return False
    cost = np.full((len(jobs), len(slots)), _NEVER)
    choice: dict[tuple[int, int], Way] = {}
    for i, job in enumerate(jobs):
        for kind, size in set(slots):
            way = best_way(prices, job, kind, size, grants.get(job) if growing else None)
            if way is not None:
                weight = prices.of(job, way) - (prices.of(job, grants[job]) if growing else 0.0)
                for j in [j for j, slot in enumerate(slots) if slot == (kind, size)]:
                    cost[i, j] = weight
                    choice[i, j] = way
    if growing:
        cost = np.concatenate([np.minimum(cost, 0.0), np.zeros((len(jobs), len(jobs)))], axis=1)  # or stay as one is
    granted = False
    for i, j in zip(*(side.tolist() for side in linear_sum_assignment(cost))):
        if (i, j) in choice and cost[i, j] < (-1e-9 if growing else _NEVER):
            kind, count = choice[i, j]
            more = count - (grants[jobs[i]][1] if growing else 0)
            if more <= free[kind]:
                grants[jobs[i]] = choice[i, j]
                free[kind] -= more
                granted = True
    return granted


def best_way(prices: Prices, job: int, kind: int, room: int, held: Way | None) -> Way | None:
    """The cheapest way of a job on one type with so many devices more than it has; None: there is none."""
    if held is not None and held[0] != kind:
        return None
    have = held[1] if held is not None else 0
    able = [(price, way) for way, price in prices.table[job].items() if way[0] == kind and have < way[1] <= have + room]
    return min(able)[1] if able else None


def _slots(prices: Prices, free: list[int], jobs: list[int], held: dict[int, Way]) -> list[Way]:
    """Groups of free devices: powers of two up to eight, and one large enough for a job that needs more than any of them."""
    found: list[Way] = []
    for kind, room in enumerate(free):
        needs = [_step(prices, job, kind, held.get(job)) for job in jobs]
        usual = min(_SLOT, 1 << (room.bit_length() - 1)) if room > 0 else 0
        odd = usual if not any(0 < need <= usual for need in needs) else _SLOT  # three devices are not two slots where all three are needed
        large = min((need for need in needs if odd < need <= room), default=0)
        if large:
            found.append((kind, large))
            room -= large
        while room > 0 and len(found) < 4 * len(jobs) + 4:
            size = min(_SLOT, 1 << (room.bit_length() - 1))
            found.append((kind, size))
            room -= size
    return found


def _step(prices: Prices, job: int, kind: int, held: Way | None) -> int:
    """The fewest devices that would help a job on that type; zero: none would."""
    have = held[1] if held is not None and held[0] == kind else 0
    more = [count - have for k, count in prices.table[job] if k == kind and count > have]
    return min(more) if more and (held is None or held[0] == kind) else 0
