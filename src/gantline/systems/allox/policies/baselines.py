"""The baselines that AlloX is compared with, each a function from ways and a pool to the ways that start, in order.

They take the paper's meaning: work conserving, every job with its own demand and duration. What the artifact does otherwise lives in
``imitation/``. A way is one (job, configuration) pair: AlloX' CPU or GPU configuration, or any other option. Jobs are rows in order of
arrival, ways are in order of their jobs; where keys are equal, the earlier way wins.

A user's share is the largest, over groups of resources, of (value held) / (value there is), divided by its weight. With
every resource a group of its own this is DRF (NSDI 2011). With all compute in one group, a GPU counted as so many
cores, it is AlloX' extension of DRF to interchangeable resources.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.host_resources import SLACK


def firsts(values: Ints) -> Bools:
    """Whether each of these is the first of its neighbours that are equal."""
    first = np.ones(len(values), dtype=bool)
    first[1:] = values[1:] != values[:-1]
    return first


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

    def fastest(self, tier: Ints) -> Ints:
        """The fastest way of every job; of equal ones that with the lowest ``tier[kind]``, then the first."""
        order = np.lexsort((tier[self.kind], self.time, self.job))
        return order[firsts(self.job[order])]

    def only(self, keep: Bools | Ints) -> Ways:
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


@dataclass(frozen=True)
class Worth:
    """Which neighbouring resources stand in for each other (they have one ``group``) and at what rate (``value``)."""

    group: Ints
    value: Floats

    @staticmethod
    def separate(resources: int) -> Worth:
        """No resource stands in for another: plain DRF."""
        return Worth(np.arange(resources), np.ones(resources))

    def dominant_share(self, held: Floats, capacity: Floats) -> Floats:
        """The largest share of a group of resources, per row; groups of which there is nothing do not count."""
        whole = np.add.reduceat(self.value * capacity, self._first)
        mine, there = np.add.reduceat(self.value * held, self._first, axis=1), whole > 0.0
        return np.asarray((mine[:, there] / whole[there]).max(axis=1, initial=0.0))

    @cached_property
    def _first(self) -> Ints:
        """Where each group begins."""
        return np.flatnonzero(firsts(self.group))


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


def interchangeable(worth: Floats, compute: Bools) -> Worth:
    """All compute resources in one group at the given rates; the others, such as memory, each alone."""
    if not np.any(compute):
        raise UsageError("no resource is marked as compute", fix="mark cores and devices as interchangeable")
    group = np.where(compute, int(np.argmax(compute)), np.arange(len(compute)))
    return Worth(group, np.where(compute, worth, 1.0))


# --- filling a pool: ways in some order, each started if there is room for it ---------------------------------------------


class FillMisfit(Enum):
    """What happens when a user's best way does not fit."""

    SKIP = "the user's next way is tried"
    PASS = "the user is passed over"
    STOP = "nothing more starts"  # DRF's algorithm box; IRFsim


def fits(need: Floats, free: Floats) -> Bools:
    """Whether every resource suffices, with room for rounding, per way."""
    return np.asarray(np.all(need <= free + SLACK, axis=-1))


def fill_by_share(ways: Ways, order: Ints, pool: Pool, worth: Worth, misfit: FillMisfit) -> Ints:
    """Progressive filling: again and again the best way of the user with the lowest share. Returns ways in order."""
    user, job, need = ways.user[order], ways.job[order], ways.need[order]
    free, used = pool.free.copy(), pool.used.copy()
    share = worth.dominant_share(used, pool.capacity) / pool.weight
    left, started = np.ones(len(order), dtype=bool), []
    while True:
        if misfit is FillMisfit.SKIP:
            left &= fits(need, free)
        if not left.any():
            break
        poorest = int(np.argmin(np.where(np.bincount(user[left], minlength=len(share)) > 0, share, np.inf)))
        best = int(np.argmax(left & (user == poorest)))
        if not fits(need[best], free):
            if misfit is FillMisfit.STOP:
                break
            left &= user != poorest
            continue
        started.append(order[best])
        left &= job != job[best]
        free -= need[best]
        used[poorest] += need[best]
        share[poorest] = worth.dominant_share(used[[poorest]], pool.capacity)[0] / pool.weight[poorest]
    return np.array(started, dtype=np.int64)


def fill_within(ways: Ways, order: Ints, pool: Pool, limit: Floats) -> Ints:
    """User by user, the best ways that fit both the pool and what is left of the user's limit."""
    free, started = pool.free.copy(), []
    for user in np.unique(ways.user[order]).tolist():
        mine, used = order[ways.user[order] == user], pool.used[user].copy()
        while len(mine := mine[fits(ways.need[mine], np.minimum(free, limit[user] - used))]):
            best = mine[0]
            started.append(best)
            free -= ways.need[best]
            used += ways.need[best]
            mine = mine[ways.job[mine] != ways.job[best]]
    return np.array(started, dtype=np.int64)


