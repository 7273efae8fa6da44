"""What an AllReduce costs: GenModel's five terms (arXiv 2409.04202), closed forms of the usual plans, and the best plan.

    T = A alpha + B beta + C gamma + D delta + max(w - threshold, 0) B epsilon

A rounds, B data that the busiest server sends or receives, C additions, D memory accesses, w how many pieces meet at one server (its own
among them). Reducing k pieces at once reads k and writes one, so that a large fan-in saves memory accesses; beyond the threshold senders
collide (incast), charged level by level with the data of the level. The two cannot both be least.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from gantline.core.errors import UsageError


class Level(NamedTuple):
    """One step down and its mirror image up: rounds, data, additions, memory accesses, fan-in."""

    rounds: int
    data: float
    additions: float
    accesses: float
    fan_in: int


@dataclass(frozen=True)
class CostConstants:
    """Seconds per round, and per unit of data sent, added, accessed, and in excess of the incast threshold."""

    alpha: float
    beta: float
    gamma: float
    delta: float
    epsilon: float
    threshold: int

    def __post_init__(self) -> None:
        for name in ("alpha", "beta", "gamma", "delta", "epsilon", "threshold"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise UsageError(f"{name} is {value:g}", where="constants of AllReduce", fix="a number of zero or more")

    def cost(self, levels: tuple[Level, ...], slowdown: float = 1.0) -> float:
        """Seconds; `slowdown`: how many times slower the links are than those of the constants."""
        total = 0.0
        for level in levels:
            incast = max(level.fan_in - self.threshold, 0) * level.data * self.epsilon
            total += level.rounds * self.alpha + slowdown * (level.data * self.beta + incast)
            total += level.additions * self.gamma + level.accesses * self.delta
        return total


PROTOTYPE = CostConstants(alpha=0.004, beta=0.003, gamma=0.0008, delta=0.0004, epsilon=0.0001, threshold=9)
"""Of a co-author's prototype, in its units of 10^6 elements. It gives bandwidth and additions together, 2 beta + gamma = 0.0068, and
0.0002 of incast per unit received, which is half of what a server sends and receives in both directions."""


@dataclass(frozen=True)
class AllReducePlan:
    """A way to sum up what all servers hold: `direct`, `ring`, `halving-doubling`, `one-server`, or levels such as 6x2."""

    kind: str
    factors: tuple[int, ...] = ()

    def __str__(self) -> str:
        return "x".join(map(str, self.factors)) if self.kind == "levels" else self.kind

    def levels(self, servers: int, size: float) -> tuple[Level, ...]:
        """The counts for so many servers and so much data on each."""
        n, part = servers, size / servers
        if n == 1:
            return ()
        if self.kind == "one-server":
            return (Level(2, 2 * (n - 1) * size, (n - 1) * size, (n + 1) * size, n),)
        if self.kind == "ring":
            return (Level(2 * (n - 1), 2 * (n - 1) * part, (n - 1) * part, 3 * (n - 1) * part, 2),)
        if self.kind == "halving-doubling":
            if n & (n - 1):
                raise UsageError(f"halving and doubling among {n} servers", where="AllReduce", fix="a power of two")
            return tuple(_exchange(2, size / 2**step) for step in range(n.bit_length() - 1))
        factors = (n,) if self.kind == "direct" else self.factors
        if math.prod(factors) != n or min(factors) < 2:
            raise UsageError(f"levels of {self} for {n} servers", where="AllReduce", fix="factors of two or more whose product they are")
        found, whole = [], size
        for factor in factors:
            found.append(_exchange(factor, whole))
            whole /= factor
        return tuple(found)


def _exchange(servers: int, size: float) -> Level:
    """Each of a few servers collects its piece of the data from the others, and hands the sum out in the end."""
    part = size / servers
    return Level(2, 2 * (servers - 1) * part, (servers - 1) * part, (servers + 1) * part, servers)


def plans(servers: int) -> Iterator[AllReducePlan]:
    """Direct exchange, every ordered product of factors, the ring, and halving-doubling among a power of two."""
    yield AllReducePlan("direct")
    for factors in _factorisations(servers):
        if len(factors) > 1:
            yield AllReducePlan("levels", factors)
    yield AllReducePlan("ring")
    if servers > 1 and servers & (servers - 1) == 0:
        yield AllReducePlan("halving-doubling")


@cache
def _factorisations(number: int) -> tuple[tuple[int, ...], ...]:
    if number == 1:
        return ((),)
    return tuple((first, *rest) for first in range(2, number + 1) if number % first == 0 for rest in _factorisations(number // first))


def cost_of(plan: AllReducePlan, servers: int, size: float, constants: CostConstants, slowdown: float = 1.0) -> float:
    """Seconds of one AllReduce."""
    return constants.cost(plan.levels(servers, size), slowdown)


def best_plan(servers: int, size: float, constants: CostConstants, slowdown: float = 1.0) -> tuple[AllReducePlan, float]:
    """The cheapest plan and its seconds; of equal ones that with fewer levels."""
    if servers < 1 or not 0.0 < size < math.inf:
        raise UsageError(f"{size:g} units on {servers} servers", where="AllReduce", fix="at least one server, and a size above zero")
    if servers == 1:
        return AllReducePlan("direct"), 0.0
    found = [(cost_of(plan, servers, size, constants, slowdown), len(plan.factors), at, plan) for at, plan in enumerate(plans(servers))]
    cost, _, _, plan = min(found)
    return plan, cost
