"""How much of the cluster a user holds: dominant shares, with or without interchangeable resources.

A share is the largest, over groups of resources, of (value held) / (value there is), divided by the user's weight. With
every resource a group of its own this is DRF (NSDI 2011). With all compute in one group, a GPU counted as so many
cores, it is AlloX' extension of DRF to interchangeable resources.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.jit import compiled
from gantline.systems.allox.policies.ways import Ways


@dataclass(frozen=True)
class Worth:
    """Which resources stand in for each other (``group``) and at what rate (``value``)."""

    group: Ints
    value: Floats

    @staticmethod
    def separate(resources: int) -> Worth:
        """No resource stands in for another: plain DRF."""
        return Worth(np.arange(resources), np.ones(resources))


@compiled
def dominant_share(held: Floats, capacity: Floats, group: Ints, value: Floats) -> float:
    """The largest share of a group of resources; groups of which there is nothing do not count."""
    largest = 0.0
    for g in range(group.size):
        mine = whole = 0.0
        for r in range(group.size):
            if group[r] == g:
                mine += value[r] * held[r]
                whole += value[r] * capacity[r]
        if whole > 0.0:
            largest = max(largest, mine / whole)
    return largest


def exchange_rates(ways: Ways, unit: Ints, base: int, start: float = 0.0) -> Floats:
    """What one unit of each resource is worth in units of the base: the mean ratio of (units x time) over jobs.

    ``unit[kind]`` is the resource that a device type consumes (its cores, its GPUs). A type that no job shares with
    the base type is worth 1. ``start`` is a value that the mean begins with, as IRFsim's does with 32 cores.
    """
    worth = np.ones(ways.need.shape[1])
    amount = ways.need[np.arange(len(ways.job)), unit[ways.kind]] * ways.time
    at_base = np.full(len(ways.owner), np.nan)
    is_base = unit[ways.kind] == base
    at_base[ways.job[is_base]] = amount[is_base]
    for resource in set(unit.tolist()) - {base}:
        mine = unit[ways.kind] == resource
        ratio = at_base[ways.job[mine]] / amount[mine]
        known = ratio[np.isfinite(ratio)]
        if len(known):
            worth[resource] = (known.sum() + start) / len(known)
    return worth


def interchangeable(worth: Floats, compute: npt.NDArray[np.bool_]) -> Worth:
    """All compute resources in one group at the given rates; the others, such as memory, each alone."""
    if not np.any(compute):
        raise UsageError("no resource is marked as compute", fix="mark cores and devices as interchangeable")
    group = np.where(compute, int(np.argmax(compute)), np.arange(len(compute)))
    return Worth(group, np.where(compute, worth, 1.0))
