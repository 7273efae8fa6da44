"""How allocations change: rows are exchanged between parents, go back to the present, lose entries and grow where nodes have room.

Random numbers come in the order of the steps: rows that go back, rows that are thinned, entries that are chosen because their job is on
the node, entries that are chosen by chance, and (in `settling`) what the chosen become.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Ints
from gantline.core.jit import kernel
from gantline.solvers.allocation_search.chance import STEP, mixed, uniform
from gantline.solvers.allocation_search.words import Fields, Layout, Words, lowest, tops, whole, with_room

Small = NDArray[np.int16]

_16: Final = np.uint64(16)
_11, _52 = np.uint64(11), np.uint64(52)
_UNIT: Final = 1.0 / (1 << 53)
_LOW: Final = np.uint64(0xFFFF)
_NONE: Final = np.uint64(0)


class Rules(NamedTuple):
    """What the search may do, and how."""

    avoid: bool  # two jobs that each span nodes never meet on one
    most_nodes: int  # that one job may span
    crossover: float = 0.9
    keep: float = 0.1  # chance that a row goes back to what the job holds now
    thin: float = 0.1  # chance that a row is thinned, and that an entry of it then goes


class Scratch(NamedTuple):
    """Room to work in."""

    chosen: Words  # [jobs, words]: top bits of the entries that are drawn anew
    used: Words  # per word, as are the following
    holders: Words
    left: Words
    taken: Words
    closed: Words
    visit: Ints  # nodes in random order
    jump: Small  # see `jumps`


def scratch_for(jobs: int, layout: Layout) -> Scratch:
    """Room to work in for so many jobs."""
    used, holders, left, taken, closed = np.zeros((5, layout.words), dtype=np.uint64)
    chosen, visit = np.zeros((jobs, layout.words), dtype=np.uint64), np.zeros(2 * layout.nodes, dtype=np.int64)
    return Scratch(chosen, used, holders, left, taken, closed, visit, jumps(jobs))


@kernel
def vary(
    state: np.uint64, f: Fields, rules: Rules, one: Words, two: Words, cut: int, child: Words, present: Words, room: Words, s: Scratch
) -> tuple[np.uint64, int]:
    """A child with the rows of ``two`` before the cut and of ``one`` behind it, mutated. Entries to draw anew are in ``s.chosen``.

    The state, and how many are to be drawn; -1 if no node has room, and ``s.chosen`` says nothing.
    """
    state = _inherit(state, f, rules, one, two, cut, child, present, s)
    some = _NONE
    for k in range(child.shape[1]):
        s.left[k] = with_room(f, s.used[k], room[k])
        some |= s.left[k]
    if some == _NONE:
        return state, -1
    state, count = _choose_holders(state, f, child, s)
    return _choose_by_chance(state, s, count)


@kernel
def _inherit(
    state: np.uint64, f: Fields, rules: Rules, one: Words, two: Words, cut: int, child: Words, present: Words, s: Scratch
) -> np.uint64:
    """Rows of the parents, some of which go back to the present, and some lose entries. What is used, and by how many, goes to scratch."""
    jobs, words = child.shape
    keep, thin = np.uint64(rules.keep * 65536.0), np.uint64(rules.thin * 65536.0)
    ahead = state + np.uint64((jobs + 3) >> 2) * STEP
    returns = thins = _NONE
    for k in range(words):
        s.used[k] = s.holders[k] = _NONE
    for j in range(jobs):
        if j & 3 == 0:  # four draws of sixteen bits from one word
            state += STEP
            ahead += STEP
            returns, thins = mixed(state), mixed(ahead)
        thinned = thins & _LOW < thin
        if returns & _LOW < keep:
            _copy(present, child, j)
        elif j < cut:
            _copy(two, child, j)
        else:
            _copy(one, child, j)
        returns >>= _16
        thins >>= _16
        for k in range(words):
            row = child[j, k]
            entries = tops(f, row)
            if thinned and entries:
                rest = entries
                while rest:
                    bit = lowest(rest)
                    rest ^= bit
                    ahead += STEP
                    entries ^= bit if uniform(ahead) < rules.thin else _NONE
                row &= whole(f, entries)
                child[j, k] = row
            s.used[k] += row
            s.holders[k] += entries >> f.top
    return ahead


@kernel
def _copy(source: Words, target: Words, j: int) -> None:
    for k in range(source.shape[1]):
        target[j, k] = source[j, k]


@kernel
def _choose_holders(state: np.uint64, f: Fields, child: Words, s: Scratch) -> tuple[np.uint64, int]:
    """On nodes with room, each job that is there is chosen with one over those that are; how many are."""
    jobs, words = child.shape
    count = 0
    for j in range(jobs):
        for k in range(words):
            rest, chosen = tops(f, child[j, k]) & s.left[k], _NONE
            while rest:
                bit = lowest(rest)
                rest ^= bit
                one, holders = bit >> f.top, s.holders[k] & whole(f, bit)  # both as they lie in the field
                state += STEP if holders != one else _NONE  # nobody draws lots with itself
                if (holders == one) | (uniform(state) * float(holders) < float(one)):
                    chosen |= bit
                    count += 1
            s.chosen[j, k] = chosen
    return state, count


@kernel
def _choose_by_chance(state: np.uint64, s: Scratch, count: int) -> tuple[np.uint64, int]:
    """On nodes with room, any job is chosen with one over the jobs; how many are with those that were."""
    jobs, words = s.chosen.shape
    log_miss = math.log(1.0 - 1.0 / jobs) if jobs > 1 else -np.inf
    k, rest, job = 0, s.left[0], 0
    while True:
        state += STEP
        job += _jump(state, s.jump, log_miss)
        while job >= jobs or rest == _NONE:
            if rest:
                rest ^= lowest(rest)
                job -= jobs
            else:
                k += 1
                if k == words:
                    return state, count
                rest = s.left[k]
        bit, chosen = lowest(rest), s.chosen[job, k]
        count += 1 if chosen & bit == _NONE else 0
        s.chosen[job, k] = chosen | bit
        job += 1


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
def _jump(state: np.uint64, jump: Small, log_miss: float) -> int:
    """How many jobs are passed over: by the table, or by a logarithm where it has no answer."""
    drawn = mixed(state)
    found = jump[np.int64(drawn >> _52)]
    if found >= 0:
        return int(found)
    chance = float(np.int64(drawn >> _11)) * _UNIT
    return int(min(math.log(1.0 - chance) / log_miss, 1e9))
