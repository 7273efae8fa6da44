"""Defragmentation: a gang that spans nodes is brought together where that saves more than it costs (Gandiva, OSDI 2018, section 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gantline.placement.migration import Layout

Saved = Callable[[str, int, int], float]  # job, nodes it spans now, nodes it would span -> seconds saved to its end


def defragment(now: Sequence[Mapping[str, int]], capacity: Sequence[int], saved: Saved, cost: Callable[[str], float]) -> Layout:
    """The layout after all single moves that pay: again and again the job that gains most over its cost, until none gains.

    A move puts a job on the fewest nodes that have room for it, the ones it sits on first; others stay where they are.
    """
    layout: Layout = [dict(node) for node in now]
    moved: set[str] = set()
    while True:
        best, gain = None, 0.0
        for job in {job for node in layout for job in node} - moved:
            target = _together(job, layout, capacity)
            before = sum(job in node for node in layout)
            worth = saved(job, before, len(target)) - cost(job) if len(target) < before else 0.0
            if worth > gain or (worth == gain and best is not None and worth > 0.0 and job < best[0]):
                best, gain = (job, target), worth
        if best is None:
            return layout
        moved.add(best[0])
        for place, node in enumerate(layout):
            node.pop(best[0], None)
            if workers := best[1].get(place, 0):
                node[best[0]] = workers


def _together(job: str, layout: Layout, capacity: Sequence[int]) -> dict[int, int]:
    """Workers per node if the job sat on as few nodes as have room: on one that fits best, else filling the emptiest first."""
    held = {place: node.get(job, 0) for place, node in enumerate(layout)}
    room = {place: capacity[place] - sum(node.values()) + held[place] for place, node in enumerate(layout)}
    left, found = sum(held.values()), dict[int, int]()
    while left > 0:
        open_ = {place: size for place, size in room.items() if size > 0 and place not in found}
        whole = [place for place, size in open_.items() if size >= left]
        if whole:
            place = min(whole, key=lambda place: (-held[place], open_[place], place))
        else:
            place = max(open_, key=lambda place: (open_[place], held[place], -place))
        found[place] = min(open_[place], left)
        left -= found[place]
    return found
