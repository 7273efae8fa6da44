"""A population of allocations, varied and selected for so many generations, in compiled code (NSGA-II; Deb et al., 2002)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.solvers.allocation_search.chance import STEP, mixed, shuffle, uniform
from gantline.solvers.allocation_search.fronts import crowding, dominates, find_fronts, group_by_front, sort_by_objectives
from gantline.solvers.allocation_search.variation import Rules, Scratch, cross, mutate, repair
from gantline.solvers.allocation_search.words import Fields, Words, spans_nodes, spread_out, tops, total

_TRIES = 101  # matings per generation, if children keep being copies
_ADD = 1e-3  # so that a job without devices does not make the mean worthless


class Problem(NamedTuple):
    """Who wants what: everything that an allocation is judged by."""

    capacity: Ints  # devices per node
    room: Words  # the same in words
    present: Words  # [jobs, words]: what each holds now
    most: Ints  # devices that each job may have
    speedup: Floats  # [jobs, 2, devices + 1]: on one node, and on several
    penalty: Floats  # by which a job's speedup is multiplied if its row changes
    scale: float  # what a speedup of 1 is worth
    power: float  # of the mean: -1 favours the slowest, 1 nobody
    count_nodes: bool  # whether the second objective is nodes in use, rather than how well they are used


class Population(NamedTuple):
    """Places for members, for as many children, and one for a child too many."""

    rows: Words  # [places, jobs, words]
    objective: Floats  # [places, 2]
    mark: Words  # a hash of each
    crowd: Floats
    order: Ints  # places of the members, then of the children
    sorted: Ints  # the same by objectives
    rank: Ints
    room: Ints  # to work with
    parents: Ints
    begin: Ints  # of each front, among those that are sorted
    slots: Ints  # a table of hashes: places of the members and children, each plus one


@kernel
def evolve(
    state: Words,
    f: Fields,
    rules: Rules,
    problem: Problem,
    p: Population,
    s: Scratch,
    given: int,
    size: int,
    generations: int,
    outcome: Ints,
) -> None:
    """Run the search; the best member's place, the number of members and of generations go into ``outcome``."""
    count = 0
    for i in range(given):
        place = p.order[count]
        if i != place:
            _copy(p.rows[i], p.rows[place])
        repair(state, f, rules, p.rows[place], problem.room, problem.most, s)
        if _is_new(p, place):
            judge(f, problem, p.rows[place], p.objective[place])
            count += 1
    count = survive(state, p, count, size)
    _remember(p, count)
    made = 1
    while made < generations:
        children = breed(state, f, rules, problem, p, s, count, size)
        if children == 0:
            break
        count = survive(state, p, count + children, size)
        _remember(p, count)
        made += 1
    best = p.order[0]
    for i in range(1, count):
        if p.objective[p.order[i], 0] < p.objective[best, 0]:
            best = p.order[i]
    outcome[0], outcome[1], outcome[2] = best, count, made


@kernel
def judge(f: Fields, problem: Problem, rows: Words, out: Floats) -> None:
    """The two objectives of an allocation, both to be as small as possible."""
    jobs, words = rows.shape
    mean, summed, in_use, nodes = 0.0, 0.0, 0, 0
    for k in range(words):
        used = np.uint64(0)
        for j in range(jobs):
            used |= tops(f, rows[j, k])
        in_use += total(f, problem.room[k] & spread_out(f, used))
        nodes += total(f, used >> f.top)
    for j in range(jobs):
        held, same = 0, True
        for k in range(words):
            held += total(f, rows[j, k])
            same = same and rows[j, k] == problem.present[j, k]
        speedup = problem.speedup[j, 1 if held > 1 and spans_nodes(f, rows[j]) else 0, held]
        summed += speedup
        value = speedup * problem.scale + _ADD if same else speedup * problem.scale * problem.penalty[j] + _ADD
        if problem.power == -1.0:
            mean += 1.0 / value
        elif problem.power == 0.0:
            mean += math.log(value)
        else:
            mean += value**problem.power
    if problem.power == -1.0:
        out[0] = -jobs / mean
    elif problem.power == 0.0:
        out[0] = -math.exp(mean / jobs)
    else:
        out[0] = -((mean / jobs) ** (1.0 / problem.power))
    out[1] = -summed / in_use if in_use > 0 else 0.0
    if problem.count_nodes:
        out[1] = nodes


