"""How allocations are varied and put right again: crossover, mutation and repair as Pollux has them (OSDI 2021, section 4.2.2)."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.jit import kernel
from gantline.solvers.allocation_search.chance import below, uniform, word
from gantline.solvers.allocation_search.words import (
    Fields,
    Words,
    at,
    clip,
    lowest,
    place_of,
    put,
    shift_of,
    spans_nodes,
    spread_out,
    tops,
    total,
)

_16: Final = np.uint64(16)
_11, _52 = np.uint64(11), np.uint64(52)
_UNIT: Final = 1.0 / (1 << 53)
_LOW: Final = np.uint64(0xFFFF)


class Rules(NamedTuple):
    """What the search may do, and how."""

    avoid: bool  # two jobs that each span nodes never meet on one
    most_nodes: int  # that one job may span
    crossover: float = 0.9
    keep: float = 0.1  # chance that a row goes back to what the job holds now
    thin: float = 0.1  # chance that a row is thinned, and that an entry of it then goes


class Scratch(NamedTuple):
    """Room to work in."""

    hit: Words  # [jobs, words]: entries that were redrawn
    holders: Ints  # per node: jobs on it
    visit: Ints  # nodes in random order
    left: Words  # per word
    jump: Ints  # see `jumps`


@kernel
def cross(state: Words, rules: Rules, one: Words, two: Words, first: Words, second: Words) -> None:
    """Two children of two parents, who exchange the rows before a random one."""
    jobs, words = one.shape
    cut = below(state, jobs) if uniform(state) < rules.crossover else 0
    for j in range(jobs):
        for k in range(words):
            if j < cut:
                first[j, k], second[j, k] = two[j, k], one[j, k]
            else:
                first[j, k], second[j, k] = one[j, k], two[j, k]


@kernel
def mutate(state: Words, f: Fields, rules: Rules, rows: Words, present: Words, capacity: Ints, s: Scratch) -> None:
    """Rows go back to the present, lose entries, and grow where nodes have room.

    Per node with room, any job is chosen with probability one over the jobs, and one that is there already with one over those that are
    there as well; an entry that is chosen is drawn anew from what it is up to the whole node.
    """
    jobs, words = rows.shape
    _return_rows(state, rules, rows, present)
    _thin_rows(state, f, rules, rows)
    count = _find_room(f, rows, capacity, s)
    if count == 0:
        return
    for j in range(jobs):
        for k in range(words):
            s.hit[j, k] = np.uint64(0)
            rest = tops(f, rows[j, k]) & s.left[k]
            while rest:
                bit = lowest(rest)
                rest ^= bit
                holders = s.holders[(k << f.log) + place_of(f, bit)]
                if holders == 1 or uniform(state) * holders < 1.0:
                    s.hit[j, k] |= bit
    log_miss = math.log(1.0 - 1.0 / jobs) if jobs > 1 else -np.inf
    place, job = 0, _jump(state, s.jump, log_miss)
    while True:
        while job >= jobs:
            job -= jobs
            place += 1
        if place >= count:
            break
        node = s.visit[place]
        s.hit[job, node >> f.log] |= np.uint64(1) << (shift_of(f, node) + f.top)
        job += 1 + _jump(state, s.jump, log_miss)
    for j in range(jobs):
        for k in range(words):
            rest = s.hit[j, k]
            while rest:
                bit = lowest(rest)
                rest ^= bit
                node = (k << f.log) + place_of(f, bit)
                now = at(f, rows[j], node)
                put(f, rows[j], node, now + below(state, capacity[node] - now + 1))


def jumps(jobs: int) -> Ints:
    """How many jobs are passed over until the next one is chosen with one over the jobs, for each of 4,096 equal parts of the chances.

    -1 where the part holds more than one answer.
    """
    chance = np.arange(4097) / 4096.0
    with np.errstate(divide="ignore"):
        passed = np.log(1.0 - chance) / np.log(1.0 - 1.0 / jobs) if jobs > 1 else np.zeros(4097)
    low, high = np.floor(passed[:-1]), np.floor(np.minimum(passed[1:], 1e9) - 1e-9)
    return np.where(low >= high, low, -1.0).astype(np.int64)


@kernel
def _jump(state: Words, jump: Ints, log_miss: float) -> int:
    """How many jobs are passed over: by the table, or by a logarithm where it has no answer."""
    drawn = word(state)
    found = jump[np.int64(drawn >> _52)]
    if found >= 0:
        return int(found)
    chance = float(np.int64(drawn >> _11)) * _UNIT
    return int(min(math.log(1.0 - chance) / log_miss, 1e9))


@kernel
def _find_room(f: Fields, rows: Words, capacity: Ints, s: Scratch) -> int:
    """Nodes with room into ``visit`` and as top bits into ``left``, the jobs on each into ``holders``; how many nodes there are."""
    jobs, words = rows.shape
    count = 0
    for k in range(words):
        used, holders, room = np.uint64(0), np.uint64(0), np.uint64(0)
        for j in range(jobs):
            used += rows[j, k]
            holders += tops(f, rows[j, k]) >> f.top
        first = k << f.log
        for node in range(first, min(first + (1 << f.log), f.nodes)):
            shift = shift_of(f, node)
            if np.int64((used >> shift) & f.full) < capacity[node]:
                s.holders[node] = np.int64((holders >> shift) & f.full)
                s.visit[count] = node
                count += 1
                room |= np.uint64(1) << (shift + f.top)
        s.left[k] = room
    return count


@kernel
def _return_rows(state: Words, rules: Rules, rows: Words, present: Words) -> None:
    jobs, words = rows.shape
    limit, bits = np.uint64(rules.keep * 65536.0), np.uint64(0)
    for j in range(jobs):
        bits = word(state) if j & 3 == 0 else bits >> _16  # four draws of sixteen bits from one word
        if bits & _LOW < limit:
            for k in range(words):
                rows[j, k] = present[j, k]


@kernel
def _thin_rows(state: Words, f: Fields, rules: Rules, rows: Words) -> None:
    jobs, words = rows.shape
    limit, bits = np.uint64(rules.thin * 65536.0), np.uint64(0)
    for j in range(jobs):
        bits = word(state) if j & 3 == 0 else bits >> _16
        if bits & _LOW < limit:
            for k in range(words):
                rest = tops(f, rows[j, k])
                while rest:
                    bit = lowest(rest)
                    rest ^= bit
                    if uniform(state) < rules.thin:
                        rows[j, k] &= ~spread_out(f, bit)


@kernel
def repair(state: Words, f: Fields, rules: Rules, rows: Words, capacity: Words, most: Ints, s: Scratch) -> None:
    """Make an allocation possible: no two spanning jobs on a node, no job above its own limit, no node above its devices."""
    jobs, words = rows.shape
    if rules.avoid:
        _part_spanning(f, rows, s)
    for k in range(words):
        s.left[k] = capacity[k]
    for j in range(jobs):
        held, spans = 0, 0
        for k in range(words):
            if rows[j, k]:
                held += total(f, rows[j, k])
                if f.nodes > rules.most_nodes:
                    spans += total(f, tops(f, rows[j, k]) >> f.top)
        if held > most[j] or spans > rules.most_nodes:
            _cut_back(state, f, rows[j], most[j], rules.most_nodes, s.visit)
        for k in range(words):
            if rows[j, k]:
                rows[j, k] = clip(f, rows[j, k], s.left[k])
                s.left[k] -= rows[j, k]


@kernel
def _part_spanning(f: Fields, rows: Words, s: Scratch) -> None:
    """On each node the first job that spans nodes stays. The second goes, and with it everyone behind it, as in the original."""
    jobs, words = rows.shape
    taken, closed = s.left, s.hit[0]
    for k in range(words):
        taken[k] = np.uint64(0)
        closed[k] = np.uint64(0)
    for j in range(jobs):
        spans = spans_nodes(f, rows[j])
        for k in range(words):
            if spans:
                mine = spread_out(f, tops(f, rows[j, k]))
                closed[k] |= taken[k] & mine
                taken[k] |= mine
            rows[j, k] &= ~closed[k]


@kernel
def _cut_back(state: Words, f: Fields, row: Words, most: int, most_nodes: int, visit: Ints) -> None:
    """Keep a job's nodes in random order until its limit is reached."""
    count = 0
    for k in range(row.size):
        rest = tops(f, row[k])
        while rest:
            bit = lowest(rest)
            rest ^= bit
            visit[count] = (k << f.log) + place_of(f, bit)
            count += 1
    left = most
    for i in range(count):
        j = i + below(state, count - i)
        visit[i], visit[j] = visit[j], visit[i]
        kept = min(at(f, row, visit[i]), left) if i < most_nodes else 0
        put(f, row, visit[i], kept)
        left -= kept
