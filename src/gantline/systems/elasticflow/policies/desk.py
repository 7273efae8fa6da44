"""Which jobs are admitted, what is reserved for each, and how many GPUs each has now: one pool of devices at one moment."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.jit import kernel
from gantline.policies.elastic.pools import Pool
from gantline.systems.elasticflow.policies.admission import admit_each
from gantline.systems.elasticflow.policies.booking import CLOSE, FULL, Book, begin_anew, book_all, book_more, boundary, earliest_end, follow
from gantline.systems.elasticflow.policies.charges import charges, delays
from gantline.systems.elasticflow.policies.settings import DeadlinePolicy
from gantline.systems.elasticflow.policies.spare import share_spare

#: A job that outlived its estimate is given so many seconds more, on its smallest size.
_GRACE = 60.0
#: One that is done but for rounding ends in a moment.
_MOMENT = 1e-7

Plan = tuple[Floats, Ints, float]  # times, GPUs, end


class _TooSmall(Exception):
    """The book has no room for all plans."""


@dataclass
class Decided:
    """What was decided for a pool; jobs are positions in the pool."""

    gpus: Ints
    plans: dict[int, Plan] = field(default_factory=dict)
    admitted: set[int] = field(default_factory=set)
    refused: dict[int, float] = field(default_factory=dict)  # the earliest deadline that could be met
    until: float = math.inf


#: what planning writes into a book
_WRITTEN = ("free_t", "free_v", "plan_t", "plan_v", "plan_first", "plan_count", "finish", "end", "used")


class AdmissionDesk:
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
        self.bound = np.where(self.held > 0, _on_grid(pool.of(jobs.last_start) + pool.snapshot.min_run, pool.snapshot.round), -np.inf)
        self.charges = charges(rules, pool)
        self._open(4 * len(pool) + 64, 16 * len(pool) + 256)

    def _open(self, breakpoints: int, entries: int) -> None:
        """Take a new book of that size."""
        n, curves, snapshot = len(self.pool), self.pool.curves, self.pool.snapshot
        self.book = Book(
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
                self._open(2 * len(self.book.free_t), 2 * len(self.book.plan_t))

    # --- ElasticFlow ----------------------------------------------------------------------------------------------------
    def _decide(self) -> Decided:
        known, newcomers = self._split()
        self._replan(known)
        decided = Decided(np.zeros(len(self.pool), dtype=np.int64), admitted=set(self.known))
        if newcomers:
            known, decided.refused = self._admit(known, newcomers)
            decided.admitted.update(set(newcomers) - set(decided.refused))
        planned = known[self.book.plan_count[known] > 0]
        decided.gpus[planned] = self.book.plan_v[self.book.plan_first[planned]]
        kept = np.flatnonzero((self.book.plan_count == 0) & (self.bound > self.now + CLOSE))
        decided.gpus[kept] = self.held[kept]
        order = self._by_deadline(sorted(decided.admitted))
        order = order[self.able[order]]
        if share_spare(self.book, order, self.now, self.rules.spare_order == "artifact", decided.gpus) == FULL:
            raise _TooSmall
        decided.plans = self._plans(order)
        changes = [float(times[1]) for times, _, _ in decided.plans.values() if len(times) > 1]
        nearest = float(self.book.free_t[1]) if self.book.used[0] > 1 else math.inf
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

    def _book(self, order: Ints) -> int:
        """Plan all jobs from nothing; how many are late."""
        self.book.plan_count[:] = 0
        if book_all(self.book, order, self.now, not self.rules.elastic, self.late) == FULL:
            raise _TooSmall
        return int(self.late[order].sum())

    def _replan(self, order: Ints) -> None:
        """Plan from nothing; where a job would be late, follow the old plans if they still hold."""
        if self._book(order) == 0:
            return
        kept = {int(job): self.old[int(job)] for job in order if int(job) in self.old}
        planned = int((self.book.plan_count[order] > 0).sum())
        if len(kept) <= planned or not self._restore(kept):
            self._book(order)

    def _admit(self, known: Ints, newcomers: list[int]) -> tuple[Ints, dict[int, float]]:
        """The admitted jobs, by deadline, and offers to those that are refused: one by one, or all or none."""
        if self.rules.admission == "group":
            return self._admit_together(known, newcomers)
        order = np.concatenate([known, np.zeros(len(newcomers), dtype=np.int64)])
        offer = np.full(len(self.pool), np.nan)
        count = int(admit_each(self.book, order, len(known), np.array(newcomers, dtype=np.int64), self.now, offer))
        if count == FULL:
            raise _TooSmall
        return order[:count], {job: float(offer[job]) for job in newcomers if not math.isnan(offer[job])}

    def _admit_together(self, known: Ints, group: list[int]) -> tuple[Ints, dict[int, float]]:
        """All of a group, if neither they nor other jobs are late because of it."""
        before = {name: getattr(self.book, name).copy() for name in _WRITTEN}
        order = self._by_deadline([*known.tolist(), *group])
        planned = int((self.book.plan_count[known] > 0).sum())
        if len(order) - self._book(order) >= planned + len(group) and not self.late[group].any():
            return order, {}
        self._put_back(before)
        for job in group:
            if book_more(self.book, job, self.now, False, self.late) == FULL:
                raise _TooSmall
        if not self.late[group].any():
            return order, {}
        self._put_back(before)
        return known, {job: max(float(earliest_end(self.book, job, self.now)), self.deadline[job]) for job in group}

    def _put_back(self, before: dict[str, Any]) -> None:
        """The book as it was."""
        for name, column in before.items():
            getattr(self.book, name)[:] = column

    def _plans(self, order: Ints) -> dict[int, Plan]:
        book, found = self.book, {}
        for job in order[book.plan_count[order] > 0].tolist():
            own = slice(book.plan_first[job], book.plan_first[job] + book.plan_count[job])
            found[job] = (book.plan_t[own].copy(), book.plan_v[own].copy(), float(book.end[job]))
        return found

    def _restore(self, plans: dict[int, Plan]) -> bool:
        """Put exactly these plans into the book; False: they do not hold."""
        book = self.book
        begin_anew(book, self.now)
        need = sum(len(times) for times, _, _ in plans.values())
        if 2 * need + len(book.free_t) // 2 > len(book.plan_t) or 4 * need + 64 > len(book.free_t):
            raise _TooSmall
        return all(follow(book, job, self.now, times, gpus, end) for job, (times, gpus, end) in plans.items())

    # --- earliest deadline first ----------------------------------------------------------------------------------------
    def _decide_widest(self) -> Decided:
        known, newcomers = self._split()
        decided = Decided(np.zeros(len(self.pool), dtype=np.int64), admitted=set(self.known))
        groups, before = [newcomers] if newcomers else [], self._book(known) if newcomers else 0
        while groups:
            group = groups.pop()
            order = self._by_deadline([*known.tolist(), *group])
            if self._book(order) <= before:
                known = order
                decided.admitted.update(group)
                continue
            if len(group) > 1 and self.rules.admission == "single":
                groups += [group[len(group) // 2 :], group[: len(group) // 2]]
                continue
            self._book(known)
            decided.refused |= {job: max(float(earliest_end(self.book, job, self.now)), self.deadline[job]) for job in group}
        free = self.pool.capacity
        curves = self.pool.curves
        for job in self._by_deadline(sorted(decided.admitted)).tolist():
            sizes = curves.size[curves.first[job] : self.top[job] + 1]
            fitting = sizes[sizes <= free]
            if len(fitting):
                decided.gpus[job] = fitting[-1]
                free -= int(fitting[-1])
        return decided


def _on_grid(times: Floats, round: float) -> Floats:
    """The next moments at which something can change."""
    found = times.copy()
    _to_boundaries(found, round)
    return found


@kernel
def _to_boundaries(times: Floats, round: float) -> None:
    for k in range(times.size):
        times[k] = boundary(times[k], round)


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