@kernel
def breed(state: Words, f: Fields, rules: Rules, problem: Problem, p: Population, s: Scratch, count: int, size: int) -> int:
    """Children into the places behind the members; copies of anybody are left out, and others tried. How many there are."""
    made = 0
    for _ in range(_TRIES):
        matings = (size - made + 1) // 2
        _select(state, p, count, 2 * matings)
        for i in range(matings):
            at = count + made
            here, there = p.order[at], p.order[at + 1]
            cross(state, rules, p.rows[p.parents[2 * i]], p.rows[p.parents[2 * i + 1]], p.rows[here], p.rows[there])
            if _raise(state, f, rules, problem, p, s, here):
                made += 1
            else:  # the second moves up into its place
                p.order[at], p.order[at + 1] = there, here
            if made < size and _raise(state, f, rules, problem, p, s, there):
                made += 1
            if made >= size:
                return made
    return made


@kernel
def _raise(state: Words, f: Fields, rules: Rules, problem: Problem, p: Population, s: Scratch, place: int) -> bool:
    """Mutate, repair and judge a child; False if it equals one of the others."""
    mutate(state, f, rules, p.rows[place], problem.present, problem.capacity, s)
    repair(state, f, rules, p.rows[place], problem.room, problem.most, s)
    if not _is_new(p, place):
        return False
    judge(f, problem, p.rows[place], p.objective[place])
    return True


@kernel
def _select(state: Words, p: Population, count: int, wanted: int) -> None:
    """Parents by tournament: random permutations of the members are cut into pairs, and the better of each pair is taken."""
    at, permuted = count, p.room
    for i in range(wanted):
        pair_a, pair_b = 0, 0
        for side in range(2):
            if at >= count:
                for k in range(count):
                    permuted[k] = p.order[k]
                shuffle(state, permuted, count)
                at = 0
            if side == 0:
                pair_a = permuted[at]
            else:
                pair_b = permuted[at]
            at += 1
        p.parents[i] = _better(state, p, pair_a, pair_b)


@kernel
def _better(state: Words, p: Population, a: int, b: int) -> int:
    if dominates(p.objective, a, b):
        return a
    if dominates(p.objective, b, a):
        return b
    if p.crowd[a] != p.crowd[b]:
        return a if p.crowd[a] > p.crowd[b] else b
    return a if uniform(state) < 0.5 else b


@kernel
def survive(state: Words, p: Population, count: int, size: int) -> int:
    """Keep the best, front by front; of a front that does not fit whole, those in the emptiest places. How many are kept."""
    for i in range(count):
        p.sorted[i] = p.order[i]
    sort_by_objectives(p.objective, p.sorted, count)
    fronts = find_fronts(p.objective, p.sorted, count, p.rank, p.room)
    group_by_front(p.sorted, count, p.rank, fronts, p.begin, p.room)
    front, kept = 0, 0
    while front < fronts and kept < size:
        members = p.begin[front + 1] - kept
        crowding(p.objective, p.sorted[kept : kept + members], p.crowd, p.room)
        kept += members
        front += 1
    group_by_front(p.order, count, p.rank, fronts, p.begin, p.room)
    if kept > size:
        _emptiest_first(state, p, p.begin[front - 1], kept)
    return min(kept, size)


@kernel
def _emptiest_first(state: Words, p: Population, first: int, end: int) -> None:
    """Sort a stretch of members by falling crowding distance, equals at random."""
    for i in range(end - 1, first, -1):
        j = first + int(uniform(state) * (i - first + 1))
        p.order[i], p.order[j] = p.order[j], p.order[i]
    for i in range(first + 1, end):
        mine = p.order[i]
        j = i
        while j > first and p.crowd[p.order[j - 1]] < p.crowd[mine]:
            p.order[j] = p.order[j - 1]
            j -= 1
        p.order[j] = mine


@kernel
def _is_new(p: Population, place: int) -> bool:
    """Whether nobody is the same; if so, it is remembered."""
    rows = p.rows[place]
    jobs, words = rows.shape
    mark = np.uint64(0)
    for j in range(jobs):
        for k in range(words):
            mark += mixed(rows[j, k] + np.uint64(j * words + k + 1) * STEP)
    p.mark[place] = mark
    last = p.slots.size - 1
    at = np.int64(mark & np.uint64(last))
    while p.slots[at]:
        other = p.slots[at] - 1
        if p.mark[other] == mark and _same(p.rows[other], rows):
            return False
        at = (at + 1) & last
    p.slots[at] = place + 1
    return True


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
    jobs, words = a.shape
    for j in range(jobs):
        for k in range(words):
            if a[j, k] != b[j, k]:
                return False
    return True


@kernel
def _copy(source: Words, target: Words) -> None:
    jobs, words = source.shape
    for j in range(jobs):
        for k in range(words):
            target[j, k] = source[j, k]
