"""Room to work in, so that kernels allocate nothing, and numbers that depend on the size of a search alone."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Ints
from gantline.models.solvers.allocation_search.words import Layout, Words

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
