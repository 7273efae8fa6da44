"""Buddy blocks: gangs of powers of two on equal nodes, placed so that none spans more nodes than it must (ElasticFlow, ASPLOS 2023).

Whole nodes go to gangs that fill them; the others, largest first, take the smallest free block that holds them, halved until it fits. With
powers of two this never fails while there are devices enough: what is free is always whole blocks of the sizes that are still to come.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.errors import UsageError
from gantline.core.jit import kernel
from gantline.policies.placement.migration import largest_first


def fits_buddies(sizes: Ints, capacity: Ints) -> bool:
    """Whether buddy blocks place them all for sure: equal nodes and sizes, all powers of two; a size of 0 is no gang."""
    numbers = np.append(sizes[sizes > 0], capacity[:1])
    return bool(len(capacity) and (capacity == capacity[0]).all() and ((numbers > 0) & (numbers & (numbers - 1) == 0)).all())


def place_buddies(sizes: Ints, nodes: int, gpus: int) -> Ints:
    """The layout of these gangs on so many nodes of `gpus` devices, from nothing; `migration.bind` gives the nodes their real places.

    Sizes that are no power of two take the block above. Ties: the earlier job, the earlier block.
    """
    if gpus < 1 or gpus & (gpus - 1):
        raise UsageError(f"nodes of {gpus} GPUs", where="buddy placement", fix="a power of two")
    layout = np.zeros((len(sizes), nodes), dtype=np.int64)
    lacking = _place(largest_first(sizes), sizes, gpus, np.full(nodes, gpus, dtype=np.int64), layout)
    if lacking >= 0:
        raise UsageError(f"job {lacking} finds no block for its {sizes[lacking]} GPUs", where="buddy placement", fix="ask for fewer")
    return layout


@kernel
def _place(order: Ints, sizes: Ints, gpus: int, free: Ints, layout: Ints) -> int:
    """``free``: the sizes of each node's free blocks, added up; no node has two of a size. The job that finds no block; -1: none."""
    for job in order:
        left = sizes[job]
        while left > 0:
            wanted = 1
            while wanted < left and wanted < gpus:
                wanted *= 2
            block, place = wanted, -1
            while place < 0 and block <= gpus:
                for node in range(free.size):
                    if free[node] & block:
                        place = node
                        break
                if place < 0:
                    block *= 2
            if place < 0:
                return int(job)
            free[place] -= wanted  # the rest of the block is one half, one quarter, ... down to the block's own size
            taken = min(left, wanted)
            layout[job, place] += taken
            left -= taken
    return -1
