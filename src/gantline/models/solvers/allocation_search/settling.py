"""From a varied child to an allocation that is possible, and what it is worth.

First the entries that were chosen are drawn anew. Then no two jobs that span nodes meet on one, no job has more than its own limit, and no
node gives more than it has; the first job keeps what it has. Each step is a loop of its own over all jobs, and is left out where
there is nothing to do.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel_from_zero as kernel
from gantline.models.solvers.allocation_search.packed_rows import (
    STEP,
    Fields,
    Scratch,
    Words,
    after,
    earlier,
    lowest,
    tops,
    total,
    uniform,
    whole,
    without_lowest,
)

_ADD: Final = 1e-3  # so that a job without devices does not make the mean worthless
_NONE: Final = np.uint64(0)
_29, _32 = np.uint64(29), np.uint64(32)

# what an allocation of a job is worth: its speedup, and what it adds to the mean if the job's row changes, or (the next one) does not
SPEEDUP, MOVED = 0, 1
UNKNOWN: Final = -2  # in place of how many entries are to be drawn: none, and nothing is known of the rows
WORTHS: Final = 4  # the last is empty, so that everything about an allocation lies in one line of the cache


class Rules(NamedTuple):
    """What the search may do."""

    avoid: bool  # two jobs that each span nodes never meet on one
    most_nodes: int  # that one job may span


class Problem(NamedTuple):
    """What each job wants: everything that an allocation is judged by."""

    room: Words  # devices per node
    present: Words  # [words, jobs]: what each holds now
    most: Ints  # devices that each job may have
    speedup: Floats  # [jobs, 2, devices + 1]: on one node, and on several
    penalty: Floats  # by which a job's speedup is multiplied if its row changes
    scale: float  # what a speedup of 1 is worth
    worth: Floats  # [jobs, 2, devices + 1, WORTHS], which `tell_worth` fills
    power: float  # of the mean: -1 favours the slowest, 1 none
    count_nodes: bool  # whether the second objective is nodes in use, rather than how well they are used
    limit: Ints  # devices above which a job may have too many, or be on too many nodes
    present_fits: bool  # whether no node does so now


@kernel
def tell_worth(problem: Problem) -> None:
    """What every number of devices is worth to each job: a table, because the same is asked many times."""
    jobs, _, counts = problem.speedup.shape
    for j in range(jobs):
        for many in range(2):
            for held in range(counts):
                found, speedup = problem.worth[j, many, held], problem.speedup[j, many, held]
                found[SPEEDUP] = speedup
                for same in range(2):
                    value = speedup * problem.scale * (1.0 if same else problem.penalty[j]) + _ADD
                    if problem.power == -1.0:
                        value = 1.0 / value
                    elif problem.power == 0.0:
                        value = math.log(value)
                    else:
                        value = value**problem.power
                    found[MOVED + same] = value


@kernel
def settle(
    state: np.uint64, f: Fields, rules: Rules, problem: Problem, rows: Words, chosen: int, s: Scratch
) -> tuple[np.uint64, np.uint64, float, float]:
    """Draw so many chosen entries anew, make the allocation possible and judge it.

    Rows of members keep within the limits of their jobs, so only those that are drawn are asked, unless all are `UNKNOWN`.
    The state afterwards, a hash of the rows, and the two objectives, both to be as small as possible.
    """
    late = state + np.uint64(max(chosen, 0)) * STEP  # for jobs that are cut back: after all entries that are drawn
    suspects = _draw(state, f, problem, rows, s) if chosen > 0 else 0
    if chosen == UNKNOWN or not problem.present_fits:
        suspects = _suspect_all(f, problem, rows, s)
    if rules.avoid and _find_spanning(f, rows, s) > 1:
        _part(f, rows, s)
    for i in range(suspects):
        late = _cut_back(late, f, rules, problem, rows, s.suspects[i], s.visit)
    _clip(f, rows, problem.room)
    _find_spanning(f, rows, s)
    mark, first, second = _judge(f, problem, rows, s)
    return late, mark, first, second


@kernel
def _draw(state: np.uint64, f: Fields, problem: Problem, rows: Words, s: Scratch) -> int:
    """Entries that were chosen become anything from what they are up to the whole node. How many jobs may have too much then."""
    words, jobs = rows.shape
    count = 0
    for j in range(jobs):
        if s.some[j]:
            held = 0
            for k in range(words):
                row, rest = rows[k, j], s.chosen[k, j]
                while rest:
                    bit = lowest(rest)
                    rest ^= bit
                    state += STEP
                    field = whole(f, bit)
                    more = (problem.room[k] & field) - (row & field) + (bit >> f.top)
                    row += np.uint64(np.int64(uniform(state) * float(more))) & field  # whole devices, as they lie in the field
                rows[k, j] = row
                held += total(f, row)
            s.suspects[count] = j
            count += held > problem.limit[j]
    return count


@kernel
def _suspect_all(f: Fields, problem: Problem, rows: Words, s: Scratch) -> int:
    """All jobs that may have too much; how many they are."""
    words, jobs = rows.shape
    count = 0
    for j in range(jobs):
        held = 0
        for k in range(words):
            held += total(f, rows[k, j])
        s.suspects[count] = j
        count += held > problem.limit[j]
    return count


@kernel
def _find_spanning(f: Fields, rows: Words, s: Scratch) -> int:
    """Which jobs span nodes, into ``s.spread``; how many do, or more."""
    words, jobs = rows.shape
    first, count = rows[0], 0
    for j in range(jobs):
        here = tops(f, first[j])
        s.spread[j] = without_lowest(here)
        s.entries[j] = here
        count += without_lowest(here) != _NONE
    for k in range(1, words):
        more = rows[k]
        for j in range(jobs):
            here, before = tops(f, more[j]), s.entries[j]
            s.spread[j] |= without_lowest(here) | (here if before != _NONE else _NONE)
            s.entries[j] = before | here
    return count if words == 1 else jobs


@kernel
def _part(f: Fields, rows: Words, s: Scratch) -> None:
    """On each node the first job that spans nodes stays. The second goes, and with it everyone behind it, as in the original."""
    words, jobs = rows.shape
    for k in range(words):
        taken, closed, row = _NONE, _NONE, rows[k]
        for j in range(jobs):
            here, spans = tops(f, row[j]), s.spread[j] != _NONE
            mine = here if spans else _NONE
            closed |= taken & mine
            taken |= mine
            row[j] &= ~whole(f, closed)


@kernel
def _cut_back(state: np.uint64, f: Fields, rules: Rules, problem: Problem, rows: Words, j: int, visit: Ints) -> np.uint64:
    """Keep a job's nodes in random order until its limit is reached, unless it keeps within it; the state afterwards."""
    most, most_nodes = problem.most[j], rules.most_nodes
    words, count, held = rows.shape[0], 0, 0
    for k in range(words):
        held += total(f, rows[k, j])
        rest = tops(f, rows[k, j])
        while rest:
            bit = lowest(rest)
            rest ^= bit
            visit[count] = np.int64(bit)
            visit[count + 1] = k
            count += 2
    if held <= most and count <= 2 * most_nodes:
        return state
    left = np.int64(most)
    for i in range(0, count, 2):
        state += STEP
        other = i + 2 * int(uniform(state) * ((count - i) >> 1))
        bit, k = np.uint64(visit[other]), visit[other + 1]
        visit[other], visit[other + 1] = visit[i], visit[i + 1]
        mine = rows[k, j] & whole(f, bit)
        limit = min(left, np.int64(7 if f.narrow else 127)) if i < 2 * most_nodes else np.int64(0)
        kept = min(mine, np.uint64(limit) * (bit >> f.top))
        rows[k, j] ^= mine ^ kept
        left -= total(f, kept)
    return state


