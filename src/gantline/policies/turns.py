"""Shares of time become turns: which job runs on which type in this round, so that over time each gets its share.

The mechanism of Gavel (OSDI 2020, section 5): a task (a job, or two jobs that share devices) has on every type a
*priority*, its share over the part of the type's time that it has received since the shares were computed. The type's
devices go to the highest priorities; what is left over goes to tasks without a share there (work conservation). What
a task was owed when shares are computed anew is carried along as its *deficit*, which settles ties. The `Ledger` is
the account behind that, a plain value between decisions: what every task should have, has received and is owed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel

NO_TURN = -1


@dataclass(frozen=True)
class Ledger:
    """Tables are [task, type]. ``first`` and ``second`` (-1: alone) are positions in ``jobs``."""

    jobs: tuple[str, ...]
    first: Ints
    second: Ints
    share: Floats
    time: Floats  # received since the shares were computed, and half a turn
    deficit: Floats
    known: Ints  # whether the shares were computed with it
    turn: Ints  # type of the turn it was given last
    service: Floats  # [job] seconds it had run by then
    total: Floats  # [type] time received by all
    computed: float = -np.inf  # when the shares were
    stale: bool = True  # jobs or devices have changed since
    ends: float = -np.inf  # end of the present turns, where decisions follow events

    @classmethod
    def empty(cls, types: int) -> Ledger:
        none, table = np.zeros(0, dtype=np.int64), np.zeros((0, types))
        return cls((), none, none, table, table, table, none, none, np.zeros(0), np.zeros(types))

    # --- memory -----------------------------------------------------------------------------------------------------
    def plain(self) -> dict[str, Any]:
        """The account as a value that can be stored."""
        return {**{name: getattr(self, name) for name in self.__dataclass_fields__}, "jobs": list(self.jobs)}

    @classmethod
    def recall(cls, stored: Any, types: int) -> Ledger:
        """The account that was stored; a new one if there is none, or if the types have changed."""
        if stored is None or stored["share"].shape[1] != types:
            return cls.empty(types)
        return cls(**{**stored, "jobs": tuple(stored["jobs"])})

    # --- what happens -----------------------------------------------------------------------------------------------
    def credited(self, jobs: Sequence[str], service: Floats) -> Ledger:
        """With the time that every task has run since the last decision."""
        place = {job: i for i, job in enumerate(jobs)}
        ran = np.array([service[place[job]] - had if job in place else 0.0 for job, had in zip(self.jobs, self.service)])
        on = np.flatnonzero(self.turn >= 0)
        if not len(on):
            return self
        time, total = self.time.copy(), self.total.copy()
        one, two = self.first[on], self.second[on]
        seconds = np.maximum(np.maximum(ran[one], np.where(two >= 0, ran[two], 0.0)), 0.0)
        np.add.at(time, (on, self.turn[on]), seconds)
        np.add.at(total, self.turn[on], seconds)
        return replace(self, time=time, total=total)

    def updated(self, jobs: Sequence[str], scale: Ints, service: Floats, pairs: bool, length: float) -> Ledger:
        """The account of the jobs now present: those gone are struck off, new ones have half a turn on credit."""
        if tuple(jobs) == self.jobs:
            return replace(self, service=np.array(service))
        first, second = tasks_of(scale, pairs)
        place, now = {job: i for i, job in enumerate(self.jobs)}, {job: i for i, job in enumerate(jobs)}
        old = np.array([*(place.get(job, -1) for job in jobs), -1], dtype=np.int64)  # -1 picks the last entry: none
        index = np.full((len(self.jobs) + 1, len(self.jobs) + 1), -1, dtype=np.int64)
        index[self.first, self.second] = np.arange(len(self.first))
        was = np.where((old[first] >= 0) & ((second < 0) | (old[second] >= 0)), index[old[first], old[second]], -1)
        there = was >= 0
        types = self.share.shape[1]
        share, deficit = np.zeros((len(first), types)), np.zeros((len(first), types))
        time = np.where(second < 0, length / 2.0, 0.0)[:, None] * np.ones(types)
        known, turn = np.zeros(len(first), dtype=np.int64), np.full(len(first), NO_TURN, dtype=np.int64)
        for new, had in ((share, self.share), (time, self.time), (deficit, self.deficit), (known, self.known), (turn, self.turn)):
            new[there] = had[was[there]]
        for pair in np.flatnonzero((self.turn >= 0) & (self.second >= 0)):  # a job whose mate has left goes on alone
            left = [now[job] for job in (self.jobs[self.first[pair]], self.jobs[self.second[pair]]) if job in now]
            if len(left) == 1:
                turn[np.flatnonzero((first == left[0]) & (second < 0))] = self.turn[pair]
        return replace(
            self, jobs=tuple(jobs), first=first, second=second, share=share, time=time, deficit=deficit, known=known, turn=turn,
            service=np.array(service), stale=True,
        )  # fmt: skip

    def renewed(self, share: Floats, paired: Floats, now: float, length: float) -> Ledger:
        """With new shares: what was owed under the old ones is carried along, and counting begins again.

        Shares of pairs stand in the order of their members' positions.
        """
        elapsed = now - self.computed if np.isfinite(self.computed) else 0.0
        deficit = self.deficit + self.share * elapsed - (self.time - length / 2.0)
        table = np.empty_like(self.share)
        alone = self.second < 0
        table[alone] = share[self.first[alone]]
        if not alone.all():
            by_members = np.lexsort((self.second[~alone], self.first[~alone]))
            table[np.flatnonzero(~alone)[by_members]] = paired
        half = np.full_like(table, length / 2.0)
        return replace(
            self, share=table, time=half, deficit=deficit, known=np.ones(len(table), dtype=np.int64), total=half.sum(axis=0),
            computed=now, stale=False,
        )  # fmt: skip


def tasks_of(scale: Ints, pairs: bool) -> tuple[Ints, Ints]:
    """Members of all tasks: each job, and behind it its pairs with the jobs before it that have gangs of its size."""
    jobs = np.arange(len(scale))
    if not pairs:
        return jobs, np.full(len(scale), -1, dtype=np.int64)
    late, early = np.tril_indices(len(scale), -1)
    equal = scale[late] == scale[early]
    late, early = late[equal], early[equal]
    first, second = np.concatenate((jobs, early)), np.concatenate((np.full(len(scale), -1), late))
    order = np.lexsort((first, second >= 0, np.maximum(first, second)))
    return first[order], second[order]


RESERVED = -2  # holds a place that it may not use in this round
UNTRIED = 1e9  # priority per share of a task that has received nothing at all


class TurnTasks(NamedTuple):
    """Tasks, of which the first ``present`` are there. Tables are [task, type]."""

    share: Floats
    time: Floats
    deficit: Floats
    speed: Floats
    need: Ints  # devices
    first: Ints  # its jobs
    second: Ints  # -1: alone
    known: Ints  # whether shares were computed with it
    present: int


class TurnScratch(NamedTuple):
    """Room to choose in; ``busy`` is all zero, before and after."""

    priority: Floats
    heap: Ints
    busy: Ints  # per job


@kernel
def choose_turns(
    tasks: TurnTasks, total: Floats, order: Ints, free: Ints, strict: bool, wasteful: bool, scratch: TurnScratch, turn: Ints, chosen: Ints
) -> int:
    """The type of every task's turn, or NO_TURN; tasks that have one are listed in ``chosen``, as many as are returned.

    ``total`` is the time received of each type by all. Types are filled in the given order; ``free`` counts down.
    ``strict`` leaves devices idle rather than give them to tasks without a share. A task that is not known may fill idle
    devices; if ``wasteful``, it takes their place but not a turn.
    """
    share, time, deficit, speed, need, first, second, known, present = tasks
    priority, heap, busy = scratch
    count = 0
    for task in range(present):
        turn[task] = NO_TURN
    for place in range(order.shape[0]):
        j = order[place]
        if free[j] <= 0:
            continue
        n = 0
        for task in range(present):
            if speed[task, j] <= 0.0 or busy[first[task]] == 1 or (second[task] >= 0 and busy[second[task]] == 1):
                continue
            value = 0.0
            if share[task, j] > 0.0:
                part = time[task, j] / total[j] if total[j] > 0.0 else 0.0
                value = share[task, j] / part if part > 0.0 else share[task, j] * UNTRIED
            if strict and value <= 0.0:
                continue
            priority[task] = value
            heap[n] = task
            n += 1
        for at in range(n // 2 - 1, -1, -1):
            sink(heap, at, n, priority, deficit, share, j)
        while n > 0 and free[j] > 0:
            task = heap[0]
            n -= 1
            heap[0] = heap[n]
            sink(heap, 0, n, priority, deficit, share, j)
            if need[task] > free[j] or busy[first[task]] == 1 or (second[task] >= 0 and busy[second[task]] == 1):
                continue
            free[j] -= need[task]
            busy[first[task]] = 1
            if second[task] >= 0:
                busy[second[task]] = 1
            if known[task] == 1 or not wasteful:
                turn[task] = j
                chosen[count] = task
                count += 1
            else:
                turn[task] = RESERVED
    for task in range(present):
        busy[first[task]] = 0
        if second[task] >= 0:
            busy[second[task]] = 0
    return count


@kernel
def sink(heap: Ints, at: int, n: int, priority: Floats, deficit: Floats, share: Floats, j: int) -> None:
    """Move an entry of the heap down until none below it precedes it."""
    task = heap[at]
    while True:
        child = 2 * at + 1
        if child >= n:
            break
        if child + 1 < n and comes_before(heap[child + 1], heap[child], priority, deficit, share, j):
            child += 1
        if not comes_before(heap[child], task, priority, deficit, share, j):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = task


@kernel
def comes_before(a: int, b: int, priority: Floats, deficit: Floats, share: Floats, j: int) -> bool:
    """Higher priority, then the larger deficit, then the larger share, then the place in the list."""
    if priority[a] != priority[b]:
        return bool(priority[a] > priority[b])
    if deficit[a, j] != deficit[b, j]:
        return bool(deficit[a, j] > deficit[b, j])
    if share[a, j] != share[b, j]:
        return bool(share[a, j] > share[b, j])
    return a < b


@dataclass(frozen=True)
class Given:
    """Which tasks have a turn: the type of every task's turn, and the tasks in the order in which they were chosen."""

    turn: Ints
    chosen: Ints


