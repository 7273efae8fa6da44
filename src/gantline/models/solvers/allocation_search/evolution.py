"""A population of allocations, varied and selected for so many generations, in compiled code (NSGA-II; Deb et al., 2002).

Two objectives at once, both minimised: which members are dominated by none, and how crowded they are. Sorted by the
first and then the second, the members of a front follow one another with a falling second objective, so one pass finds
all fronts and another all crowding distances.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel_from_zero as kernel
from gantline.models.solvers.allocation_search.packed_rows import STEP, Fields, Layout, Scratch, Small, Words, fields_of, shuffle, uniform
from gantline.models.solvers.allocation_search.settling import UNKNOWN, Problem, Rules, settle, tell_worth
from gantline.models.solvers.allocation_search.variation import vary

SIDE: Final = 16  # numbers that are compared side by side


@kernel
def sort_by(value: Floats, order: Ints, begin: int, end: int, keys: Floats, room: Ints, equals: Ints) -> None:
    """Sort a stretch of ``order`` by a number of each; equals keep their order.

    Each is put where it belongs by counting those before it: for hundreds this is quicker than sorting, because no step depends on how
    a comparison ends, and several are made at once. ``keys`` has `SIDE` places more than there are to sort.
    """
    count = end - begin
    whole = (count + SIDE - 1) // SIDE * SIDE
    for i in range(count):
        keys[i], room[i] = value[order[begin + i]], order[begin + i]
    for i in range(count, whole):
        keys[i] = np.inf  # before none
    for i in range(count):
        equals[i] = 0
    for i in range(count):
        mine, before = keys[i], 0
        for j in range(whole):
            before += keys[j] < mine
        order[begin + before + equals[before]] = room[i]
        equals[before] += 1


@kernel
def sort_by_objectives(first: Floats, second: Floats, order: Ints, count: int, keys: Floats, room: Ints, equals: Ints) -> None:
    """Sort the first ``count`` of ``order`` by (first, second) objective; equals keep their order."""
    sort_by(first, order, 0, count, keys, room, equals)
    for i in range(1, count):
        one = order[i]
        j = i
        while j > 0 and first[order[j - 1]] == first[one] and second[order[j - 1]] > second[one]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = one


@kernel
def merge_by_objectives(first: Floats, second: Floats, order: Ints, count: int, others: Ints, more: int, room: Ints) -> None:
    """Merge two sorted lists into ``order``, equals by their numbers."""
    for i in range(count):
        room[i] = order[i]
    i = j = 0
    while i < count and j < more:
        one, two = room[i], others[j]
        a, b, c, d = first[one], second[one], first[two], second[two]
        mine = int((a < c) | ((a == c) & ((b < d) | ((b == d) & (one < two)))))
        order[i + j] = two + mine * (one - two)  # no branch: it could not be foretold
        i += mine
        j += 1 - mine
    while i < count:
        order[i + j] = room[i]
        i += 1
    while j < more:
        order[i + j] = others[j]
        j += 1


@kernel
def find_fronts(first: Floats, second: Floats, order: Ints, count: int, rank: Ints, keys: Floats) -> int:
    """The front of each of ``order`` (sorted by objectives) into ``rank``; how many fronts there are.

    A member belongs behind all fronts whose last member dominates it. Those are the ones whose second objective is not above its own,
    unless it is a copy: then it belongs where the one before it does. They are counted; ``keys`` has `SIDE` places more than members.
    """
    found, low, whole = 0, 0, 0
    x = y = np.nan
    for i in range(count):
        one = order[i]
        a, b = first[one], second[one]
        if a != x or b != y:
            low = 0
            for front in range(whole):
                low += keys[front] <= b
        rank[one] = low
        x, y = a, b
        if low == found:
            found += 1
            if found > whole:
                for front in range(whole, whole + SIDE):
                    keys[front] = np.inf
                whole += SIDE
        keys[low] = b
    return found


@kernel
def count_fronts(order: Ints, count: int, rank: Ints, fronts: int, begin: Ints) -> None:
    """Where each front begins if the first ``count`` of ``order`` are grouped by front."""
    for front in range(fronts + 1):
        begin[front] = 0
    for i in range(count):
        begin[rank[order[i]] + 1] += 1
    for front in range(fronts):
        begin[front + 1] += begin[front]


@kernel
def group_by_front(order: Ints, count: int, rank: Ints, fronts: int, begin: Ints, grouped: Ints) -> None:
    """The first ``count`` of ``order`` by front, each front in the order it had; ``begin`` as it is counted."""
    for i in range(count):
        front = rank[order[i]]
        grouped[begin[front]] = order[i]
        begin[front] += 1
    for front in range(fronts, 0, -1):
        begin[front] = begin[front - 1]
    begin[0] = 0


@kernel
def crowding(first: Floats, second: Floats, order: Ints, begin: int, end: int, distance: Floats, distinct: Ints) -> None:
    """Crowding distances within a front, a stretch that is sorted by objectives. Repeated objectives count 0, the ends infinity."""
    count = 0
    for i in range(begin, end):
        one = order[i]
        distance[one] = np.inf if end - begin <= 2 else 0.0
        if count > 0:
            before = distinct[count - 1]
            if first[before] == first[one] and second[before] == second[one]:
                continue
        distinct[count] = one
        count += 1
    if end - begin <= 2:
        return
    left, right = distinct[0], distinct[count - 1]
    width, height = first[right] - first[left], second[left] - second[right]
    distance[left] = distance[right] = np.inf
    for i in range(1, count - 1):
        before, after = distinct[i - 1], distinct[i + 1]
        gap = 0.0
        if width > 0.0:
            gap += (first[after] - first[before]) / width
        if height > 0.0:
            gap += (second[before] - second[after]) / height
        distance[distinct[i]] = gap


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