@kernel
def _clip(f: Fields, rows: Words, room: Words) -> None:
    """No node gives more than it has."""
    words, jobs = rows.shape
    for k in range(words):
        left, row = room[k] | f.high, rows[k]
        for j in range(jobs):
            rest = after(f, left, row[j])
            row[j] = left - rest
            left = rest


@kernel
def _judge(f: Fields, problem: Problem, rows: Words, s: Scratch) -> tuple[np.uint64, float, float]:
    """A hash of the rows, the power mean, and how well the nodes in use are used or how many there are."""
    words, jobs = rows.shape
    mark, in_use, nodes, mean, summed = _NONE, 0, 0, 0.0, 0.0
    for k in range(words):
        row, now, factor, used, before = rows[k], problem.present[k], s.factor[k], _NONE, earlier(k)
        kept = np.int64(before)
        for j in range(jobs):
            used |= row[j]
            s.held[j] = (s.held[j] & kept) + total(f, row[j])
            s.changed[j] = (s.changed[j] & before) | (row[j] ^ now[j])
            mark += (row[j] ^ (row[j] >> _29)) * factor[j]
        used = tops(f, used)
        in_use += total(f, problem.room[k] & whole(f, used))
        nodes += total(f, used >> f.top)
    mark ^= mark >> _32
    for j in range(jobs):
        found = problem.worth[j, int(s.spread[j] != _NONE), s.held[j]]
        summed += found[SPEEDUP]
        mean += found[MOVED + int(s.changed[j] == _NONE)]
    second = -summed / in_use if in_use > 0 else 0.0
    if problem.count_nodes:
        second = float(nodes)
    if problem.power == -1.0:
        return mark, -jobs / mean, second
    if problem.power == 0.0:
        return mark, -math.exp(mean / jobs), second
    return mark, -((mean / jobs) ** (1.0 / problem.power)), second
