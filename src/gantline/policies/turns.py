"""Shares of time become turns: which job runs on which type in this round, so that over time each gets its share.

The mechanism of Gavel (OSDI 2020, section 5): a task (a job, or two jobs that share devices) has on every type a
*priority*, its share over the part of the type's time that it has received since the shares were computed. The type's
devices go to the highest priorities; what is left over goes to tasks without a share there (work conservation). What a
task was owed when shares are computed anew is carried along as its *deficit*, which settles ties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel
from gantline.policies.turn_ledger import NO_TURN, Ledger

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
