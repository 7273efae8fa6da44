"""The baselines that AlloX is compared with, each a function from ways and a pool to the ways that start, in order.

They take the paper's meaning: work conserving, every job with its own demand and duration. What the artifact does
otherwise lives in ``artifact/``.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.systems.allox.policies.fill import FillMisfit, RankedWays, fill_best, fill_by_share, fill_within
from gantline.systems.allox.policies.ways import Pool, Ways, Worth


def no_tiers(ways: Ways) -> Ints:
    return np.zeros(len(ways.job), dtype=np.int64)


def by_share(ways: Ways, pool: Pool, tier: Ints, key: Floats, worth: Worth, misfit: FillMisfit) -> Ints:
    """The filling that all kinds of DRF share."""
    return fill_by_share(ranked(ways, tier, key), pool.free, pool.used, pool.capacity, pool.weight, worth.group, worth.value, int(misfit))


def ranked(ways: Ways, tier: Ints, key: Floats) -> RankedWays:
    """Ways with what they are chosen by."""
    return RankedWays(ways.user, ways.job, tier, key, ways.need, len(ways.owner))


def drf(ways: Ways, pool: Pool, *, order: str = "sjf", misfit: FillMisfit = FillMisfit.SKIP, worth: Worth | None = None) -> Ints:
    """Dominant resource fairness between users (Ghodsi et al., NSDI 2011); within a user first come or shortest first.

    Every way given counts as the job's demand, so give each job one: what its user asks for (DRF-FIFO), or its fastest
    (``ways.only(ways.fastest(tier))``). ``worth`` says which resources count together; by default each counts alone.
    """
    key = ways.time if order == "sjf" else ways.job.astype(np.float64)
    return by_share(ways, pool, no_tiers(ways), key, worth or Worth.separate(len(pool.capacity)), misfit)


def drf_extended(ways: Ways, pool: Pool, worth: Worth, tier: Ints) -> Ints:
    """DRF over interchangeable resources: the poorest user starts its shortest job on the best type that has room.

    ``tier[kind]`` says which type is tried first (GPU 0, CPU 1); within a type the job shortest there goes first.
    """
    return by_share(ways, pool, tier[ways.kind], ways.time, worth, FillMisfit.SKIP)


def equal_share(ways: Ways, pool: Pool, tier: Ints) -> Ints:
    """A fixed part of every resource for each user, by weight, used or not; within it by tier, then shortest first.

    A user that holds nothing may start one job per device type although its part is smaller than the demand; without
    that, users that outnumber the GPUs would leave all of them idle.
    """
    limit = pool.capacity * (pool.weight / pool.weight.sum())[:, None]
    return fill_within(ranked(ways, tier[ways.kind], ways.time), pool.free, pool.used, at_least_one(ways, pool, limit))


def fair_share(ways: Ways, pool: Pool, tier: Ints, worth: Worth | None = None) -> Ints:
    """Equal shares among the users that want something now; what they cannot use goes to the user with the least."""
    active = (np.bincount(ways.owner, minlength=len(pool.weight)) > 0) | np.any(pool.used > 0, axis=1)
    weight = np.where(active, pool.weight, 0.0)
    limit = at_least_one(ways, pool, pool.capacity * (weight / max(weight.sum(), 1e-300))[:, None])
    inside = fill_within(ranked(ways, tier[ways.kind], ways.time), pool.free, pool.used, limit)
    taken, used = ways.need[inside], pool.used.copy()
    np.add.at(used, ways.user[inside], taken)
    rest = ~np.isin(ways.job, ways.job[inside])
    remaining = ways.only(rest)
    spare = by_share(
        remaining,
        Pool(pool.capacity, pool.free - taken.sum(axis=0), used, pool.weight),
        tier[remaining.kind],
        remaining.time,
        worth or Worth.separate(len(pool.capacity)),
        FillMisfit.SKIP,
    )
    return np.concatenate((inside, np.flatnonzero(rest)[spare]))


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
    return fill_best(ranked(ways, no_tiers(ways), ways.time), pool.free)


def allox_plus(ways: Ways, pool: Pool, arrival: Floats, now: float, age: float = 500.0) -> Ints:
    """Shortest pair first, but jobs that have waited ``age`` seconds before all others, the oldest first.

    The artifact orders aged jobs by time as well, so that a long one can be overtaken for ever.
    """
    aged = (now - arrival >= age)[ways.job]
    oldest_first = np.where(aged, arrival[ways.job] - now - 1.0, 0.0)
    order = np.lexsort((np.arange(len(ways.job)), ways.time, oldest_first))
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order))
    return fill_best(ranked(ways, no_tiers(ways), rank), pool.free)
