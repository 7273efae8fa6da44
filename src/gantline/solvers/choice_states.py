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
    need = use[order].astype(np.int64)
    widest, least = np.zeros((jobs, len(whole)), dtype=np.int64), np.full((jobs, len(whole)), whole.max(initial=0), dtype=np.int64)
    np.maximum.at(widest, job[order], need)
    np.minimum.at(least, job[order], need)
    least[(none <= within) | (np.diff(first) == 0)] = 0
    turn = np.argsort(-(widest - least).sum(axis=1), kind="stable")  # who may differ most goes first: the others fill what is left
    states = _States.of(jobs, len(whole), most, int(np.diff(first).max(initial=0)) + 1, only_exact)
    found = np.full(jobs, -1, dtype=np.int64)
    exact = _search(turn, first, need, loss[order], none, idle, whole, least, widest, within, states, found)
    has = np.flatnonzero(found >= 0)
    found[has] = order[found[has]]
    return ChoiceStates(found, bool(exact))


class _States(NamedTuple):
    """Room for states: those that go on, those that come of them, and how each came about."""

    used: Ints
    lost: Floats
    new_used: Ints
    new_lost: Floats
    new_parent: Ints
    new_picked: Ints
    parent: Ints  # jobs x states
    picked: Ints
    slot: Ints  # a hash table of the new states, by what they use; those of earlier steps have lower numbers, and count as none
    between: Floats  # losses of new states of which it is open whether they go on
    to_come: Ints  # devices that the jobs to come take at least, and at most
    only_exact: bool  # whether the search ends once a state would be left out

    @staticmethod
    def of(jobs: int, resources: int, most: int, columns: int, only_exact: bool) -> _States:
        room, slots = most * columns, 2 << (most * columns).bit_length()
        whole = (
            np.empty(size, dtype=np.int64) for size in ((most, resources), (room, resources), room, room, (jobs, most), (jobs, most), slots)
        )
        used, new_used, new_parent, new_picked, parent, picked, slot = whole
        lost, new_lost, between = np.empty(most), np.empty(room), np.empty(room)
        slot.fill(-1)
        return _States(
            used,
            lost,
            new_used,
            new_lost,
            new_parent,
            new_picked,
            parent,
            picked,
            slot,
            between,
            np.zeros((2, resources), np.int64),
            only_exact,
        )


@kernel_from_zero
def _search(
    turn: Ints, first: Ints, need: Ints, loss: Floats, none: Floats, idle: Floats, free: Ints, least: Ints, widest: Ints, within: float,
    states: _States, found: Ints,
) -> bool:  # fmt: skip
    """Fill ``found``; whether every state that could matter was looked at."""
    used, lost, parent, picked, to_come = states.used, states.lost, states.parent, states.picked, states.to_come
    jobs, resources, most, exact, count = turn.size, free.size, lost.size, True, 1
    used[0], lost[0] = 0, 0.0
    for job in range(jobs):
        for r in range(resources):
            to_come[0, r] += least[job, r]
            to_come[1, r] += widest[job, r]
    for step in range(jobs):
        job = turn[step]
        for r in range(resources):
            to_come[0, r] -= least[job, r]
            to_come[1, r] -= widest[job, r]
        new = 0
        only = _only_choice(first[job], first[job + 1], none[job] <= within)
        for s in range(count if only >= -1 else 0):  # no two of these become alike
            total = lost[s] + (loss[only] if only >= 0 else none[job])
            if total <= within and _use(states, new, s, only, total, need, idle, free, within) >= 0:
                states.new_lost[new], states.new_parent[new], states.new_picked[new] = total, s, only
                new += 1
        for s in range(count if only < -1 else 0):
            total = lost[s] + none[job]
            new = _reach(states, new, step, s, -1, total, need, idle, free, within) if total <= within else new
            for at in range(first[job], first[job + 1]):
                total = lost[s] + loss[at]
                if total > within:
                    break  # columns of a job are in order of their losses
                new = _reach(states, new, step, s, at, total, need, idle, free, within)
        exact = exact and new <= most
        if states.only_exact and not exact:
            return False
        count = _go_on(states, new, step)
    best, least_lost = -1, within
    for s in range(count):
        total = lost[s]
        for r in range(resources):
            total += idle[r] * (free[r] - used[s, r])
        if total < least_lost:
            best, least_lost = s, total
    for step in range(jobs - 1, -1, -1):
        if best >= 0:
            found[turn[step]] = picked[step, best]
            best = parent[step, best]
    return exact


