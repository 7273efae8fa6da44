"""`heet-like`: elastic configurations on several device types by prices, matching and trading (after Heet, ASPLOS 2024)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from gantline.core.phases import CHECKPOINTING
from gantline.core.plan import Assignments, Plan
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.systems.heet.policies.variants import HeetVariants, Variant, put_to_the_test, read_variants

# The price of a way to run: time to the end, more for what others wait for, less for what is used well.
#
# price = T (1 + kappa pressure share) / efficiency^lambda. T is the remaining time in that way; pressure the devices that waiting jobs
# need at least, over all there are; share the part of the cluster's worth that the way takes, where a device type is worth what jobs gain
# by it on average; efficiency the speed per device over that of the job's best way. (Heet, ASPLOS 2024, prices configurations between
# scaling and scheduling efficiency; the formula is ours.)


_LEAST = 1e-6


@dataclass(frozen=True)
class Prices:
    """Prices for one instant: of every way of every job, and of having nothing, which is to wait and then have the cheapest."""

    table: dict[int, dict[Variant, float]]
    idle: dict[int, float]

    def of(self, job: int, variant: Variant | None) -> float:
        """The price of a way; None: of no devices."""
        return self.idle[job] if variant is None else self.table[job][variant]


def price_all(variants: HeetVariants, capacity: list[int], kappa: float, power: float) -> Prices:
    """Prices of all ways of all jobs."""
    worth = _worth(variants, len(capacity))
    total = max(sum(worth[kind] * count for kind, count in enumerate(capacity)), _LEAST)
    needed = sum(
        min(count for _, count in variants.speed[job]) for job in variants.speed if job not in variants.held and variants.speed[job]
    )
    pressure = needed / max(sum(capacity), 1)
    table = {}
    for job, speeds in variants.speed.items():
        best = max((speed / count for (_, count), speed in speeds.items()), default=1.0)
        table[job] = {
            (kind, count): variants.left[job]
            / speed
            * (1.0 + kappa * pressure * worth[kind] * count / total)
            / (speed / count / best) ** power
            for (kind, count), speed in speeds.items()
        }
    wait = min((variants.time(job, variant) for job, variant in variants.held.items()), default=0.0)  # until a job ends
    idle = {}
    for job, speeds in variants.speed.items():
        shortest = variants.left[job] / max(speeds.values(), default=1.0)
        idle[job] = min(table[job].values(), default=0.0) * (1.0 + wait / max(shortest, _LEAST))
    return Prices(table, idle)


def _worth(variants: HeetVariants, kinds: int) -> list[float]:
    """Per device type the mean speed of one device there, relative to each job's best."""
    sums, counts = [0.0] * kinds, [0] * kinds
    for speeds in variants.speed.values():
        best: dict[int, float] = {}
        for (kind, count), speed in speeds.items():
            best[kind] = max(best.get(kind, 0.0), speed / count)
        top = max(best.values(), default=1.0)
        for kind, speed in best.items():
            sums[kind] += speed / top
            counts[kind] += 1
    return [total / number if number else 1.0 for total, number in zip(sums, counts)]


# Free devices find jobs by minimum-weight full matching: first jobs that wait, then jobs that would grow.
#
# One side are jobs, the other slots, groups of 1, 2, 4 or 8 free devices of a type (more where a job needs more at least). A waiting job
# is matched at the price that it would then have, fully: as many as possible, at the least total. One that runs is matched at the change
# of its price, and only if that falls. Rounds are repeated until nothing changes.

_SLOT = 8
_NEVER = 1e15


def match(prices: Prices, grants: dict[int, Variant], free: list[int], fixed: set[int]) -> None:
    """Hand out what is free, in place."""
    while _round(prices, grants, free, [job for job in prices.table if job not in grants and job not in fixed], growing=False):
        pass
    while _round(prices, grants, free, [job for job in grants if job in prices.table and job not in fixed], growing=True):
        pass


