"""How allocations change: rows are exchanged between parents, go back to the present, lose entries and grow where nodes have room.

Random numbers come in the order of the steps: rows that go back, rows that are thinned, entries that are chosen because their job is on
the node, entries that are chosen by chance, and (in `settling`) what the chosen become.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np

from gantline.core.jit import kernel_from_zero as kernel
from gantline.models.solvers.allocation_search.packed_rows import (
    STEP,
    Fields,
    Scratch,
    Small,
    Words,
    above_one,
    earlier,
    lowest,
    mixed,
    tops,
    total,
    uniform,
    whole,
    with_room,
)

_11, _52 = np.uint64(11), np.uint64(52)
_UNIT: Final = 1.0 / (1 << 53)
_NONE: Final = np.uint64(0)

_KEEP: Final = int(0.1 * (1 << 16))  # of 65,536: chance that a row goes back to what the job holds now
_THIN: Final = np.uint64(0x0001000100010001 * int(0.1 * (1 << 16)))  # chance that a row is thinned, for four rows
_GOES: Final = np.uint64(math.ceil(0.1 * (1 << 53)) << 11)  # of all words: chance that an entry of a thinned row goes
_TOPS: Final = np.uint64(0x8000800080008000)
_FIRST, _SECOND, _THIRD = np.uint64(1 << 15), np.uint64(1 << 31), np.uint64(1 << 47)


@kernel
def vary(
    state: np.uint64, f: Fields, one: Words, two: Words, cut: int, child: Words, present: Words, room: Words, s: Scratch
) -> tuple[np.uint64, int]:
    """A child with the rows of ``two`` before the cut and of ``one`` behind it, mutated. Entries to draw anew are in ``s.chosen``.

    The state, and how many are to be drawn; -1 if no node has room, and ``s.chosen`` says nothing.
    """
    state = _inherit(state, one, two, cut, child, present, s)
    state = _thin(state, f, child)
    if not _find_room(f, child, room, s):
        return state, -1
    count, shared = _choose_sole_holders(f, child, s)
    if shared:
        state, count = _choose_holders(state, f, child, s, count)
    return _choose_by_chance(state, s, count)


@kernel
def _inherit(state: np.uint64, one: Words, two: Words, cut: int, child: Words, present: Words, s: Scratch) -> np.uint64:
    """Rows of the parents, some of which go back to the present; four draws of sixteen bits from one random word."""
    words, jobs = child.shape
    draws = (jobs + 3) >> 2
    for i in range(draws):
        s.drawn[i] = mixed(state + np.uint64(i + 1) * STEP)
    for k in range(words):
        made, now, ours, theirs = child[k], present[k], one[k], two[k]
        for j in range(cut):
            back, kept = now[j], theirs[j]
            made[j] = back if s.lots[j] < _KEEP else kept
        for j in range(cut, jobs):
            back, kept = now[j], ours[j]
            made[j] = back if s.lots[j] < _KEEP else kept
    return state + np.uint64(draws) * STEP


@kernel
def _thin(state: np.uint64, f: Fields, child: Words) -> np.uint64:
    """Some rows lose some of their entries."""
    words, jobs = child.shape
    for first in range(0, jobs, 4):
        state += STEP
        drawn = mixed(state)
        hit = ~(drawn | ((drawn | _TOPS) - _THIN)) & _TOPS  # the sixteen bits of these rows are below the chance
        while hit:
            bit = lowest(hit)
            hit ^= bit
            j = first + int(bit > _FIRST) + int(bit > _SECOND) + int(bit > _THIRD)
            if j >= jobs:
                break
            for k in range(words):
                entries = tops(f, child[k, j])
                rest = entries
                while rest:
                    bit = lowest(rest)
                    rest ^= bit
                    state += STEP
                    entries ^= bit if mixed(state) < _GOES else _NONE
                child[k, j] &= whole(f, entries)
    return state


@kernel
def _find_room(f: Fields, child: Words, room: Words, s: Scratch) -> bool:
    """Nodes with room go to ``s.left``, how many jobs are on each node to ``s.holders``; whether any node has room."""
    words, jobs = child.shape
    some = _NONE
    for k in range(words):
        rows, used, holders = child[k], _NONE, _NONE
        for j in range(jobs):
            used += rows[j]
            holders += tops(f, rows[j]) >> f.top
        s.holders[k] = holders
        s.left[k] = with_room(f, used, room[k])
        some |= s.left[k]
    return bool(some)


@kernel
def _choose_sole_holders(f: Fields, child: Words, s: Scratch) -> tuple[int, bool]:
    """On nodes with room, a job that is there alone is chosen, and others are noted. How many are chosen, and whether any are noted."""
    words, jobs = child.shape
    count, some = 0, _NONE
    for k in range(words):
        several = above_one(f, s.holders[k])
        alone, shared, found = s.left[k] & ~several, s.left[k] & several, _NONE
        rows, chosen, before = child[k], s.chosen[k], earlier(k)
        for j in range(jobs):
            here = tops(f, rows[j])
            chosen[j] = here & alone
            s.some[j] = (s.some[j] & before) | (here & alone)
            s.sharing[j] = (s.sharing[j] & before) | (here & shared)
            found |= here & alone
        count += total(f, found >> f.top)
        s.shared[k] = shared
        some |= shared
    return count, some != _NONE


@kernel
def _choose_holders(state: np.uint64, f: Fields, child: Words, s: Scratch, count: int) -> tuple[np.uint64, int]:
    """On nodes with room and several jobs, each of them is chosen with one over those that are there; how many are with those that were."""
    words, jobs = child.shape
    for j in range(jobs):
        if s.sharing[j]:
            for k in range(words):
                rest = tops(f, child[k, j]) & s.shared[k]
                while rest:
                    bit = lowest(rest)
                    rest ^= bit
                    state += STEP
                    one, holders = bit >> f.top, s.holders[k] & whole(f, bit)  # both as they lie in the field
                    if uniform(state) * float(holders) < float(one):
                        s.chosen[k, j] |= bit
                        s.some[j] |= bit
                        count += 1
    return state, count


@kernel
def _choose_by_chance(state: np.uint64, s: Scratch, count: int) -> tuple[np.uint64, int]:
    """On nodes with room, any job is chosen with one over the jobs; how many are with those that were."""
    words, jobs = s.chosen.shape
    nodes = 0
    for k in range(words):
        rest = s.left[k]
        while rest:
            bit = lowest(rest)
            rest ^= bit
            s.node[nodes], s.word[nodes] = bit, k
            nodes += 1
    at, end, part = 0, nodes * jobs, 1.0 / jobs  # all jobs on the first of these nodes, all on the second, ...
    while True:
        state += STEP
        at += _jump(state, s.jump, jobs)
        if at >= end:
            return state, count
        place = int((at + 0.5) * part)
        j, k, bit = at - place * jobs, s.word[place], s.node[place]
        chosen = s.chosen[k, j]
        count += 1 if chosen & bit == _NONE else 0
        s.chosen[k, j] = chosen | bit
        s.some[j] |= bit
        at += 1


@cache
def jumps(jobs: int) -> Small:
    """How many jobs are passed over until the next one is chosen with one over the jobs, for each of 4,096 equal parts of the chances.

    -1 where the part holds more than one answer, or a large one.
    """
    chance = np.arange(4097) / 4096.0
    with np.errstate(divide="ignore"):
        passed = np.log(1.0 - chance) / np.log(1.0 - 1.0 / jobs) if jobs > 1 else np.zeros(4097)
    low, high = np.floor(passed[:-1]), np.floor(np.minimum(passed[1:], 1e9) - 1e-9)
    return np.where((low >= high) & (low < 1 << 15), low, -1.0).astype(np.int16)


@kernel
def _jump(state: np.uint64, jump: Small, jobs: int) -> int:
    """How many jobs are passed over: by the table, or by a logarithm where it has no answer."""
    drawn = mixed(state)
    found = jump[np.int64(drawn >> _52)]
    if found >= 0:
        return int(found)
    log_miss = math.log(1.0 - 1.0 / jobs) if jobs > 1 else -np.inf
    chance = float(np.int64(drawn >> _11)) * _UNIT
    return int(min(math.log(1.0 - chance) / log_miss, 1e9))
