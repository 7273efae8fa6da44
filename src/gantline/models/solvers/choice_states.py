"""At most one column per job within a few counts of devices, for the greatest saving: job by job, over the counts that are used so far.

Answers to the first jobs that use the same devices differ in nothing but what they save, so one of them goes on (a *state*). The
relaxation of the program bounds what a state can still become: its prices say how much every column loses against the best of its job, and
what a device that stays idle loses. A state that has lost more than lies between the relaxation and a known answer is given up, and so is
one that the jobs to come can neither keep within what there is nor fill well enough. Where costs are equal, as rounded costs often are,
branch and bound walks through all the equal answers; here they are one state.

At most ``most`` states go on from each job to the next, those that have lost least. So the work is bounded whatever the savings are; while
none is left out, the answer is the best there is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel_from_zero

_LARGEST = 2**62 - 1
_HALVINGS = 16  # steps in which the loss is found up to which states go on


class ChoiceStates(NamedTuple):
    """The best answer that was found (-1 per job: none), and whether there is none better."""

    column: Ints
    exact: bool


def states_can_tell(use: Floats) -> bool:
    """Whether resources are used in whole numbers."""
    return bool(np.all(use == np.floor(use)))


def search_states(
    job: Ints, use: Floats, loss: Floats, none: Floats, idle: Floats, free: Floats, most: int, within: float, only_exact: bool = False
) -> ChoiceStates:  # fmt: skip
    """The answer that loses least, if one loses less than ``within``; else no job has a column.

    ``loss`` of each column and ``none`` of each job without one are against the relaxation; so is ``idle``, of every device left over.
    With ``only_exact`` the search ends without an answer once a state would be left out.
    """
    jobs, whole = len(none), np.floor(free).astype(np.int64)
    order = np.lexsort((loss, job))
    first = np.searchsorted(job[order], np.arange(jobs + 1))
    states = _States.of(jobs, whole, most, int(np.diff(first).max(initial=0)) + 1, only_exact)
    need = np.zeros((len(order) + 1, len(whole)), dtype=np.int64)
    need[:-1] = use[order]
    widest, least = np.zeros((jobs, len(whole)), dtype=np.int64), np.full((jobs, len(whole)), whole.max(initial=0), dtype=np.int64)
    _extremes(first, need, widest, least)
    least[(none <= within) | (np.diff(first) == 0)] = 0
    turn = np.argsort(-(widest - least).sum(axis=1), kind="stable")  # the one that may differ most goes first: the others fill what is left
    found = np.full(jobs, -1, dtype=np.int64)
    columns = _Columns(first, need, need @ states.radix, loss[order], none, idle, least, widest)
    exact = _search(turn, columns, whole, within, states, found)
    has = np.flatnonzero(found >= 0)
    found[has] = order[found[has]]
    return ChoiceStates(found, bool(exact))


class _Columns(NamedTuple):
    """The columns of all jobs, those of a job side by side and in order of their losses; the last one is that of a job without any."""

    first: Ints  # of each job, and the end
    need: Ints  # columns x resources
    key: Ints  # one number for what a column needs
    loss: Floats
    none: Floats  # what each job loses without a column
    idle: Floats
    least: Ints  # jobs x resources: what a column of the job needs at least, and at most
    widest: Ints


class _States(NamedTuple):
    """Room for states: those that go on, those that come of them, and how each came about."""

    used: Ints
    key: Ints  # one number for what a state uses: that of its columns, added up
    lost: Floats
    new_used: Ints
    new_key: Ints
    new_lost: Floats
    new_parent: Ints
    new_picked: Ints
    parent: Ints  # jobs x states
    picked: Ints
    slot: Ints  # a hash table of the new states, by what they use; those of earlier steps have lower numbers, and count as none
    radix: Ints  # what one device of each resource adds to the key
    may_use: Ints  # the most that a state may use, for the jobs to come need the rest at least; and the least at which none stays idle
    key_tells: bool  # whether states that use different devices have different keys
    only_exact: bool  # whether the search ends once a state would be left out

    @staticmethod
    def of(jobs: int, free: Ints, most: int, columns: int, only_exact: bool) -> _States:
        room, resources = most * columns, len(free)
        radix = [math.prod((free[r + 1 :] + 1).tolist()) for r in range(resources + 1)]
        used, new_used = np.empty((most, resources), dtype=np.int64), np.empty((room, resources), dtype=np.int64)
        key, new_key, new_parent, new_picked = (np.empty(size, dtype=np.int64) for size in (most, room, room, room))
        parent, picked = (np.empty((jobs, most), dtype=np.int64) for _ in range(2))
        slot = np.full(2 << room.bit_length(), -1, dtype=np.int64)
        lost, new_lost = np.empty(most), np.empty(room)
        wrapped = np.array([each % _LARGEST for each in radix[:resources]], dtype=np.int64)
        may_use = np.zeros((2, resources), dtype=np.int64)
        tells = math.prod((free + 1).tolist()) <= _LARGEST
        return _States(
            used, key, lost, new_used, new_key, new_lost, new_parent, new_picked, parent, picked, slot, wrapped, may_use,
            tells, only_exact,
        )  # fmt: skip


@kernel_from_zero
def _extremes(first: Ints, need: Ints, widest: Ints, least: Ints) -> None:
    """The most and the least of each resource that a column of a job uses."""
    for job in range(first.size - 1):
        for at in range(first[job], first[job + 1]):
            for r in range(need.shape[1]):
                widest[job, r] = max(widest[job, r], need[at, r])
                least[job, r] = min(least[job, r], need[at, r])


@kernel_from_zero
def _search(turn: Ints, columns: _Columns, free: Ints, within: float, states: _States, found: Ints) -> bool:
    """Fill ``found``; whether every state that could matter was looked at."""
    used, lost, parent, picked, may_use = states.used, states.lost, states.parent, states.picked, states.may_use
    jobs, resources, most, exact, count, nothing = turn.size, free.size, lost.size, True, 1, columns.key.size - 1
    first, loss, none, least, widest = columns.first, columns.loss, columns.none, columns.least, columns.widest
    used[0], states.key[0], lost[0] = 0, 0, 0.0
    for r in range(resources):
        may_use[:, r] = free[r]
        for job in range(jobs):
            may_use[0, r] -= least[job, r]
            may_use[1, r] -= widest[job, r]
    for step in range(jobs):
        job = turn[step]
        for r in range(resources):
            may_use[0, r] += least[job, r]
            may_use[1, r] += widest[job, r]
        new, without = 0, none[job] <= within
        alone = first[job + 1] - first[job] + without == 1  # no two states become alike
        for s in range(count):
            total = lost[s] + none[job]
            if without and total <= within:
                new = _reach(states, columns, new, step, s, nothing, total, within, alone)
            for at in range(first[job], first[job + 1]):
                total = lost[s] + loss[at]
                if total > within:
                    break  # columns of a job are in order of their losses
                new = _reach(states, columns, new, step, s, at, total, within, alone)
        exact = exact and new <= most
        if states.only_exact and not exact:
            return False
        count = _go_on(states, new, step)
    best, least_lost = -1, within
    for s in range(count):
        total = lost[s]
        for r in range(resources):
            total += columns.idle[r] * (free[r] - used[s, r])
        if total < least_lost:
            best, least_lost = s, total
    for step in range(jobs - 1, -1, -1):
        if best >= 0:
            found[turn[step]] = picked[step, best] if picked[step, best] < nothing else -1
            best = parent[step, best]
    return exact


@kernel_from_zero
def _reach(
    states: _States, columns: _Columns, new: int, step: int, s: int, at: int, total: float, within: float, alone: bool
) -> int:  # fmt: skip
    """Note the state that comes of state s by column ``at``, unless it cannot end well or one like it has lost less."""
    spare = total
    for r in range(columns.idle.size):
        taken = states.used[s, r] + columns.need[at, r]
        if taken > states.may_use[0, r]:
            return new
        if taken < states.may_use[1, r]:
            spare += columns.idle[r] * (states.may_use[1, r] - taken)
        states.new_used[new, r] = taken
    if spare > within:
        return new
    key = states.key[s] + columns.key[at]
    if not alone:
        last, base = states.slot.size - 1, step * states.new_lost.size
        place = (((((key >> 3) * 0x9E3779B97F4A7C1) >> 20) << 3) | (key & 7)) & last  # states that use nearly the same lie side by side
        while states.slot[place] >= base:
            old = states.slot[place] - base
            if states.new_key[old] == key and (states.key_tells or _alike(states.new_used, old, new)):
                if total < states.new_lost[old]:
                    states.new_lost[old], states.new_parent[old], states.new_picked[old] = total, s, at
                return new
            place = (place + 1) & last
        states.slot[place] = base + new
    states.new_key[new], states.new_lost[new], states.new_parent[new], states.new_picked[new] = key, total, s, at
    return new + 1


@kernel_from_zero
def _alike(used: Ints, one: int, other: int) -> bool:
    """Whether two states use the same devices."""
    same = True
    for r in range(used.shape[1]):
        same = same and used[one, r] == used[other, r]
    return same


@kernel_from_zero
def _go_on(states: _States, new: int, step: int) -> int:
    """Let the new states go on; of too many those that have lost least, about: the last of them in the order in which they came."""
    most, sure, limit, lost = states.lost.size, -1.0, np.inf, states.new_lost  # losses are zero or more, and many are zero
    if new > most:
        surely, limit = 0, 0.0
        for e in range(new):
            limit = max(limit, lost[e])
        for _ in range(_HALVINGS):  # counting all of them again is quicker than to set aside those between the two
            middle, below = (sure + limit) / 2.0, 0
            for e in range(new):
                below += lost[e] <= middle
            if below <= most:
                sure, surely = middle, below
            else:
                limit = middle
        most -= surely  # what is left for those between the two
    count = 0
    for e in range(new):
        if lost[e] > sure:
            if lost[e] > limit or most <= 0:
                continue
            most -= 1
        for r in range(states.used.shape[1]):
            states.used[count, r] = states.new_used[e, r]
        states.key[count], states.lost[count] = states.new_key[e], states.new_lost[e]
        states.parent[step, count], states.picked[step, count] = states.new_parent[e], states.new_picked[e]
        count += 1
    return count
