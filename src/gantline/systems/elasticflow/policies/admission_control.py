"""Which jobs are admitted, what is reserved for each, and how many GPUs each has now: one pool of devices at one moment."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.jit import compiled, kernel
from gantline.policies.elastic.pools import Pool
from gantline.systems.elasticflow.policies.reservations import (
    CLOSE,
    FULL,
    ReservationTable,
    boundary,
    clear_plans,
    earliest_end,
    follow,
    hold,
    keep,
    least,
    open_map,
    reserve_all,
    reserve_more,
)
from gantline.systems.elasticflow.policies.settings import DeadlinePolicy, charges, delays
from gantline.systems.elasticflow.policies.spare import share_spare

# Newcomers one by one: admitted into what the others leave free, else with all jobs planned anew, else refused with an offer.


#: Plans that one decision may make to find earlier deadlines to offer; then offers are what is left beside the plans that stand.
_SEARCH = 40_000
NO, YES = 0, 1


@compiled
def admit_each(b: ReservationTable, order: Ints, known: int, newcomers: Ints, now: float, offer: Floats) -> int:
    """Admit each newcomer that can be in time without making another job late; returns the number of admitted jobs, or FULL.

    order: the `known` jobs admitted so far, by deadline, with room for all; it grows. The table has their plans; a job without one is late
    already. offer: NaN for a newcomer that is admitted, else the earliest deadline that would do.
    """
    planned, search = 0, _SEARCH
    for k in range(known):
        planned += b.plan_count[order[k]] > 0
    untidy = False  # whether a plan was put into what was left, not in order of deadlines
    for job in newcomers:
        n, used = b.used[0], b.used[1]
        if used + n + 4 > b.plan_t.size or 2 * n + 16 > b.free_t.size:
            return FULL
        count, finish = least(b, job, now, -1, b.free_t, b.free_v, n, b.plan_t[used:], b.plan_v[used:])
        if count > 0:
            b.used[0], b.used[1] = keep(b, job, n, used, count, finish)
            _insert(b, order, known, job)
            untidy = True
        else:
            verdict = NO
            if _soonest(b, job, now) <= b.deadline[job] + CLOSE:
                _insert(b, order, known, job)
                verdict = _replan(b, order, known + 1, planned + 1, job, now, True)
                if verdict == NO:
                    _remove(order, known, job)
            if verdict == FULL:
                return FULL
            if verdict == NO:
                offer[job], search = _offer(b, order, known, planned, job, now, search)
                continue
            untidy = False
        known, planned = known + 1, planned + 1
    if untidy and _replan(b, order, known, planned, -1, now, True) == FULL:
        return FULL
    return known


@kernel
def _insert(b: ReservationTable, order: Ints, known: int, job: int) -> None:
    """Put a job into its place by deadline, behind equals."""
    place = known
    while place > 0 and b.deadline[order[place - 1]] > b.deadline[job]:
        order[place] = order[place - 1]
        place -= 1
    order[place] = job


@kernel
def _remove(order: Ints, known: int, job: int) -> None:
    """Take a job out again; `known` others stay."""
    place = 0
    while order[place] != job:
        place += 1
    for k in range(place, known):
        order[k] = order[k + 1]


@kernel
def _soonest(b: ReservationTable, job: int, now: float) -> float:
    """When a job could end with all of the cluster to itself and nothing lost."""
    best = np.inf
    for entry in range(b.first[job], b.top[job] + 1):
        best = min(best, now + b.left[job] / b.rate[entry])
    return best


@compiled
def _offer(b: ReservationTable, order: Ints, known: int, planned: int, job: int, now: float, search: int) -> tuple[float, int]:
    """The earliest deadline that would be accepted, in slots (or seconds) before what is free allows; plans that may still be made."""
    asked = b.deadline[job]
    best = max(earliest_end(b, job), asked)
    unit = b.grid if b.grid > 0.0 else 1.0
    floor = max(asked, _soonest(b, job, now) - CLOSE)
    good, bad = 0, 1  # so many units earlier
    if best - floor < 1e15 * unit:
        bad = int((best - floor) / unit) + 1
    while bad - good > 1 and search > known:
        middle = (good + bad) // 2
        b.deadline[job] = best - middle * unit
        _insert(b, order, known, job)
        if _replan(b, order, known + 1, planned + 1, job, now, False) == YES:
            good = middle
        else:
            bad = middle
        _remove(order, known, job)
        search -= known + 1
    b.deadline[job] = asked
    return best - good * unit, search


@compiled
def _replan(b: ReservationTable, order: Ints, known: int, wanted: int, newcomer: int, now: float, stay: bool) -> int:
    """Plan all from nothing: whether as many as wanted are in time, the newcomer among them. If not, or not to stay, nothing changes."""
    n, used = b.used[0], b.used[1]
    free_t, free_v, plan_t, plan_v = b.free_t[:n].copy(), b.free_v[:n].copy(), b.plan_t[:used].copy(), b.plan_v[:used].copy()
    first, count, finish, end = b.plan_first.copy(), b.plan_count.copy(), b.finish.copy(), b.end.copy()
    verdict = _plan_by_deadline(b, order, known, wanted, newcomer, now)
    if verdict == NO or not stay:
        b.free_t[:n], b.free_v[:n], b.plan_t[:used], b.plan_v[:used] = free_t, free_v, plan_t, plan_v
        b.plan_first[:], b.plan_count[:], b.finish[:], b.end[:] = first, count, finish, end
        b.used[0], b.used[1] = n, used
    return verdict


@kernel
def _plan_by_deadline(b: ReservationTable, order: Ints, known: int, wanted: int, newcomer: int, now: float) -> int:
    n, used, late = open_map(b, now), 0, 0
    b.plan_count[:] = 0
    for k in range(known):
        job = order[k]
        if used + n + 4 > b.plan_t.size or 2 * n + 16 > b.free_t.size:
            return FULL
        n = hold(b, job, now, n, -b.held[job])
        count, finish = least(b, job, now, -1, b.free_t, b.free_v, n, b.plan_t[used:], b.plan_v[used:])
        if count > 0:
            n, used = keep(b, job, n, used, count, finish)
            continue
        n = hold(b, job, now, n, b.held[job])
        late += 1
        if job == newcomer or known - late < wanted:
            return NO
    b.used[0], b.used[1] = n, used
    return YES


# Which jobs are admitted, what is reserved for each, and how many GPUs each has now: one pool of devices at one moment.

#: A job that outlived its estimate is given so many seconds more, on its smallest size.
_GRACE = 60.0
#: One that is done but for rounding ends in a moment.
_MOMENT = 1e-7

Plan = tuple[Floats, Ints, float]  # times, GPUs, end


class _TooSmall(Exception):
    """The table has no room for all plans."""


@dataclass
class Decided:
    """What was decided for a pool; jobs are positions in the pool."""

    gpus: Ints
    plans: dict[int, Plan] = field(default_factory=dict)
    admitted: set[int] = field(default_factory=set)
    refused: dict[int, float] = field(default_factory=dict)  # the earliest deadline that could be met
    until: float = math.inf


#: what planning writes into a table
_WRITTEN = ("free_t", "free_v", "plan_t", "plan_v", "plan_first", "plan_count", "finish", "end", "used")


class AdmissionControl:
    """One pool, one moment."""

    def __init__(self, pool: Pool, rules: DeadlinePolicy, known: Iterable[int], plans: dict[int, Plan]) -> None:
        """`known` were admitted earlier; `plans` are those made for them last time."""
        jobs, curves = pool.snapshot.jobs, pool.curves
        self.pool, self.rules, self.now, self.old = pool, rules, pool.snapshot.now, plans
        due = pool.of(jobs.deadline)
        self.deadline = np.where(np.isnan(due), np.inf, due)
        self.able = curves.count > 0
        self.held = np.where(pool.of(jobs.running), pool.of(jobs.held), 0)
        self.known = set(known) | set(np.flatnonzero((self.held > 0) | np.isinf(self.deadline)).tolist())
        self.top = _tops(pool, rules.scale_limit == "knee")
        left = pool.of(jobs.remaining)
        floor = np.ones(len(pool))
        floor[self.able] = curves.rate[curves.first[:-1][self.able]]
        over = pool.of(jobs.done) - pool.of(jobs.estimate) > 1e-9 * (1.0 + pool.of(jobs.estimate))
        self.left = np.where(left > 0.0, left, np.where(over, _GRACE, _MOMENT) * floor)
        self.lag = np.where(self.held > 0, np.maximum(jobs.matrices()[0][Job.SINCE][pool.jobs] - self.now, 0.0), 0.0)
        self.ran = ~np.isnan(pool.of(jobs.first_start))
        kept = [boundary(since + pool.snapshot.min_run, pool.snapshot.round) for since in pool.of(jobs.last_start).tolist()]
        self.bound = np.where(self.held > 0, np.array(kept, dtype=np.float64), -np.inf)
        self.charges = charges(rules, pool)
        self._open(4 * len(pool) + 64, 16 * len(pool) + 256)

    def _open(self, breakpoints: int, entries: int) -> None:
        """Take a new table of that size."""
        n, curves, snapshot = len(self.pool), self.pool.curves, self.pool.snapshot
        self.table = ReservationTable(
            curves.first, curves.size, curves.rate, self.top, self.left, self.deadline, self.held.astype(np.int64), self.lag,
            self.ran, self.bound, *self.charges, self.pool.capacity, *delays(snapshot), snapshot.min_run, snapshot.round,
            np.empty(breakpoints), np.empty(breakpoints, np.int64), np.empty(entries), np.empty(entries, np.int64),
            np.zeros(n, np.int64), np.zeros(n, np.int64), np.full(n, np.inf), np.full(n, np.inf), np.zeros(2, np.int64),
            np.empty((3, breakpoints)), np.empty((3, breakpoints), np.int64),
        )  # fmt: skip
        self.late = np.zeros(n, dtype=np.bool_)

    def decide(self) -> Decided:
        """Admission, plans, spare GPUs."""
        while True:
            try:
                return self._decide() if self.rules.elastic else self._decide_widest()
            except _TooSmall:
                self._open(2 * len(self.table.free_t), 2 * len(self.table.plan_t))

    # --- ElasticFlow ----------------------------------------------------------------------------------------------------
    def _decide(self) -> Decided:
        known, newcomers = self._split()
        self._replan(known)
        decided = Decided(np.zeros(len(self.pool), dtype=np.int64), admitted=set(self.known))
        if newcomers:
            known, decided.refused = self._admit(known, newcomers)
            decided.admitted.update(set(newcomers) - set(decided.refused))
        planned = known[self.table.plan_count[known] > 0]
        decided.gpus[planned] = self.table.plan_v[self.table.plan_first[planned]]
        kept = np.flatnonzero((self.table.plan_count == 0) & (self.bound > self.now + CLOSE))
        decided.gpus[kept] = self.held[kept]
        order = self._by_deadline(sorted(decided.admitted))
        order = order[self.able[order]]
        if share_spare(self.table, order, self.now, self.rules.spare_order == "artifact", decided.gpus) == FULL:
            raise _TooSmall
        decided.plans = self._plans(order)
        changes = [float(times[1]) for times, _, _ in decided.plans.values() if len(times) > 1]
        nearest = float(self.table.free_t[1]) if self.table.used[0] > 1 else math.inf
        decided.until = min([nearest, *changes])
        return decided

    def _split(self) -> tuple[Ints, list[int]]:
        """The admitted jobs with deadlines, by deadline, and those that ask to be admitted."""
        due = np.flatnonzero(self.able & np.isfinite(self.deadline)).tolist()
        if self.rules.admission == "off":
            self.known |= set(due)
        return self._by_deadline([job for job in due if job in self.known]), [job for job in due if job not in self.known]

    def _by_deadline(self, jobs: list[int]) -> Ints:
        listed = np.array(jobs, dtype=np.int64)
        return listed[np.argsort(self.deadline[listed], kind="stable")]

    def _reserve(self, order: Ints) -> int:
        """Plan all jobs from nothing; how many are late."""
        self.table.plan_count[:] = 0
        if reserve_all(self.table, order, self.now, not self.rules.elastic, self.late) == FULL:
            raise _TooSmall
        return int(self.late[order].sum())

    def _replan(self, order: Ints) -> None:
        """Plan from nothing; where a job would be late, follow the old plans if they still hold."""
        if self._reserve(order) == 0:
            return
        kept = {int(job): self.old[int(job)] for job in order if int(job) in self.old}
        planned = int((self.table.plan_count[order] > 0).sum())
        if len(kept) <= planned or not self._restore(kept):
            self._reserve(order)

    def _admit(self, known: Ints, newcomers: list[int]) -> tuple[Ints, dict[int, float]]:
        """The admitted jobs, by deadline, and offers to those that are refused: one by one, or all or none."""
        if self.rules.admission == "group":
            return self._admit_together(known, newcomers)
        order = np.concatenate([known, np.zeros(len(newcomers), dtype=np.int64)])
        offer = np.full(len(self.pool), np.nan)
        count = int(admit_each(self.table, order, len(known), np.array(newcomers, dtype=np.int64), self.now, offer))
        if count == FULL:
            raise _TooSmall
        return order[:count], {job: float(offer[job]) for job in newcomers if not math.isnan(offer[job])}

    def _admit_together(self, known: Ints, group: list[int]) -> tuple[Ints, dict[int, float]]:
        """All of a group, if neither they nor other jobs are late because of it."""
        before = {name: getattr(self.table, name).copy() for name in _WRITTEN}
        order = self._by_deadline([*known.tolist(), *group])
        planned = int((self.table.plan_count[known] > 0).sum())
        if len(order) - self._reserve(order) >= planned + len(group) and not self.late[group].any():
            return order, {}
        self._put_back(before)
        for job in group:
            if reserve_more(self.table, job, self.now, False, self.late) == FULL:
                raise _TooSmall
        if not self.late[group].any():
            return order, {}
        self._put_back(before)
        return known, {job: max(float(earliest_end(self.table, job)), self.deadline[job]) for job in group}

    def _put_back(self, before: dict[str, Any]) -> None:
        """The table as it was."""
        for name, column in before.items():
            getattr(self.table, name)[:] = column

    def _plans(self, order: Ints) -> dict[int, Plan]:
        table, found = self.table, {}
        for job in order[table.plan_count[order] > 0].tolist():
            own = slice(table.plan_first[job], table.plan_first[job] + table.plan_count[job])
            found[job] = (table.plan_t[own].copy(), table.plan_v[own].copy(), float(table.end[job]))
        return found

    def _restore(self, plans: dict[int, Plan]) -> bool:
        """Put exactly these plans into the table; False: they do not hold."""
        table = self.table
        clear_plans(table, self.now)
        need = sum(len(times) for times, _, _ in plans.values())
        if 2 * need + len(table.free_t) // 2 > len(table.plan_t) or 4 * need + 64 > len(table.free_t):
            raise _TooSmall
        return all(follow(table, job, self.now, times, gpus, end) for job, (times, gpus, end) in plans.items())

    # --- earliest deadline first ----------------------------------------------------------------------------------------
    def _decide_widest(self) -> Decided:
        known, newcomers = self._split()
        decided = Decided(np.zeros(len(self.pool), dtype=np.int64), admitted=set(self.known))
        groups, before = [newcomers] if newcomers else [], self._reserve(known) if newcomers else 0
        while groups:
            group = groups.pop()
            order = self._by_deadline([*known.tolist(), *group])
            if self._reserve(order) <= before:
                known = order
                decided.admitted.update(group)
                continue
            if len(group) > 1 and self.rules.admission == "single":
                groups += [group[len(group) // 2 :], group[: len(group) // 2]]
                continue
            self._reserve(known)
            decided.refused |= {job: max(float(earliest_end(self.table, job)), self.deadline[job]) for job in group}
        free = self.pool.capacity
        curves = self.pool.curves
        for job in self._by_deadline(sorted(decided.admitted)).tolist():
            sizes = curves.size[curves.first[job] : self.top[job] + 1]
            fitting = sizes[sizes <= free]
            if len(fitting):
                decided.gpus[job] = fitting[-1]
                free -= int(fitting[-1])
        return decided


def _tops(pool: Pool, knee: bool) -> Ints:
    """The entry of the largest size each job is given: where it is fastest, or the last of its table."""
    curves = pool.curves
    if not knee:
        return curves.first[1:] - 1
    count = np.diff(curves.first)
    able = np.flatnonzero(count)
    found: Ints = curves.first[:-1] - 1
    if len(able):
        most = np.maximum.reduceat(curves.rate, curves.first[able])
        best = np.flatnonzero(curves.rate == np.repeat(most, count[able]))
        owner = np.repeat(able, count[able])[best]
        found[owner[::-1]] = best[::-1]  # of several the smallest
    return found


def plain(plans: dict[int, Plan], rows: list[int]) -> dict[str, Any]:
    """Plans by row, as a memory can hold them."""
    return {str(rows[job]): [times.tolist(), gpus.tolist(), end] for job, (times, gpus, end) in plans.items()}


def restored(stored: dict[str, Any], rows: list[int]) -> dict[int, Plan]:
    """Plans by position, for jobs that are still there."""
    found = {}
    for job, row in enumerate(rows) if stored else ():  # without deadlines there are none
        if (plan := stored.get(str(row))) is not None:
            times, gpus, end = plan
            found[job] = (np.array(times, dtype=np.float64), np.array(gpus, dtype=np.int64), float(end))
    return found
