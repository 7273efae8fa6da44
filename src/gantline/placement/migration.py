"""Where the workers of elastic jobs sit after their sizes changed: packed anew, then bound to real nodes so that the fewest workers move.

Voda (Hsieh and Lee, IC2E 2023) packs all jobs from nothing onto copies of the nodes, the largest first, each into the fullest node that
still holds it whole; then it matches these anonymous nodes with the real ones by their overlap. So jobs span few nodes first, and few
workers move second. Here no node is overbooked, workers are conserved, and a packed node is only bound to a node that is large enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from gantline.core.errors import UsageError

Layout = list[dict[str, int]]  # per node: workers of each job


@dataclass(frozen=True)
class Rearranged:
    """A new layout, and what it takes to get there."""

    layout: Layout
    moved: dict[str, int]  # workers that go to another node, of jobs that have such
    uprooted: tuple[str, ...]  # jobs all of whose workers move, so that nobody is left to go on meanwhile

    @property
    def moves(self) -> int:
        """Workers that move in all; workers that are new or leave do not count."""
        return sum(self.moved.values())

    @property
    def spanning(self) -> tuple[str, ...]:
        """Jobs on more than one node."""
        seen: dict[str, int] = {}
        for node in self.layout:
            for job in node:
                seen[job] = seen.get(job, 0) + 1
        return tuple(job for job, nodes in seen.items() if nodes > 1)


def rearrange(
    sizes: Mapping[str, int], now: Sequence[Mapping[str, int]], capacity: Sequence[int], packed: Layout | None = None
) -> Rearranged:
    """The layout for these sizes (jobs left out, or of size 0, have ended), given who sits where now; `packed` anew in another way."""
    staying = release(sizes, now)
    layout = bind(pack(sizes, capacity) if packed is None else packed, staying, capacity)
    moves: dict[str, int] = {}
    for old, new in zip(staying, layout):
        for job, workers in old.items():
            moves[job] = moves.get(job, 0) + max(workers - new.get(job, 0), 0)
    moved = {job: moves[job] for job in sizes if moves.get(job)}
    uprooted = [job for job, count in moved.items() if count == sizes[job]]
    return Rearranged(layout, moved, tuple(uprooted))


def release(sizes: Mapping[str, int], now: Sequence[Mapping[str, int]]) -> Layout:
    """Who is left after jobs ended and others shrank; workers leave from the last node on, as ranks are numbered through the nodes."""
    excess = {job: -sizes.get(job, 0) for node in now for job in node}
    for node in now:
        for job, workers in node.items():
            excess[job] += workers
    left: Layout = [{} for _ in now]
    for place in range(len(now) - 1, -1, -1):
        for job, workers in now[place].items():
            gone = min(max(excess[job], 0), workers)
            excess[job] -= gone
            if workers > gone:
                left[place][job] = workers - gone
    return left


def pack(sizes: Mapping[str, int], capacity: Sequence[int]) -> Layout:
    """Best fit by size, descending: the fullest node that holds a job whole, else the emptiest is filled and the rest goes on.

    Ties: the earlier job, the earlier node.
    """
    if sum(sizes.values()) > sum(capacity):
        raise UsageError(f"{sum(sizes.values())} workers do not fit on {sum(capacity)} devices", where="placement", fix="ask for fewer")
    free = np.array(capacity, dtype=np.int64)
    layout: Layout = [{} for _ in capacity]
    for job, size in sorted(sizes.items(), key=lambda item: -item[1]):
        left = size
        while left > 0:
            holds = free >= left
            place = int(np.argmin(np.where(holds, free, np.iinfo(np.int64).max))) if holds.any() else int(np.argmax(free))
            taken = min(left, int(free[place]))
            layout[place][job] = layout[place].get(job, 0) + taken
            free[place] -= taken
            left -= taken
    return layout


def bind(packed: Layout, now: Sequence[Mapping[str, int]], capacity: Sequence[int]) -> Layout:
    """Give the packed nodes their real places: the assignment with the greatest overlap, on nodes that are large enough."""
    n = len(capacity)
    overlap = np.zeros((n, n), dtype=np.int64)
    here: dict[str, list[tuple[int, int]]] = {}
    for place, node in enumerate(now):
        for job, workers in node.items():
            here.setdefault(job, []).append((place, workers))
    for k, node in enumerate(packed):
        for job, workers in node.items():
            for place, held in here.get(job, ()):
                overlap[k, place] += min(workers, held)
    worth = overlap * (n + 1) + np.eye(n, dtype=np.int64)  # of equal ones, the place where it was packed
    used = np.array([sum(node.values()) for node in packed], dtype=np.int64)
    too_small = used[:, None] > np.array(capacity, dtype=np.int64)[None, :]
    worth[too_small] = -2 * (int(used.sum()) + 1) * (n + 1)
    rows, places = linear_sum_assignment(worth, maximize=True)
    layout: Layout = [{} for _ in range(n)]
    for row, place in zip(rows.tolist(), places.tolist()):
        layout[place] = dict(packed[row])
    return layout
