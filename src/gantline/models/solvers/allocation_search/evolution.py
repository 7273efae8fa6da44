"""A population of allocations, varied and selected for so many generations, in compiled code (NSGA-II; Deb et al., 2002)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel_from_zero as kernel
from gantline.models.solvers.allocation_search.chance import STEP, shuffle, uniform
from gantline.models.solvers.allocation_search.fronts import (
    count_fronts,
    crowding,
    find_fronts,
    group_by_front,
    merge_by_objectives,
    sort_by,
    sort_by_objectives,
)
from gantline.models.solvers.allocation_search.scratch import Scratch, Small
from gantline.models.solvers.allocation_search.settling import UNKNOWN, Problem, Rules, settle, tell_worth
from gantline.models.solvers.allocation_search.variation import vary
from gantline.models.solvers.allocation_search.words import Fields, Layout, Words, fields_of

_CROSSOVER = 0.9  # chance that two parents exchange rows
_TRIES = 101  # matings per generation, if children keep being copies
_GONE, _CHILD = -1, -2  # in place of a front: place is free, a child that is in no front yet


class Population(NamedTuple):
    """Places for members, for as many children, and one for a child too many."""

    rows: Words  # [places, words, jobs]
    objective: Floats  # [2, places]
    mark: Words  # a hash of each
    crowd: Floats
    order: Ints  # places of the members, then of the children
    sorted: Ints  # the same by objectives
    grouped: Ints  # the same by front
    rank: Ints  # the front of each member; below zero: none
    room: Ints  # to work with
    keys: Floats  # to work with
    parents: Ints
    begin: Ints  # of each front, among those that are sorted
    slots: Small  # a table of hashes: places of the members and children, each plus one


@kernel
def evolve(
    seed: int, layout: Layout, rules: Rules, problem: Problem, p: Population, s: Scratch, given: int, size: int, generations: int
) -> tuple[int, int, int]:
    """Run the search; the best member's place, the number of members and that of generations."""
    tell_worth(problem)
    f, state = fields_of(layout), np.uint64(seed)
    count = 0
    for i in range(given):
        place = p.order[count]
        if i != place:
            _copy(p.rows[i], p.rows[place])
        state, new = _enter(state, f, rules, problem, p, s, place, UNKNOWN)
        count += 1 if new else 0
    state, count = survive(state, p, 0, count, size)
    made = 1
    while made < generations:
        state, children = breed(state, f, rules, problem, p, s, count, size)
        if children == 0:
            break
        state, count = survive(state, p, count, children, size)
        made += 1
    best, value = p.order[0], p.objective[0]
    for i in range(1, count):
        if value[p.order[i]] < value[best]:
            best = p.order[i]
    return best, count, made


@kernel
def breed(
    state: np.uint64, f: Fields, rules: Rules, problem: Problem, p: Population, s: Scratch, count: int, size: int
) -> tuple[np.uint64, int]:
    """Children into the places behind the members; copies of a member are left out, and others tried. How many there are."""
    made, jobs = 0, p.rows.shape[2]
    for _ in range(_TRIES):
        matings = (size - made + 1) // 2
        state = _select(state, p, count, 2 * matings)
        for i in range(matings):
            at, cut = count + made, 0
            state += STEP
            if uniform(state) < _CROSSOVER:
                state += STEP
                cut = int(uniform(state) * jobs)
            for side in range(2):  # two children: each has the other's rows
                place = p.order[count + made]
                one, two = p.rows[p.parents[2 * i + side]], p.rows[p.parents[2 * i + 1 - side]]
                state, chosen = vary(state, f, one, two, cut, p.rows[place], problem.present, problem.room, s)
                state, new = _enter(state, f, rules, problem, p, s, place, chosen)
                if new:
                    made += 1
                elif side == 0:  # the second moves up into its place
                    p.order[at], p.order[at + 1] = p.order[at + 1], p.order[at]
                if made >= size:
                    return state, made
    return state, made


@kernel
def _enter(
    state: np.uint64, f: Fields, rules: Rules, problem: Problem, p: Population, s: Scratch, place: int, chosen: int
) -> tuple[np.uint64, bool]:
    """Make a child possible and judge it; False if it equals one of the others, else it is remembered."""
    rows = p.rows[place]
    state, mark, first, second = settle(state, f, rules, problem, rows, chosen, s)
    p.objective[0, place], p.objective[1, place], p.mark[place] = first, second, mark
    last = p.slots.size - 1
    at = np.int64(mark & np.uint64(last))
    while p.slots[at]:
        other = p.slots[at] - 1
        if p.mark[other] == mark and _same(p.rows[other], rows):
            return state, False
        at = (at + 1) & last
    p.slots[at] = place + 1
    return state, True