def _round(prices: Prices, grants: dict[int, Variant], free: list[int], jobs: list[int], growing: bool) -> bool:
    """One matching; says whether anything was granted."""
    slots = _slots(prices, free, jobs, grants if growing else {})
    if not jobs or not slots:
        return False
    cost = np.full((len(jobs), len(slots)), _NEVER)
    choice: dict[tuple[int, int], Variant] = {}
    for i, job in enumerate(jobs):
        for kind, size in set(slots):
            variant = best_variant(prices, job, kind, size, grants.get(job) if growing else None)
            if variant is not None:
                weight = prices.of(job, variant) - (prices.of(job, grants[job]) if growing else 0.0)
                for j in [j for j, slot in enumerate(slots) if slot == (kind, size)]:
                    cost[i, j] = weight
                    choice[i, j] = variant
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


def best_variant(prices: Prices, job: int, kind: int, room: int, held: Variant | None) -> Variant | None:
    """The cheapest way of a job on one type with so many devices more than it has; None: there is none."""
    if held is not None and held[0] != kind:
        return None
    have = held[1] if held is not None else 0
    able = [(price, variant) for variant, price in prices.table[job].items() if variant[0] == kind and have < variant[1] <= have + room]
    return min(able)[1] if able else None


def _slots(prices: Prices, free: list[int], jobs: list[int], held: dict[int, Variant]) -> list[Variant]:
    """Groups of free devices: powers of two up to eight, and one large enough for a job that needs more than any of them."""
    found: list[Variant] = []
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


def _step(prices: Prices, job: int, kind: int, held: Variant | None) -> int:
    """The fewest devices that would help a job on that type; zero: none would."""
    have = held[1] if held is not None and held[0] == kind else 0
    more = [count - have for k, count in prices.table[job] if k == kind and count > have]
    return min(more) if more and (held is None or held[0] == kind) else 0


# Opportunistic trading: a running job hands devices over, or two exchange what they have.
#
# A trade is made if the sum of prices falls by more than the restarts that it takes; the best first.

Trade = tuple[float, dict[int, Variant]]  # gain, new ways


def trade(prices: Prices, grants: dict[int, Variant], free: list[int], fixed: set[int], restart: float, most: int) -> int:
    """Up to so many trades, the best first, in place; how many were made."""
    for made in range(most):
        gain, change = max(_trades(prices, grants, free, fixed, restart), key=lambda one: one[0], default=(0.0, {}))
        if gain <= 1e-9:
            return made
        for job, variant in change.items():
            if job in grants:
                free[grants[job][0]] += grants[job][1]
            free[variant[0]] -= variant[1]
            grants[job] = variant
    return most


def _trades(prices: Prices, grants: dict[int, Variant], free: list[int], fixed: set[int], restart: float) -> Iterator[Trade]:
    donors = [job for job in grants if job in prices.table and job not in fixed]
    waiting = [job for job in prices.table if job not in grants and job not in fixed and prices.table[job]]
    for donor in donors:
        kind, count = grants[donor]
        below = [variant for variant in prices.table[donor] if variant[0] == kind and variant[1] < count]
        if below:  # hand over: the donor shrinks a step
            smaller = max(below)
            loss = prices.of(donor, smaller) - prices.of(donor, grants[donor]) + restart
            room = free[kind] + count - smaller[1]
            for other in [*waiting, *(job for job in donors if job != donor and grants[job][0] == kind)]:
                variant = best_variant(prices, other, kind, room, grants.get(other))
                if variant is not None:
                    pays = restart if other in grants else 0.0
                    yield prices.of(other, grants.get(other)) - prices.of(other, variant) - loss - pays, {donor: smaller, other: variant}
        for other in donors:  # exchange
            if other > donor and grants[other] != grants[donor]:
                mine, yours = grants[donor], grants[other]
                if yours in prices.table[donor] and mine in prices.table[other]:
                    gain = prices.of(donor, mine) + prices.of(other, yours) - prices.of(donor, yours) - prices.of(other, mine)
                    yield gain - 2 * restart, {donor: yours, other: mine}


# `heet-like`: elastic configurations on several device types, after Heet (ASPLOS 2024), of which only the outline is public.