def fill_best(ways: Ways, order: Ints, free: Floats) -> Ints:
    """The best way of anyone, again and again; what does not fit is passed over."""
    started = []
    while len(order := order[fits(ways.need[order], free)]):
        started.append(order[0])
        free = free - ways.need[order[0]]
        order = order[ways.job[order] != ways.job[order[0]]]
    return np.array(started, dtype=np.int64)


# --- the baselines --------------------------------------------------------------------------------------------------------


def drf(ways: Ways, pool: Pool, *, order: str = "sjf", misfit: FillMisfit = FillMisfit.SKIP, worth: Worth | None = None) -> Ints:
    """Dominant resource fairness between users (Ghodsi et al., NSDI 2011); within a user first come or shortest first.

    Every way given counts as the job's demand, so give each job one: what its user asks for (DRF-FIFO), or its fastest
    (``ways.only(ways.fastest(tier))``). ``worth`` says which resources count together; by default each counts alone.
    """
    key = ways.time if order == "sjf" else ways.job
    return fill_by_share(ways, np.argsort(key, kind="stable"), pool, worth or Worth.separate(len(pool.capacity)), misfit)


def drf_extended(ways: Ways, pool: Pool, worth: Worth, tier: Ints) -> Ints:
    """DRF over interchangeable resources: the poorest user starts its shortest job on the best type that has room.

    ``tier[kind]`` says which type is tried first (GPU 0, CPU 1); within a type the job shortest there goes first.
    """
    return fill_by_share(ways, np.lexsort((ways.time, tier[ways.kind])), pool, worth, FillMisfit.SKIP)


def equal_share(ways: Ways, pool: Pool, tier: Ints) -> Ints:
    """A fixed part of every resource for each user, by weight, used or not; within it by tier, then shortest first.

    A user that holds nothing may start one job per device type although its part is smaller than the demand; without
    that, users that outnumber the GPUs would leave all of them idle.
    """
    limit = pool.capacity * (pool.weight / pool.weight.sum())[:, None]
    return fill_within(ways, np.lexsort((ways.time, tier[ways.kind])), pool, at_least_one(ways, pool, limit))


def fair_share(ways: Ways, pool: Pool, tier: Ints, worth: Worth | None = None) -> Ints:
    """Equal shares among the users that want something now; what they cannot use goes to the user with the least."""
    active = (np.bincount(ways.owner, minlength=len(pool.weight)) > 0) | np.any(pool.used > 0, axis=1)
    weight = np.where(active, pool.weight, 0.0)
    limit = at_least_one(ways, pool, pool.capacity * (weight / max(weight.sum(), 1e-300))[:, None])
    order = np.lexsort((ways.time, tier[ways.kind]))
    inside = fill_within(ways, order, pool, limit)
    taken, used = ways.need[inside], pool.used.copy()
    np.add.at(used, ways.user[inside], taken)
    rest = order[~np.isin(ways.job[order], ways.job[inside])]
    left = Pool(pool.capacity, pool.free - taken.sum(axis=0), used, pool.weight)
    spare = fill_by_share(ways, rest, left, worth or Worth.separate(len(pool.capacity)), FillMisfit.SKIP)
    return np.concatenate((inside, spare))


def at_least_one(ways: Ways, pool: Pool, limit: Floats) -> Floats:
    """Limits raised, for a user that holds nothing, to the smallest demand it has in each resource."""
    raised = limit.copy()
    smallest = np.full_like(raised, np.inf)
    demand = np.where(ways.need > 0, ways.need, np.inf)
    np.minimum.at(smallest, ways.user, demand)
    idle = ~np.any(pool.used > 0, axis=1)
    floor = np.where(np.isfinite(smallest), smallest, 0.0)
    raised[idle] = np.maximum(raised, floor)[idle]
    return raised


def sjf(ways: Ways, pool: Pool) -> Ints:
    """The shortest (job, configuration) pair that fits, on a slow device too.

    Over the waiting jobs this is SJF. Over all jobs, with the time that is left and a pool as if none were running, it is SRPT.
    """
    return fill_best(ways, np.argsort(ways.time, kind="stable"), pool.free)


def allox_plus(ways: Ways, pool: Pool, arrival: Floats, now: float, age: float = 500.0) -> Ints:
    """Shortest pair first, but jobs that have waited ``age`` seconds before all others, the oldest first.

    The artifact orders aged jobs by time as well, so that a long one can be overtaken for ever.
    """
    aged = (now - arrival >= age)[ways.job]
    oldest_first = np.where(aged, arrival[ways.job] - now - 1.0, 0.0)
    return fill_best(ways, np.lexsort((ways.time, oldest_first)), pool.free)
