"""Allocations in machine words: one field of a few bits per node, sixteen or eight nodes a word, and arithmetic on all of them at once.

A job's allocation is a row of small numbers, devices per node. A search looks at millions of such rows, and what it asks of them (how many
in all, on how many nodes, clip to what is left on each node) takes one or two instructions for a whole word. Fields keep their top bit
free, so sums of neighbours never run into each other.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Ints
from gantline.core.errors import UsageError
from gantline.core.jit import kernel

Words = NDArray[np.uint64]

_ONE: Final = np.uint64(1)
_BYTES: Final = np.uint64(0x0F0F0F0F0F0F0F0F)
_PAIRS: Final = np.uint64(0x00FF00FF00FF00FF)
_GATHER: Final = np.uint64(0x0001000100010001)
_4: Final = np.uint64(4)
_8: Final = np.uint64(8)
_48: Final = np.uint64(48)


class Fields(NamedTuple):
    """How nodes lie in words."""

    nodes: int
    width: int  # bits of a field
    log: int  # of the nodes per word
    words: int
    top: np.uint64  # shift of a field's top bit down to its lowest
    ones: np.uint64  # 1 in every field
    high: np.uint64  # the top bit of every field
    full: np.uint64  # all bits of one field

    @property
    def per_word(self) -> int:
        return 1 << self.log


def fields_for(nodes: int, most: int) -> Fields:
    """Fields for so many nodes with at most so many devices each. Three rows may meet on a node before they are repaired."""
    if most > 42:
        raise UsageError(f"a node has {most} devices", where="allocation search", fix="nodes of 42 devices at most")
    width = 4 if most <= 5 else 8
    ones = sum(1 << shift for shift in range(0, 64, width))
    log = 4 if width == 4 else 3
    return Fields(
        nodes,
        width,
        log,
        (nodes + (1 << log) - 1) >> log,
        np.uint64(width - 1),
        np.uint64(ones),
        np.uint64(ones << (width - 1)),
        np.uint64((1 << width) - 1),
    )


def pack(rows: Ints, fields: Fields) -> Words:
    """Rows of devices per node as words; the last axis is nodes."""
    table = np.asarray(rows, dtype=np.uint64)
    padded = np.zeros((*table.shape[:-1], fields.words * fields.per_word), dtype=np.uint64)
    padded[..., : fields.nodes] = table
    shifts = (np.arange(fields.per_word) * fields.width).astype(np.uint64)
    shaped = padded.reshape(*table.shape[:-1], fields.words, fields.per_word)
    return np.asarray(np.bitwise_or.reduce(shaped << shifts, axis=-1))


def unpack(words: Words, fields: Fields) -> Ints:
    """Words as rows of devices per node."""
    shifts = (np.arange(fields.per_word) * fields.width).astype(np.uint64)
    wide = (words[..., None] >> shifts) & fields.full
    return wide.reshape(*words.shape[:-1], fields.words * fields.per_word)[..., : fields.nodes].astype(np.int64)


@kernel
def total(f: Fields, x: np.uint64) -> int:
    """The sum of all fields."""
    if f.width == 4:
        x = (x & _BYTES) + ((x >> _4) & _BYTES)
    x = (x & _PAIRS) + ((x >> _8) & _PAIRS)
    return int(np.int64((x * _GATHER) >> _48))


@kernel
def tops(f: Fields, x: np.uint64) -> np.uint64:
    """The top bit of every field that is not zero."""
    return ((x + (f.high - f.ones)) | x) & f.high


@kernel
def spread_out(f: Fields, tops_set: np.uint64) -> np.uint64:
    """Whole fields from their top bits."""
    return (tops_set >> f.top) * f.full


@kernel
def clip(f: Fields, x: np.uint64, left: np.uint64) -> np.uint64:
    """The smaller of two, field by field."""
    enough = spread_out(f, ((left | f.high) - x) & f.high)
    return (x & enough) | (left & ~enough)


@kernel
def shift_of(f: Fields, node: int) -> np.uint64:
    """Where a node's field begins in its word."""
    return np.uint64((node & ((1 << f.log) - 1)) * f.width)


@kernel
def spans_nodes(f: Fields, row: Words) -> bool:
    """Whether a row has entries on more than one node."""
    some = False
    for k in range(row.size):
        bits = tops(f, row[k])
        if bits:
            if some or (bits & (bits - _ONE)):
                return True
            some = True
    return False


@kernel
def at(f: Fields, row: Words, node: int) -> int:
    """The devices of a row on one node."""
    return int(np.int64((row[node >> f.log] >> shift_of(f, node)) & f.full))


@kernel
def put(f: Fields, row: Words, node: int, value: int) -> None:
    """Set the devices of a row on one node."""
    word, shift = node >> f.log, shift_of(f, node)
    row[word] = (row[word] & ~(f.full << shift)) | (np.uint64(value) << shift)


@kernel
def lowest(tops_set: np.uint64) -> np.uint64:
    """The lowest bit that is set."""
    return tops_set & (~tops_set + _ONE)


@kernel
def place_of(f: Fields, top_bit: np.uint64) -> int:
    """Which field a top bit belongs to."""
    return total(f, ((top_bit - _ONE) & f.high) >> f.top)