@kernel
def _select(state: np.uint64, p: Population, count: int, wanted: int) -> np.uint64:
    """Parents by tournament: random permutations of the members are cut into pairs, and the better of each pair is taken."""
    at, permuted = count, p.room
    for i in range(wanted):
        pair_a, pair_b = 0, 0
        for _ in range(2):
            if at >= count:
                for k in range(count):
                    permuted[k] = p.order[k]
                state = shuffle(state, permuted, 0, count)
                at = 0
            pair_a, pair_b = pair_b, permuted[at]
            at += 1
        state, p.parents[i] = _better(state, p, pair_a, pair_b)
    return state


@kernel
def _better(state: np.uint64, p: Population, a: int, b: int) -> tuple[np.uint64, int]:
    """The one that dominates the other, else the less crowded, else either."""
    first, second = p.objective[0], p.objective[1]
    x, y, u, v = first[a], second[a], first[b], second[b]
    wins = (x <= u) & (y <= v) & ((x < u) | (y < v))
    loses = (u <= x) & (v <= y) & ((u < x) | (v < y))
    if not (wins | loses) and p.crowd[a] == p.crowd[b]:
        state += STEP
        return state, a if uniform(state) < 0.5 else b
    wins = wins | (not loses and p.crowd[a] > p.crowd[b])
    return state, a if wins else b


@kernel
def survive(state: np.uint64, p: Population, members: int, children: int, size: int) -> tuple[np.uint64, int]:
    """Keep the best, front by front; of a front that does not fit whole, those in the emptiest places. How many are kept."""
    first, second, count = p.objective[0], p.objective[1], members + children
    _sort_in(p, members, children)
    fronts = find_fronts(first, second, p.sorted, count, p.rank, p.keys[0])
    count_fronts(p.sorted, count, p.rank, fronts, p.begin)
    group_by_front(p.sorted, count, p.rank, fronts, p.begin, p.grouped)
    front, kept = 0, 0
    while front < fronts and kept < size:
        end = p.begin[front + 1]
        crowding(first, second, p.grouped, kept, end, p.crowd, p.room)
        kept = end
        front += 1
    group_by_front(p.order, count, p.rank, fronts, p.begin, p.grouped)
    for i in range(count):
        p.order[i] = p.grouped[i]
    if kept > size:
        state = _emptiest_first(state, p, p.begin[front - 1], kept)
        kept = size
    for i in range(kept, count):
        p.rank[p.order[i]] = _GONE
    left = 0
    for i in range(count):  # those that stay remain sorted
        p.sorted[left] = p.sorted[i]
        left += 1 if p.rank[p.sorted[i]] >= 0 else 0
    _remember(p, kept)
    return state, kept


@kernel
def _sort_in(p: Population, members: int, children: int) -> None:
    """Sort the children and put them among the members, which are sorted; equals by place."""
    for i in range(members, members + children):
        p.rank[p.order[i]] = _CHILD
    found = 0
    for place in range(p.rank.size):
        p.grouped[found] = place
        found += p.rank[place] == _CHILD
    sort_by_objectives(p.objective[0], p.objective[1], p.grouped, children, p.keys[0], p.room, p.begin)
    merge_by_objectives(p.objective[0], p.objective[1], p.sorted, members, p.grouped, children, p.room)


@kernel
def _emptiest_first(state: np.uint64, p: Population, first: int, end: int) -> np.uint64:
    """Sort a stretch of members by falling crowding distance, equals at random."""
    state = shuffle(state, p.order, first, end)
    falling = p.keys[1]
    for i in range(first, end):
        falling[p.order[i]] = -p.crowd[p.order[i]]
    sort_by(falling, p.order, first, end, p.keys[0], p.room, p.grouped)
    return state


@kernel
def _remember(p: Population, count: int) -> None:
    """Forget all but the members."""
    last = p.slots.size - 1
    p.slots[:] = 0
    for i in range(count):
        at = np.int64(p.mark[p.order[i]] & np.uint64(last))
        while p.slots[at]:
            at = (at + 1) & last
        p.slots[at] = p.order[i] + 1


@kernel
def _same(a: Words, b: Words) -> bool:
    words, jobs = a.shape
    for k in range(words):
        for j in range(jobs):
            if a[k, j] != b[k, j]:
                return False
    return True


@kernel
def _copy(source: Words, target: Words) -> None:
    words, jobs = source.shape
    for k in range(words):
        for j in range(jobs):
            target[k, j] = source[k, j]
