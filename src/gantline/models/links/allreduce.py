"""What an AllReduce costs (GenModel, arXiv 2409.04202), fitted to timed runs; the best plan, on trees too.

    T = A alpha + B beta + C gamma + D delta + max(w - threshold, 0) B epsilon

A rounds, B data that the busiest server sends or receives, C additions, D memory accesses, w how many pieces meet at
one server (its own among them). Reducing k pieces at once reads k and writes one, so that a large fan-in saves memory
accesses; beyond the threshold senders collide (incast), charged level by level with the data of the level. The two
cannot both be least.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats
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


# The constants of GenModel from timed AllReduces: a linear regression for every threshold, and the threshold that
# leaves least.
#
# Bandwidth and additions occur in one proportion in every plan (B = 2 C), so that they are found together, as 2 beta
# + gamma.

_LEAST = 5


class TimedAllReduce(NamedTuple):
    """One measurement."""

    plan: AllReducePlan
    servers: int
    size: float
    seconds: float


class CostFit(NamedTuple):
    """The constants, with all of 2 beta + gamma as beta, and the mean relative error of what they predict."""

    constants: CostConstants
    error: float


def fit_costs(timed: Sequence[TimedAllReduce]) -> CostFit:
    """The constants that explain the measurements best; without a plan beyond the threshold there is no incast to be found."""
    if len(timed) < _LEAST:
        raise UsageError(f"{len(timed)} measurements", where="fit of AllReduce", fix=f"time at least {_LEAST}, of several plans and sizes")
    if any(not 0.0 < one.seconds < math.inf for one in timed):
        raise UsageError("a measurement takes no time, or for ever", where="fit of AllReduce", fix="seconds above zero")
    seconds = np.array([one.seconds for one in timed])
    widest = max(level.fan_in for one in timed for level in one.plan.levels(one.servers, one.size))
    best: tuple[float, Floats, int] | None = None
    for threshold in range(1, widest + 1):
        columns = np.array([_counts(one, threshold) for one in timed])
        found = _least_squares(columns, seconds)
        residual = float(((columns @ found / seconds - 1.0) ** 2).sum())
        if best is None or residual < best[0] - 1e-18:
            best = residual, found, threshold
    assert best is not None
    _, (alpha, sent, delta, epsilon), threshold = best
    columns = np.array([_counts(one, threshold) for one in timed])
    error = float(np.abs(columns @ best[1] / seconds - 1.0).mean())
    alpha, sent, delta, epsilon = (max(0.0, float(one)) for one in (alpha, sent, delta, epsilon))
    return CostFit(CostConstants(alpha, sent / 2.0, 0.0, delta, epsilon, threshold), error)


def _counts(one: TimedAllReduce, threshold: int) -> tuple[float, float, float, float]:
    """Rounds, additions, accesses and data in excess of the threshold."""
    levels = one.plan.levels(one.servers, one.size)
    excess = sum(max(level.fan_in - threshold, 0) * level.data for level in levels)
    return (
        float(sum(level.rounds for level in levels)), sum(level.additions for level in levels),
        sum(level.accesses for level in levels), excess,
    )  # fmt: skip


def _least_squares(columns: Floats, seconds: Floats) -> Floats:
    """Relative errors count, so that short AllReduces are as good as long ones; a column that says nothing gets zero."""
    weighted = columns / seconds[:, None]
    scale = np.sqrt((weighted**2).sum(axis=0))
    used = scale > 0.0
    found = np.zeros(columns.shape[1])
    found[used] = np.linalg.lstsq(weighted[:, used] / scale[used], np.ones(len(seconds)), rcond=None)[0] / scale[used]
    return found


# AllReduce on a tree of switches: at each switch the plan that costs least there (GenTree, arXiv 2409.04202).
#
# From the leaves up, the children of a switch exchange what each has summed up: every server of a child holds a piece
# of its child's sum and meets its counterparts in the other children. A child finishes its own sum first, so that
# only as much as the data themselves crosses its uplink, however many servers it has. All-gather mirrors it. What the
# level costs is what its most expensive switch does; levels add up. The paper gives the idea and no program: how
# siblings of different size meet, by the largest piece among them, is ours.


@dataclass(frozen=True)
class Switch:
    """A switch over servers (a number) or over other switches; its links may be slower than those of the constants."""

    children: int | tuple[Switch, ...]
    slowdown: float = 1.0
    name: str = ""

    def __post_init__(self) -> None:
        if (self.children if isinstance(self.children, int) else len(self.children)) < 1:
            raise UsageError("a switch without children", where="tree of switches", fix="servers, or switches")
        if not 0.0 < self.slowdown < math.inf:
            raise UsageError(f"links {self.slowdown:g} times slower", where="tree of switches", fix="a number above zero")

    @property
    def servers(self) -> int:
        return self.children if isinstance(self.children, int) else sum(child.servers for child in self.children)

    @property
    def height(self) -> int:
        return 1 if isinstance(self.children, int) else 1 + max(child.height for child in self.children)


class SwitchPlan(NamedTuple):
    """What the children of one switch do."""

    name: str
    level: int  # from the servers up
    children: int
    plan: AllReducePlan
    seconds: float


class TreePlan(NamedTuple):
    """The plans of all switches, and the seconds of the whole."""

    switches: tuple[SwitchPlan, ...]
    seconds: float


def tree_of(widths: Sequence[int], slowdowns: Sequence[float] = ()) -> Switch:
    """A regular tree from the root down: (4, 16) are four switches of 16 servers; `slowdowns` of the links at each level, likewise."""
    factors = tuple(slowdowns) or (1.0,) * len(widths)
    if not widths or len(factors) != len(widths):
        raise UsageError(f"{len(widths)} levels and {len(factors)} slowdowns", where="tree of switches", fix="one of each per level")
    if any(width < 1 for width in widths):
        raise UsageError(f"a level of {min(widths)}", where="tree of switches", fix="one child or more")
    if len(widths) == 1:
        return Switch(widths[0], factors[0], "root")
    below = tree_of(widths[1:], factors[1:])
    return Switch(tuple(_named(below, f"{at}") for at in range(widths[0])), factors[0], "root")


def _named(switch: Switch, name: str) -> Switch:
    if isinstance(switch.children, int):
        return Switch(switch.children, switch.slowdown, name)
    return Switch(tuple(_named(child, f"{name}.{at}") for at, child in enumerate(switch.children)), switch.slowdown, name)


def plan_tree(tree: Switch, size: float, constants: CostConstants) -> TreePlan:
    """The cheapest plan at every switch, and what all levels take together."""
    found: list[SwitchPlan] = []
    _plan(tree, size, constants, found)
    levels: dict[int, float] = {}
    for one in found:
        levels[one.level] = max(levels.get(one.level, 0.0), one.seconds)
    return TreePlan(tuple(found), sum(levels.values()))


def _plan(switch: Switch, size: float, constants: CostConstants, found: list[SwitchPlan]) -> None:
    if isinstance(switch.children, int):
        plan, seconds = best_plan(switch.children, size, constants, switch.slowdown)
        found.append(SwitchPlan(switch.name, 1, switch.children, plan, seconds))
        return
    for child in switch.children:
        _plan(child, size, constants, found)
    piece = size / min(child.servers for child in switch.children)
    plan, seconds = best_plan(len(switch.children), piece, constants, switch.slowdown)
    found.append(SwitchPlan(switch.name, switch.height, len(switch.children), plan, seconds))


def flat_cost(plan: AllReducePlan, tree: Switch, size: float, constants: CostConstants) -> float:
    """A plan over all servers as if there were no tree: a ring crosses each uplink once, any other plan goes at the slowest links."""
    slowest = 1.0 if plan.kind == "ring" else _slowest(tree)
    return cost_of(plan, tree.servers, size, constants, slowest)


def _slowest(switch: Switch) -> float:
    below = () if isinstance(switch.children, int) else switch.children
    return max(switch.slowdown, *(_slowest(child) for child in below)) if below else switch.slowdown
