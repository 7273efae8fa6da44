"""From a varied child to an allocation that is possible, and what it is worth, in one pass over its rows.

First the entries that were chosen are drawn anew. Then no two jobs that span nodes meet on one, no job has more than its own limit, and no
node gives more than it has; whoever comes first keeps what it has.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.solvers.allocation_search.chance import STEP, uniform
from gantline.solvers.allocation_search.variation import Rules, Scratch
from gantline.solvers.allocation_search.words import Fields, Layout, Words, clip, fields_of, lowest, several, tops, total, whole

_ADD: Final = 1e-3  # so that a job without devices does not make the mean worthless
_NONE: Final = np.uint64(0)
_32: Final = np.uint64(32)
_STIR: Final = np.uint64(0x9FB21C651E98DF25)


class Problem(NamedTuple):
    """Who wants what: everything that an allocation is judged by."""

    room: Words  # devices per node
    present: Words  # [jobs, words]: what each holds now
    most: Ints  # devices that each job may have
    speedup: Floats  # [jobs, 2, devices + 1]: on one node, and on several
    worth: Floats  # [jobs, 2]: by which a job's speedup is multiplied if its row changes, and if it does not
    scale: float  # what a speedup of 1 is worth
    power: float  # of the mean: -1 favours the slowest, 1 nobody
    count_nodes: bool  # whether the second objective is nodes in use, rather than how well they are used
    counts_spans: bool  # whether a job could span more nodes than it may


@kernel
def settle(
    state: np.uint64, f: Fields, rules: Rules, problem: Problem, rows: Words, chosen: int, s: Scratch
) -> tuple[np.uint64, np.uint64, float, float]:
    """Draw so many chosen entries anew, make the allocation possible and judge it.

    The state afterwards, a hash of the rows, and the two objectives, both to be as small as possible.
    """
    jobs, words = rows.shape
    late = state + np.uint64(max(chosen, 0)) * STEP  # for jobs that are cut back: after all entries that are drawn
    mark, mean, summed = _NONE, 0.0, 0.0
    for k in range(words):
        s.left[k], s.used[k] = problem.room[k], _NONE
        s.taken[k] = s.closed[k] = _NONE
    for j in range(jobs):
        if chosen > 0:
            state = _draw(state, f, rows, problem.room, s.chosen, j)
        held = _part(f, rules, problem, rows, s, j)
        if held > problem.most[j] or (problem.counts_spans and _nodes(f, rows, j) > rules.most_nodes):
            late = _cut_back(late, f, rows, j, problem.most[j], rules.most_nodes, s.visit)
        held, same, entries, many = 0, True, _NONE, False
        for k in range(words):
            row = clip(f, rows[j, k], s.left[k])
            rows[j, k] = row
            s.left[k] -= row
            used = tops(f, row)
            s.used[k] |= used
            many = many | several(used) | ((entries != _NONE) & (used != _NONE))
            entries |= used
            held += total(f, row)
            same = same & (row == problem.present[j, k])
            mark = (mark ^ row) * _STIR
            mark ^= mark >> _32
        speedup = problem.speedup[j, int(many), held]
        summed += speedup
        value = speedup * problem.scale * problem.worth[j, int(same)] + _ADD  # a table, because no branch could be foretold
        if problem.power == -1.0:
            mean += 1.0 / value
        elif problem.power == 0.0:
            mean += math.log(value)
        else:
            mean += value**problem.power
    first, second = _judge(f, problem, mean, summed, s.used)
    return late, mark, first, second


@kernel
def settle_one(seed: int, layout: Layout, rules: Rules, problem: Problem, rows: Words, s: Scratch) -> tuple[float, float]:
    """Make one allocation possible; its objectives."""
    _, _, first, second = settle(np.uint64(seed), fields_of(layout), rules, problem, rows, 0, s)
    return first, second


@kernel
def _draw(state: np.uint64, f: Fields, rows: Words, room: Words, chosen: Words, j: int) -> np.uint64:
    """Entries that were chosen become anything from what they are up to the whole node."""
    for k in range(rows.shape[1]):
        rest = chosen[j, k]
        if rest:
            row = rows[j, k]
            while rest:
                bit = lowest(rest)
                rest ^= bit
                state += STEP
                field = whole(f, bit)
                more = (room[k] & field) - (row & field) + (bit >> f.top)
                row += np.uint64(np.int64(uniform(state) * float(more))) & field  # whole devices, as they lie in the field
            rows[j, k] = row
    return state


@kernel
def _part(f: Fields, rules: Rules, problem: Problem, rows: Words, s: Scratch, j: int) -> int:
    """On each node the first job that spans nodes stays. The second goes, and with it everyone behind it, as in the original.

    How many devices the job still has.
    """
    words, held = rows.shape[1], 0
    if not rules.avoid:
        for k in range(words):
            held += total(f, rows[j, k])
        return held
    entries, many = _NONE, False
    for k in range(words):
        mine = tops(f, rows[j, k])
        many = many | several(mine) | ((entries != _NONE) & (mine != _NONE))
        entries |= mine
    for k in range(words):
        mine = tops(f, rows[j, k]) if many else _NONE
        s.closed[k] |= s.taken[k] & mine
        s.taken[k] |= mine
        row = rows[j, k] & ~whole(f, s.closed[k])
        rows[j, k] = row
        held += total(f, row)
    return held


@kernel
def _nodes(f: Fields, rows: Words, j: int) -> int:
    """On how many nodes a job is."""
    found = 0
    for k in range(rows.shape[1]):
        found += total(f, tops(f, rows[j, k]) >> f.top)
    return found


@kernel
def _cut_back(state: np.uint64, f: Fields, rows: Words, j: int, most: int, most_nodes: int, visit: Ints) -> np.uint64:
    """Keep a job's nodes in random order until its limit is reached; the state afterwards."""
    words, count = rows.shape[1], 0
    for k in range(words):
        rest = tops(f, rows[j, k])
        while rest:
            bit = lowest(rest)
            rest ^= bit
            visit[count] = np.int64(bit)
            visit[count + 1] = k
            count += 2
    left = np.int64(most)
    for i in range(0, count, 2):
        state += STEP
        other = i + 2 * int(uniform(state) * ((count - i) >> 1))
        bit, k = np.uint64(visit[other]), visit[other + 1]
        visit[other], visit[other + 1] = visit[i], visit[i + 1]
        mine = rows[j, k] & whole(f, bit)
        limit = min(left, np.int64(7 if f.narrow else 127)) if i < 2 * most_nodes else np.int64(0)
        kept = min(mine, np.uint64(limit) * (bit >> f.top))
        rows[j, k] ^= mine ^ kept
        left -= total(f, kept)
    return state


@kernel
def _judge(f: Fields, problem: Problem, mean: float, summed: float, used: Words) -> tuple[float, float]:
    """The power mean, and how well the nodes in use are used or how many there are."""
    jobs, in_use, nodes = problem.most.size, 0, 0
    for k in range(used.size):
        in_use += total(f, problem.room[k] & whole(f, used[k]))
        nodes += total(f, used[k] >> f.top)
    second = -summed / in_use if in_use > 0 else 0.0
    if problem.count_nodes:
        second = float(nodes)
    if problem.power == -1.0:
        return -jobs / mean, second
    if problem.power == 0.0:
        return -math.exp(mean / jobs), second
    return -((mean / jobs) ** (1.0 / problem.power)), second
