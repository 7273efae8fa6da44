"""Defragmentation: a gang that spans nodes is brought together where that saves more than it costs (Gandiva, OSDI 2018, section 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gantline.core.arrays import Ints
from gantline.placement.migration import Layout

Saved = Callable[[str, Sequence[int], Sequence[int]], float]  # job, nodes it is on now, nodes it would be on -> seconds saved to its end


def defragment(now: Sequence[Mapping[str, int]], capacity: Sequence[int], saved: Saved, cost: Callable[[str], float]) -> Layout:
    """The layout after all single moves that pay: again and again the job that gains most over its cost, until none gains.

    A move puts a job on the fewest nodes that have room for it, the ones it sits on first; others stay where they are. Ties: the job
    whose name comes first. Nobody moves twice.
    """
    layout: Layout = [dict(node) for node in now]
    free = np.array(capacity, dtype=np.int64) - np.array([sum(node.values()) for node in layout], dtype=np.int64)
    spread = _spread(layout, max(capacity, default=1))
    while True:
        best, gain = None, 0.0
        for job in sorted(spread):
            held = np.zeros(len(layout), dtype=np.int64)
            held[list(spread[job])] = list(spread[job].values())
            target = _together(held, free + held)
            if len(target) < len(spread[job]):
                worth = saved(job, sorted(spread[job]), sorted(target)) - cost(job)
                if worth > gain:
                    best, gain = (job, target), worth
        if best is None:
            return layout
        job, target = best
        for place, workers in spread.pop(job).items():
            del layout[place][job]
            free[place] += workers
        for place, workers in target.items():
            layout[place][job] = workers
            free[place] -= workers


def _spread(layout: Layout, largest: int) -> dict[str, dict[int, int]]:
    """Jobs on more nodes than the largest ones would need, with their workers per node."""
    seats: dict[str, dict[int, int]] = {}
    for place, node in enumerate(layout):
        for job, workers in node.items():
            seats.setdefault(job, {})[place] = workers
    return {job: where for job, where in seats.items() if len(where) > -(-sum(where.values()) // largest)}


def _together(held: Ints, room: Ints) -> dict[int, int]:
    """Workers per node if a job sat on as few nodes as have room: on one that fits best, else filling the emptiest first."""
    left, found, room = int(held.sum()), dict[int, int](), room.copy()
    while left > 0:
        whole = np.flatnonzero(room >= left)
        order = np.lexsort((whole, room[whole], -held[whole])) if len(whole) else np.lexsort((-held, -room))
        place = int(whole[order[0]]) if len(whole) else int(order[0])
        found[place] = min(int(room[place]), left)
        left -= found[place]
        room[place] = 0
    return found
