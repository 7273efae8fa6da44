"""Defragmentation: a gang that spans nodes is brought together where that saves more than it costs (Gandiva, OSDI 2018, section 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gantline.core.arrays import Ints

Saved = Callable[[int, Sequence[int], Sequence[int]], float]  # job, nodes it is on now, nodes it would be on -> seconds saved to its end


def defragment(now: Ints, capacity: Ints, saved: Saved, cost: Callable[[int], float]) -> Ints:
    """The layout (jobs x nodes) after all single moves that pay: again and again the job that gains most over its cost, until none gains.

    A move puts a job on the fewest nodes that have room for it, the ones it sits on first; others stay where they are. Ties: the
    earlier job. No job moves twice.
    """
    layout = now.copy()
    free = capacity - layout.sum(axis=0)
    needed = -(-layout.sum(axis=1) // int(capacity.max(initial=1)))
    spread = np.flatnonzero((layout > 0).sum(axis=1) > needed).tolist()  # jobs on more nodes than the largest ones would need
    while True:
        best, gain = None, 0.0
        for job in spread:
            held, target = layout[job], _together(layout[job], free + layout[job])
            before, after = np.flatnonzero(held).tolist(), np.flatnonzero(target).tolist()
            if len(after) < len(before):
                worth = saved(job, before, after) - cost(job)
                if worth > gain:
                    best, gain = (job, target), worth
        if best is None:
            return layout
        job, target = best
        spread.remove(job)
        free += layout[job] - target
        layout[job] = target


def _together(held: Ints, room: Ints) -> Ints:
    """Workers per node if a job sat on as few nodes as have room: on one that fits best, else filling the emptiest first."""
    left, found, room = int(held.sum()), np.zeros_like(held), room.copy()
    while left > 0:
        whole = np.flatnonzero(room >= left)
        order = np.lexsort((whole, room[whole], -held[whole])) if len(whole) else np.lexsort((-held, -room))
        place = int(whole[order[0]]) if len(whole) else int(order[0])
        found[place] = min(int(room[place]), left)
        left -= int(found[place])
        room[place] = 0
    return found