def next_turns(
    ledger: Ledger, speed: Floats, scale: Ints, order: Ints, capacity: Ints, kept: Bools, *, strict: bool, wasteful: bool
) -> Given:
    """The next turns; jobs that are ``kept`` go on as they are. ``speed`` is [task, type], ``scale`` and ``kept`` per job."""
    tasks = len(ledger.first)
    free, busy = capacity.copy(), np.zeros(len(scale), dtype=np.int64)
    stays = (ledger.turn >= 0) & kept[ledger.first] & ((ledger.second < 0) | kept[ledger.second])
    for task in np.flatnonzero(stays):
        free[ledger.turn[task]] -= scale[ledger.first[task]]
        busy[ledger.first[task]] = 1
        if ledger.second[task] >= 0:
            busy[ledger.second[task]] = 1
    turn, chosen = np.empty(tasks, dtype=np.int64), np.empty(tasks, dtype=np.int64)
    count = choose_turns(
        TurnTasks(ledger.share, ledger.time, ledger.deficit, speed, scale[ledger.first], ledger.first, ledger.second, ledger.known, tasks),
        ledger.total,
        order,
        np.maximum(free, 0),
        strict,
        wasteful,
        TurnScratch(np.empty(tasks), np.empty(tasks, dtype=np.int64), busy),
        turn,
        chosen,
    )
    turn[stays] = ledger.turn[stays]
    return Given(np.maximum(turn, NO_TURN), np.concatenate((np.flatnonzero(stays), chosen[:count])))
