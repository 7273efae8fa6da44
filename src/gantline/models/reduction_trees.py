"""AllReduce on a tree of switches: at each switch the plan that costs least there (GenTree, arXiv 2409.04202).

From the leaves up, the children of a switch exchange what each has summed up: every server of a child holds a piece of its child's sum and
meets its counterparts in the other children. A child finishes its own sum first, so that only as much as the data themselves crosses its
uplink, however many servers it has. All-gather mirrors it. What the level costs is what its most expensive switch does; levels add up. The
paper gives the idea and no program: how siblings of different size meet, by the largest piece among them, is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gantline.core.errors import UsageError
from gantline.models.allreduce import AllReducePlan, CostConstants, best_plan, cost_of


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
