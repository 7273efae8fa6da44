"""The columns that AlloX and its baselines decide on: ways to run the waiting jobs, a pool of resources, shares of it.

A way is one (job, configuration) pair: AlloX' CPU or GPU configuration, or any other option. Jobs are rows in order of
arrival, ways are in order of their jobs; where keys are equal, the earlier way wins.

A user's share is the largest, over groups of resources, of (value held) / (value there is), divided by its weight. With
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


@dataclass(frozen=True)
class Ways:
    """How the waiting jobs could run."""

    owner: Ints  # per job: its user
    job: Ints  # per way: its job
    kind: Ints  # per way: the device type
    time: Floats  # per way: estimated seconds
    need: Floats  # per way and resource

    def __post_init__(self) -> None:
        ways = len(self.job)
        if not (len(self.kind) == len(self.time) == len(self.need) == ways):
            raise UsageError("columns of ways differ in length", fix="give one kind, time and need per way")
        if ways and not np.all(self.time > 0):
            row = int(np.argmin(self.time > 0))
            raise UsageError(
                f"job {int(self.job[row])} has the estimated time {self.time[row]:g} on type {int(self.kind[row])}",
                fix="estimates must be positive; leave out ways that a job cannot run",
            )

    @property
    def user(self) -> Ints:
        """Per way: the user of its job."""
        return self.owner[self.job]

    def fastest(self, tier: Ints) -> npt.NDArray[np.bool_]:
        """Per way: whether it is its job's fastest; of equal ones that with the lowest ``tier[kind]``, then the first."""
        order = np.lexsort((np.arange(len(self.job)), tier[self.kind], self.time, self.job))
        first = np.ones(len(order), dtype=bool)
        first[1:] = self.job[order][1:] != self.job[order][:-1]
        chosen = np.zeros(len(order), dtype=bool)
        chosen[order[first]] = True
        return chosen

    def only(self, keep: npt.NDArray[np.bool_] | Ints) -> Ways:
        """The same jobs with fewer ways, by flags or by numbers."""
        return Ways(self.owner, self.job[keep], self.kind[keep], self.time[keep], self.need[keep])


@dataclass(frozen=True)
class Pool:
    """What there is, what is free, what each user holds and how much each user counts."""

    capacity: Floats
    free: Floats
    used: Floats  # per user and resource
    weight: Floats  # per user

    def __post_init__(self) -> None:
        if not (len(self.capacity) == len(self.free) == self.used.shape[1]):
            raise UsageError("capacity, free and used name different resources", fix="one entry per resource in each")
        if len(self.weight) != len(self.used) or np.any(self.weight <= 0):
            raise UsageError("every user needs a positive weight", fix="leave weights at 1 if users count alike")

    @staticmethod
    def of(capacity: Floats, used: Floats, weight: Floats | None = None) -> Pool:
        """A pool in which everything not used is free."""
        capacity, used = np.asarray(capacity, dtype=float), np.asarray(used, dtype=float)
        return Pool(capacity, capacity - used.sum(axis=0), used, np.ones(len(used)) if weight is None else weight)


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
