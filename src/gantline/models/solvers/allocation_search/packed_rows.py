"""Allocations in machine words: one field of a few bits per node, and arithmetic on sixteen or eight nodes at once.

A job's allocation is a row of small numbers, devices per node. A search looks at millions of such rows, and what it
asks of them (how many in all, on how many nodes, clip to what is left on each node) takes a few instructions for a
whole word. An entry stays in its field while it is worked on: numbers and limits are compared at the same place, so
nothing is shifted down. Entries leave their top bit free.

The words of all jobs for the same nodes lie side by side, [word, job]: what is asked of every job is then one loop over
neighbours, which the compiler turns into instructions for several jobs at once.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Ints
from gantline.core.errors import UsageError
from gantline.core.jit import kernel_from_zero as kernel

Words = NDArray[np.uint64]

_NONE: Final = np.uint64(0)
_ALL: Final = ~_NONE
_ONE: Final = np.uint64(1)
_BYTES: Final = np.uint64(0x0F0F0F0F0F0F0F0F)
_PAIRS: Final = np.uint64(0x00FF00FF00FF00FF)
_GATHER: Final = np.uint64(0x0001000100010001)
_4: Final = np.uint64(4)
_8: Final = np.uint64(8)
_48: Final = np.uint64(48)
_NARROW: Final = np.uint64(0x8888888888888888)
_WIDE: Final = np.uint64(0x8080808080808080)
_3: Final = np.uint64(3)
_7: Final = np.uint64(7)


class Layout(NamedTuple):
    """How nodes lie in words."""

    nodes: int
    width: int  # bits of a field
    per_word: int
    words: int


class Fields(NamedTuple):
    """Where fields begin and end, as kernels need it."""

    high: np.uint64  # the top bit of every field
    top: np.uint64  # shift of a field's top bit down to its lowest
    narrow: bool  # fields of four bits, not of eight


def layout_for(nodes: int, most: int) -> Layout:
    """Fields for so many nodes with at most so many devices each. Three rows may meet on a node before they are repaired."""
    if most > 42:
        raise UsageError(f"a node has {most} devices", where="allocation search", fix="nodes of 42 devices at most")
    width = 4 if most <= 5 else 8
    return Layout(nodes, width, 64 // width, -(-nodes * width // 64))


def pack(rows: Ints, layout: Layout) -> Words:
    """Rows of devices per node as words: from [.., job, node] to [.., word, job], or from [node] to [word]."""
    if layout.width == 8:
        padded = np.zeros((*rows.shape[:-1], layout.words * 8), dtype=np.uint8)
        padded[..., : layout.nodes] = rows
    else:
        halves = np.zeros((*rows.shape[:-1], layout.words * 16), dtype=np.uint8)
        halves[..., : layout.nodes] = rows
        padded = halves[..., ::2] | (halves[..., 1::2] << 4)
    words = np.ascontiguousarray(padded).view("<u8").astype(np.uint64, copy=False)
    return words if words.ndim == 1 else np.ascontiguousarray(np.swapaxes(words, -1, -2))


def unpack(words: Words, layout: Layout) -> Ints:
    """Words [.., word, job] as rows of devices per node [.., job, node]."""
    bytes_of = np.ascontiguousarray(np.swapaxes(words, -1, -2).astype("<u8", copy=False)).view(np.uint8)
    if layout.width == 8:
        return bytes_of[..., : layout.nodes].astype(np.int64)
    found = np.empty((*bytes_of.shape[:-1], 2 * bytes_of.shape[-1]), dtype=np.int64)
    found[..., ::2], found[..., 1::2] = bytes_of & 15, bytes_of >> 4
    return found[..., : layout.nodes]


@kernel
def fields_of(layout: Layout) -> Fields:
    """The masks and shifts of a layout."""
    if layout.width == 4:
        return Fields(_NARROW, _3, True)
    return Fields(_WIDE, _7, False)


@kernel
def total(f: Fields, x: np.uint64) -> int:
    """The sum of all fields."""
    if f.narrow:
        x = (x & _BYTES) + ((x >> _4) & _BYTES)
    x = (x & _PAIRS) + ((x >> _8) & _PAIRS)
    return int(np.int64((x * _GATHER) >> _48))


@kernel
def tops(f: Fields, x: np.uint64) -> np.uint64:
    """The top bit of every field that is not zero."""
    return ((x + (f.high - (f.high >> f.top))) | x) & f.high


@kernel
def whole(f: Fields, tops_set: np.uint64) -> np.uint64:
    """All bits of the fields whose top bit is set."""
    return (tops_set << _ONE) - (tops_set >> f.top)


@kernel
def with_room(f: Fields, used: np.uint64, capacity: np.uint64) -> np.uint64:
    """The top bit of every field in which less is used than there is. What is used may fill its field, capacities leave room."""
    return ~(used | ((used | f.high) - capacity)) & f.high


@kernel
def after(f: Fields, left: np.uint64, x: np.uint64) -> np.uint64:
    """What is left of ``left`` without ``x``, nothing where ``x`` is more; top bits are set before and after."""
    rest = left - x
    enough = rest & f.high
    return (rest & (enough - (enough >> f.top))) | f.high


@kernel
def above_one(f: Fields, x: np.uint64) -> np.uint64:
    """The top bit of every field that holds more than one; fields may be full."""
    ones = f.high >> f.top
    x &= ~ones
    return (((x & ~f.high) + (f.high - ones)) | x) & f.high


@kernel
def lowest(bits: np.uint64) -> np.uint64:
    """The lowest bit that is set."""
    return bits & (~bits + _ONE)


@kernel
def without_lowest(bits: np.uint64) -> np.uint64:
    """All but the lowest bit that is set: not zero if several are."""
    return bits & (bits - _ONE)


@kernel
def earlier(k: int) -> np.uint64:
    """A mask for what was found in the words before this one: all bits, or none before the first."""
    return _ALL if k > 0 else _NONE


# Random numbers inside kernels: splitmix64, whose state is one word that callers hand on. The n-th number depends on
# the first state and n alone, so draws of a later step can be made before those of an earlier one.

STEP: Final = np.uint64(0x9E3779B97F4A7C15)  # from one state to the next
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
_UNIT: Final = 1.0 / (1 << 53)


@kernel
def mixed(z: np.uint64) -> np.uint64:
    """The random word of a state: all its bits depend on all bits of another."""
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


@kernel
def uniform(state: np.uint64) -> float:
    """The number from 0 up to 1 of a state."""
    return float(np.int64(mixed(state) >> _11)) * _UNIT


@kernel
def shuffle(state: np.uint64, numbers: Ints, first: int, end: int) -> np.uint64:
    """Put a stretch of numbers into a random order; the state afterwards."""
    for i in range(end - 1, first, -1):
        state += STEP
        j = first + int(uniform(state) * (i - first + 1))
        numbers[i], numbers[j] = numbers[j], numbers[i]
    return state


# Room to work in, so that kernels allocate nothing, and numbers that depend on the size of a search alone.

Small = NDArray[np.int16]
Lots = NDArray[np.uint16]


class Scratch(NamedTuple):
    """Room to work in."""

    drawn: Words  # random words, and the same as sixteen bits for each job
    lots: Lots
    chosen: Words  # [words, jobs]: top bits of the entries that are drawn anew
    holders: Words  # per word, as are the two following
    left: Words
    shared: Words
    node: Words  # nodes with room, and in which word each lies
    word: Ints
    visit: Ints  # nodes in random order
    held: Ints  # devices of each job
    suspects: Ints  # jobs that may have too much
    spread: Words  # per job: not zero if it spans nodes
    entries: Words  # per job, as are the following
    changed: Words
    some: Words  # not zero if some of its entries are drawn anew
    sharing: Words  # not zero if it is on a node with room and other jobs
    factor: Words  # [words, jobs]: to mark allocations with
    jump: Small  # how far it is to the next job that is chosen by chance


def scratch_for(jobs: int, layout: Layout, jump: Small) -> Scratch:
    """Room to work in for so many jobs."""
    drawn = np.zeros((jobs + 3) >> 2, dtype=np.uint64)
    holders, left, shared = np.zeros((3, layout.words), dtype=np.uint64)
    spread, entries, changed, some, sharing = np.zeros((5, jobs), dtype=np.uint64)
    return Scratch(
        drawn,
        drawn.view(np.uint16),
        np.zeros((layout.words, jobs), dtype=np.uint64),
        holders,
        left,
        shared,
        np.zeros(layout.nodes, dtype=np.uint64),
        np.zeros(layout.nodes, dtype=np.int64),
        np.zeros(2 * layout.nodes, dtype=np.int64),
        np.zeros(jobs, dtype=np.int64),
        np.zeros(jobs, dtype=np.int64),
        spread,
        entries,
        changed,
        some,
        sharing,
        factors(layout.words, jobs),
        jump,
    )


@cache
def factors(words: int, jobs: int) -> Words:
    """An odd number for every word of an allocation, without pattern."""
    return np.random.Generator(np.random.Philox(1)).integers(1 << 63, size=(words, jobs), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