@kernel_from_zero
def _only_choice(begin: int, end: int, may_have_none: bool) -> int:
    """The one column of a job that must have it, or -1 where having none is all it can; -2: it has a choice."""
    if may_have_none:
        return -1 if begin == end else -2
    return begin if end == begin + 1 else -2


@kernel_from_zero
def _use(states: _States, new: int, s: int, at: int, total: float, need: Ints, idle: Floats, free: Ints, within: float) -> int:
    """Write down what state s and column ``at`` (-1: none) use together; one number for that, or -1 where it cannot end well."""
    key, spare = 0, total
    for r in range(free.size):
        taken = states.used[s, r] + (need[at, r] if at >= 0 else 0)
        if taken + states.to_come[0, r] > free[r]:
            return -1
        spare += idle[r] * max(free[r] - taken - states.to_come[1, r], 0)
        key = key * (free[r] + 1) + taken
        states.new_used[new, r] = taken
    return key & _LARGEST if spare <= within else -1


@kernel_from_zero
def _reach(
    states: _States, new: int, step: int, s: int, at: int, total: float, need: Ints, idle: Floats, free: Ints, within: float
) -> int:  # fmt: skip
    """Note the state that comes of state s by column ``at`` (-1: none), unless it cannot end well or one like it has lost less."""
    key = _use(states, new, s, at, total, need, idle, free, within)
    if key < 0:
        return new
    last, base = states.slot.size - 1, step * states.new_lost.size
    place = (((((key >> 3) * 0x9E3779B97F4A7C1) >> 20) << 3) | (key & 7)) & last  # states that use nearly the same lie side by side
    while states.slot[place] >= base:
        old = states.slot[place] - base
        same = True
        for r in range(free.size):
            same = same and states.new_used[old, r] == states.new_used[new, r]
        if same:
            if total < states.new_lost[old]:
                states.new_lost[old], states.new_parent[old], states.new_picked[old] = total, s, at
            return new
        place = (place + 1) & last
    states.slot[place] = base + new
    states.new_lost[new], states.new_parent[new], states.new_picked[new] = total, s, at
    return new + 1


@kernel_from_zero
def _go_on(states: _States, new: int, step: int) -> int:
    """Let the new states go on; of too many those that have lost least, about: the last of them in the order in which they came."""
    most, sure, limit = states.lost.size, -1.0, np.inf  # losses are zero or more, and many are zero
    if new > most:
        between, open_, limit = states.between, new, 0.0
        for e in range(new):
            between[e] = states.new_lost[e]
            limit = max(limit, between[e])
        for _ in range(_HALVINGS):
            middle, below, kept = (sure + limit) / 2.0, 0, 0
            for e in range(open_):
                below += between[e] <= middle
            enter = below <= most
            for e in range(open_):
                if (between[e] > middle) == enter:
                    between[kept] = between[e]
                    kept += 1
            open_ = kept
            if enter:
                sure = middle
                most -= below  # what is left for those between the two
            else:
                limit = middle
    count = 0
    for e in range(new):
        if states.new_lost[e] > sure:
            if states.new_lost[e] > limit or most <= 0:
                continue
            most -= 1
        for r in range(states.used.shape[1]):
            states.used[count, r] = states.new_used[e, r]
        states.lost[count] = states.new_lost[e]
        states.parent[step, count], states.picked[step, count] = states.new_parent[e], states.new_picked[e]
        count += 1
    return count
