"""Buddy blocks: gangs of powers of two on equal nodes, placed so that none spans more nodes than it must (ElasticFlow, ASPLOS 2023).

Whole nodes go to gangs that fill them; the others, largest first, take the smallest free block that holds them, halved until it fits. With
powers of two this never fails while there are devices enough: what is free is always whole blocks of the sizes that are still to come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gantline.core.errors import UsageError
from gantline.placement.migration import Layout


def fits_buddies(sizes: Mapping[str, int], capacity: Sequence[int]) -> bool:
    """Whether buddy blocks place them all for sure: equal nodes and sizes, all powers of two."""
    numbers = [*sizes.values(), *capacity[:1]]
    return len(set(capacity)) == 1 and all(size > 0 and not size & (size - 1) for size in numbers)


def place_buddies(sizes: Mapping[str, int], nodes: int, gpus: int) -> Layout:
    """Who sits where on so many nodes of `gpus` devices, from nothing; `migration.bind` gives the nodes their real places.

    Sizes that are no power of two take the block above. Ties: the earlier job, the earlier block.
    """
    if gpus < 1 or gpus & (gpus - 1):
        raise UsageError(f"nodes of {gpus} GPUs", where="buddy placement", fix="a power of two")
    layout: Layout = [{} for _ in range(nodes)]
    free: dict[int, list[int]] = {gpus: list(range(nodes))}  # nodes with a free block of that size, in order
    for job, size in sorted(sizes.items(), key=lambda item: -item[1]):
        left = size
        while left > 0:
            block = min(_power(left), gpus)
            place = _block(free, block, gpus)
            if place is None:
                raise UsageError(f"job '{job}' finds no block of {block} GPUs", where="buddy placement", fix="ask for fewer")
            layout[place][job] = layout[place].get(job, 0) + min(left, block)
            left -= min(left, block)
    return layout


def _power(size: int) -> int:
    """The power of two from this size on."""
    return 1 << max(size - 1, 0).bit_length()


def _block(free: dict[int, list[int]], wanted: int, largest: int) -> int | None:
    """The node of the smallest free block that is large enough, which is halved until it is as wanted."""
    size = wanted
    while size <= largest and not free.get(size):
        size *= 2
    if size > largest:
        return None
    place = free[size].pop(0)
    while size > wanted:
        size //= 2
        free.setdefault(size, []).append(place)
        free[size].sort()
    return place
