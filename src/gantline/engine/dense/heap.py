"""Several binary heaps over rows, smallest number on top; each row's line says where it stands, so that it can change or leave at any time.

Which heap is meant is a small number, the first index of every matrix: finishes, ranks and levels share the code. One more is scratch of a
pass: an entry only ever leaves as the first, so that nobody asks where it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.dense.records import Record, Records

#: when it is done; how low it ranks (lowest on top); when it reaches its next level; where a search through the ranks stands
DUE, RANK, LEVEL, FRONT = range(4)
HEAPS = FRONT  # those in which places are known


class Heaps(NamedTuple):
    key: Floats  # (heap, place)
    row: Ints32  # (heap, place)
    at: Ints32  # (row, `records.AT` + heap): its place, -1: not there; the whole numbers of the records
    size: Ints  # (heap,)


def heaps(jobs: Records) -> Heaps:
    """Empty heaps for these rows."""
    rows = len(jobs.i)
    return Heaps(np.empty((4, rows + 1)), np.empty((4, rows + 1), dtype=np.int32), jobs.i, np.zeros(4, dtype=np.int64))


@kernel
def _rise(h: Heaps, which: int, at: int, key: float, row: int) -> None:
    while at > 0:
        parent = (at - 1) >> 1
        if h.key[which, parent] <= key:
            break
        moved = h.row[which, parent]
        h.key[which, at] = h.key[which, parent]
        h.row[which, at] = moved
        h.at[moved, Record.AT + which] = at
        at = parent
    h.key[which, at] = key
    h.row[which, at] = row
    h.at[row, Record.AT + which] = at


@kernel
def _sink(h: Heaps, which: int, at: int, key: float, row: int) -> None:
    size = h.size[which]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and h.key[which, child + 1] < h.key[which, child]:
            child += 1
        if h.key[which, child] >= key:
            break
        moved = h.row[which, child]
        h.key[which, at] = h.key[which, child]
        h.row[which, at] = moved
        h.at[moved, Record.AT + which] = at
        at = child
    h.key[which, at] = key
    h.row[which, at] = row
    h.at[row, Record.AT + which] = at


@kernel
def put_no_later(h: Heaps, which: int, row: int, key: float) -> None:
    """Put the row into the heap with this key, or leave it there with a smaller one, which is corrected when it comes to the top."""
    at = h.at[row, Record.AT + which]
    if at < 0:
        at = h.size[which]
        h.size[which] += 1
        _rise(h, which, at, key, row)
    elif key < h.key[which, at]:
        _rise(h, which, at, key, row)


@kernel
def put(h: Heaps, which: int, row: int, key: float) -> None:
    """Put the row into the heap with this key, or change its key if it is there."""
    at = h.at[row, Record.AT + which]
    if at < 0 or key < h.key[which, at]:
        put_no_later(h, which, row, key)
    else:
        _sink(h, which, at, key, row)


@kernel
def drop(h: Heaps, which: int, row: int) -> None:
    """Take the row out, if it is there."""
    at = h.at[row, Record.AT + which]
    if at < 0:
        return
    h.at[row, Record.AT + which] = -1
    h.size[which] -= 1
    last = h.size[which]
    if at == last:
        return
    key, moved = h.key[which, last], h.row[which, last]
    if at > 0 and h.key[which, (at - 1) >> 1] > key:
        _rise(h, which, at, key, moved)
    else:
        _sink(h, which, at, key, moved)


@kernel
def replace(h: Heaps, which: int, row: int, other: int, key: float) -> None:
    """Replace a row in the heap by another, which may be in the heap already."""
    if h.at[other, Record.AT + which] >= 0:
        drop(h, which, row)
        put(h, which, other, key)
        return
    at = h.at[row, Record.AT + which]
    h.at[row, Record.AT + which] = -1
    if key < h.key[which, at]:
        _rise(h, which, at, key, other)
    else:
        _sink(h, which, at, key, other)


@kernel
def first(h: Heaps, which: int) -> float:
    """The smallest number in the heap; infinity: it is empty."""
    return float(h.key[which, 0]) if h.size[which] > 0 else np.inf


@kernel
def mend(h: Heaps, which: int) -> None:
    """Make it a heap again after all keys have changed."""
    for at in range(h.size[which] // 2 - 1, -1, -1):
        _sink(h, which, at, h.key[which, at], h.row[which, at])


@kernel
def push(h: Heaps, key: float, what: int) -> None:
    """Put something into the scratch heap."""
    h.size[FRONT] += 1
    _rise(h, FRONT, h.size[FRONT] - 1, key, what)


@kernel
def exchange(h: Heaps, key: float, what: int) -> None:
    """Put something into the scratch heap in place of the first."""
    _sink(h, FRONT, 0, key, what)


@kernel
def pop(h: Heaps) -> None:
    """Take the first out of the scratch heap."""
    h.size[FRONT] -= 1
    last = h.size[FRONT]
    if last > 0:
        exchange(h, h.key[FRONT, last], h.row[FRONT, last])
