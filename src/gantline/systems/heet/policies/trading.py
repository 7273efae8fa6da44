"""Opportunistic trading: a running job hands devices over, or two exchange what they have.

A trade is made if the sum of prices falls by more than the restarts that it takes; the best first.
"""

from __future__ import annotations

from collections.abc import Iterator

from gantline.systems.heet.policies.matching import best_way
from gantline.systems.heet.policies.prices import Prices
from gantline.systems.heet.policies.ways import Way

Trade = tuple[float, dict[int, Way]]  # gain, new ways


def trade(prices: Prices, grants: dict[int, Way], free: list[int], fixed: set[int], restart: float, most: int) -> int:
    """Up to so many trades, the best first, in place; how many were made."""
    for made in range(most):
        gain, change = max(_trades(prices, grants, free, fixed, restart), key=lambda one: one[0], default=(0.0, {}))
        if gain <= 1e-9:
            return made
        for job, way in change.items():
            if job in grants:
                free[grants[job][0]] += grants[job][1]
            free[way[0]] -= way[1]
            grants[job] = way
    return most


def _trades(prices: Prices, grants: dict[int, Way], free: list[int], fixed: set[int], restart: float) -> Iterator[Trade]:
    donors = [job for job in grants if job in prices.table and job not in fixed]
    waiting = [job for job in prices.table if job not in grants and job not in fixed and prices.table[job]]
    for donor in donors:
        kind, count = grants[donor]
        below = [way for way in prices.table[donor] if way[0] == kind and way[1] < count]
        if below:  # hand over: the donor shrinks a step
            smaller = max(below)
            loss = prices.of(donor, smaller) - prices.of(donor, grants[donor]) + restart
            room = free[kind] + count - smaller[1]
            for other in [*waiting, *(job for job in donors if job != donor and grants[job][0] == kind)]:
                way = best_way(prices, other, kind, room, grants.get(other))
                if way is not None:
                    pays = restart if other in grants else 0.0
                    yield prices.of(other, grants.get(other)) - prices.of(other, way) - loss - pays, {donor: smaller, other: way}
        for other in donors:  # exchange
            if other > donor and grants[other] != grants[donor]:
                mine, yours = grants[donor], grants[other]
                if yours in prices.table[donor] and mine in prices.table[other]:
                    gain = prices.of(donor, mine) + prices.of(other, yours) - prices.of(donor, yours) - prices.of(other, mine)
                    yield gain - 2 * restart, {donor: yours, other: mine}