@dataclass(frozen=True)
class HeetLike(Policy):
    """Estimated speeds of all configurations, a price for each, matching of jobs and free devices, then trades among running jobs."""

    name = "heet-like"
    paper = "after Mo, Xu, Xu: Heet: Accelerating Elastic Training in Heterogeneous Deep Learning Clusters (ASPLOS 2024)"
    needs = frozenset({"remaining"})

    profile: str = parameter("three", "measured before a start: 'three' configurations, or 'all'", one_of=("three", "all"))
    power: float = parameter(1.0, "how much efficiency counts in a price (lambda)", low=0.0, finite=True)
    kappa: float = parameter(1.0, "how much a price grows with what others wait for", low=0.0, finite=True)
    trades: int = parameter(8, "trades at most per decision; 0: none", low=0)
    restart: float = parameter(30.0, "seconds that a trade must gain for each job that it changes", low=0.0, finite=True, unit="seconds")
    residence: float = parameter(300.0, "seconds for which a job keeps what it was given", above=0.0, finite=True, unit="seconds")

    def decide(self, snapshot: Snapshot) -> Plan:
        memory: dict[str, Any] = snapshot.memory or {}
        jobs, capacity = snapshot.jobs, snapshot.cluster.capacity.tolist()
        epoch = math.floor(snapshot.now / self.residence + 1e-9)
        until = (epoch + 1) * self.residence
        cause = [epoch, jobs.rows.tolist(), capacity, (jobs.locked | (jobs.phase >= CHECKPOINTING)).tolist()]
        rows = {int(row): job for job, row in enumerate(jobs.rows.tolist())}
        if memory.get("cause") == cause:
            kept = {rows[int(row)]: (variant[0], variant[1]) for row, variant in memory["grants"].items()}
            return _plan(snapshot, kept, until, memory)
        variants, remembered = read_variants(snapshot, memory, self.profile)
        since = memory.get("since", {})
        young = {job for job in variants.held if snapshot.now - since.get(str(jobs.rows[job]), -math.inf) < self.residence - 1e-6}
        grants = dict(variants.held)
        free = list(variants.free)
        for kind, count in grants.values():
            free[kind] -= count
        prices = price_all(variants, capacity, self.kappa, self.power)
        match(prices, grants, free, young)
        if self.trades and trade(prices, grants, free, young, self.restart, self.trades):
            match(prices, grants, free, young)
        changed = {job for job, variant in grants.items() if variants.held.get(job) != variant}
        remembered |= {
            "cause": cause,
            "believed": put_to_the_test(variants, grants, jobs.rows.tolist()),
            "grants": {str(jobs.rows[job]): list(variant) for job, variant in grants.items()},
            "since": {
                str(jobs.rows[job]): snapshot.now if job in changed else since.get(str(jobs.rows[job]), snapshot.now) for job in grants
            },
        }
        return _plan(snapshot, grants, until, remembered, _note(memory, remembered))


def _note(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    """How far beliefs were off, reported whenever twice as many have been tested."""
    tried, was = after.get("errors", [0, 0.0]), before.get("errors", [0, 0.0])
    if tried[0] < 8 or tried[0].bit_length() == was[0].bit_length():
        return ()
    return (f"speeds of {tried[0]} configurations, estimated before they were tried, were {tried[1] / tried[0]:.1%} off on average",)


def _plan(snapshot: Snapshot, grants: dict[int, Variant], until: float, memory: dict[str, Any], notes: tuple[str, ...] = ()) -> Plan:
    none = np.flatnonzero(snapshot.jobs.gpus == 0).tolist()
    held = sorted(grants, key=lambda job: (grants[job] != (int(snapshot.jobs.type[job]), int(snapshot.jobs.held[job])), job))
    job, kind, gpus = [*none, *held], [-1] * len(none), [-1] * len(none)
    kind += [grants[each][0] for each in held]
    gpus += [grants[each][1] for each in held]
    return Plan.assign(Assignments(job, type=kind, gpus=gpus), valid_until=until, memory=memory, notes=notes)
