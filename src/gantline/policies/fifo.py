"""First come, first served, with the four usual ways to fill the gaps.

Backfilling follows Lifka (IBM SP, JSSPP 1995) for EASY and Mu'alem and Feitelson (IEEE TPDS 2001) for the
conservative kind. Free devices of each type are counted over time, from the estimated ends of running jobs. A job
whose turn comes starts if it fits for as long as it needs; if not, it is promised the earliest time at which it does,
as long as promises are made: EASY makes one, the conservative kind one to every job. Placement may still keep a gang
out, and then it waits. Estimates that prove too low shorten no run: the promise moves, as in every batch system.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats
from gantline.core.plan import Misfit, Plan, Reservation
from gantline.core.policy import OrderPolicy, param
from gantline.core.snapshot import Snapshot

_INSTANT = 1e-6  # seconds that a gang takes at least


class FreeProfile:
    """Free devices of one type from now on: `free[k]` from `times[k]` to the next."""

    def __init__(self, now: float, free: int) -> None:
        self.times, self.free = [now], [free]

    def earliest(self, need: int, length: float) -> float:
        """The first change from which `need` devices are free for `length` seconds; infinity: never."""
        start = 0
        while start < len(self.times):
            if self.free[start] < need:
                start += 1
                continue
            end = bisect_left(self.times, self.times[start] + length)
            short = next((k for k in range(start, end) if self.free[k] < need), -1)
            if short < 0:
                return self.times[start]
            start = short
        return math.inf

    def occupy(self, start: float, end: float, need: int) -> None:
        """Take `need` devices out from start to end; below zero, give them back."""
        for at in (start, end):
            place = bisect_left(self.times, at)
            if at < math.inf and (place == len(self.times) or self.times[place] != at):
                self.times.insert(place, at)
                self.free.insert(place, self.free[place - 1])
        for k in range(bisect_left(self.times, start), bisect_left(self.times, end)):
            self.free[k] -= need


def backfill(snapshot: Snapshot, key: Floats, promises: float) -> Plan:
    """In order of key, without stopping any job: one that fits starts, and the first `promises` that do not are promised a time."""
    jobs, now = snapshot.jobs, snapshot.now
    profiles = _profiles(snapshot)
    rank = np.array(key)
    waiting = np.flatnonzero(~jobs.running)
    waiting = waiting[np.lexsort((waiting, rank[waiting]))]
    smallest = jobs.smallest
    reservations: list[Reservation] = []
    remaining = jobs.remaining
    for job in waiting.tolist():
        if len(reservations) >= promises and smallest[job] > max(profile.free[0] for profile in profiles):
            rank[job] = np.inf  # no room, and no promise to make: the usual case, found quickly
            continue
        variants = [
            (variant.type, variant.gpus, max(float(remaining[job]) / variant.rate, _INSTANT))
            for variant in jobs.options(job)
            if variant.rate > 0
        ]
        starts = [(profiles[kind].earliest(need, length), kind, need, length) for kind, need, length in variants]
        if not starts:
            rank[job] = np.inf
            continue
        start, kind, need, length = min(starts, key=lambda found: found[0])
        if start > now:
            rank[job] = np.inf
            if math.isinf(start) or len(reservations) >= promises:
                continue
            reservations.append(Reservation(start, start + length, need, type=kind, job=job))
        profiles[kind].occupy(start, start + length, need)
    return Plan.rank(rank, preempt=False, valid_until=math.inf, reservations=tuple(reservations))


def _profiles(snapshot: Snapshot) -> list[FreeProfile]:
    """Per type: what is free now, and what running jobs will give back."""
    jobs, now = snapshot.jobs, snapshot.now
    profiles = [FreeProfile(now, int(free)) for free in snapshot.cluster.free_of_type]
    runs = np.flatnonzero(jobs.running & (jobs.held > 0))
    kinds = np.maximum(jobs.type[runs], 0)
    speed = np.where(jobs.rate[runs] > 0, jobs.rate[runs], 1.0)
    ends = now + np.maximum(jobs.remaining[runs], _INSTANT) / speed
    for at in np.argsort(ends, kind="stable"):
        profiles[int(kinds[at])].occupy(float(ends[at]), math.inf, -int(jobs.held[runs[at]]))
    return profiles


_VARIANTS = ("none", "skip", "shrink", "easy", "conservative")
_PROMISES = {"easy": 1.0, "conservative": math.inf}


@dataclass(frozen=True)
class Fifo(OrderPolicy):
    """Jobs start in order of arrival and are never stopped."""

    name: ClassVar[str] = "fifo"
    paper: ClassVar[str] = "Lifka: The ANL/IBM SP Scheduling System (JSSPP 1995); Mu'alem, Feitelson (IEEE TPDS 2001)"
    preempt: ClassVar[bool] = False

    backfill: str = field(
        default="none",
        metadata=param(
            "what may pass a job that does not fit: 'none', 'skip' (any that fits), 'shrink' (any, but it may start with a "
            "smaller option of its own), 'easy' (any that does not delay the first), "
            "'conservative' (any that delays none); the last two need estimates",
            one_of=_VARIANTS,
        ),
    )

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"remaining"}) if self.backfill in {"easy", "conservative"} else frozenset()

    @property
    def misfit(self) -> Misfit:  # type: ignore[override]
        return {"none": Misfit.STOP, "shrink": Misfit.SHRINK}.get(self.backfill, Misfit.SKIP)

    def key(self, snapshot: Snapshot) -> NDArray[np.float64]:
        return snapshot.jobs.arrival

    def by_key(self) -> bool:
        return True

    def backfill_depth(self) -> float:
        return _PROMISES.get(self.backfill, 0.0)

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf

    def decide(self, snapshot: Snapshot) -> Plan:
        depth = self.backfill_depth()
        return backfill(snapshot, snapshot.jobs.arrival, depth) if depth else super().decide(snapshot)
