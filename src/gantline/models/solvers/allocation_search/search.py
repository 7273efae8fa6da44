"""The search itself: a population of allocations, varied and selected for so many generations.

The first objective is the (negative) power mean of the jobs' speedups, which is what is wanted; the second is how well the nodes in use
are used, which keeps variety alive, or how many there are, where nodes have a price. The answer is the best by the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.models.solvers.allocation_search.evolution import SIDE, Population, evolve
from gantline.models.solvers.allocation_search.packed_rows import Layout, Scratch, layout_for, pack, scratch_for, unpack
from gantline.models.solvers.allocation_search.settling import WORTHS, Problem, Rules
from gantline.models.solvers.allocation_search.variation import jumps


@dataclass(frozen=True)
class Demand:
    """The jobs of one search, in the order in which they give way: the first keeps what it has where two meet."""

    present: Ints  # [jobs, nodes]
    most: Ints
    speedup: Floats  # [jobs, 2, devices + 1]
    penalty: Floats
    scale: float = 1.0
    power: float = -1.0
    count_nodes: bool = False


@dataclass(frozen=True)
class Found:
    """The best allocation [jobs, nodes], and the members that none dominates, to begin the next search with."""

    best: Ints
    front: Ints = field(repr=False)
    objective: tuple[float, float] = (0.0, 0.0)
    generations: int = 0


@dataclass
class Workspace:
    """Where a search works, kept for the next one of the same size."""

    made_for: tuple[int, int, Layout] | None = None
    rooms: tuple[Population, Scratch] | None = None

    def made(self, size: int, jobs: int, layout: Layout) -> tuple[Population, Scratch]:
        """Places for members and room to work in, as they are before a search."""
        if self.rooms is None or self.made_for != (size, jobs, layout):
            self.made_for, self.rooms = (size, jobs, layout), (_population(size, jobs, layout), scratch_for(jobs, layout, jumps(jobs)))
        population = self.rooms[0]
        population.order[:] = np.arange(len(population.order))
        population.rank[:] = 0
        population.slots[:] = 0
        return self.rooms


def _population(size: int, jobs: int, layout: Layout) -> Population:
    places = 2 * size + 1
    order, by_objectives, grouped, rank, room = np.zeros((5, places), dtype=np.int64)
    return Population(
        np.empty((places, layout.words, jobs), dtype=np.uint64),
        np.zeros((2, places)),
        np.zeros(places, dtype=np.uint64),
        np.zeros(places),
        order,
        by_objectives,
        grouped,
        rank,
        room,
        np.zeros((2, places + SIDE)),
        np.zeros(4 * size, dtype=np.int64),
        np.zeros(places, dtype=np.int64),
        np.zeros(1 << (4 * places).bit_length(), dtype=np.int16),
    )


def restart_penalty(age: Floats, restarts: Ints, cost: float) -> Floats:
    """The part of its age that a job has really run, were it restarted once more."""
    return np.maximum(age - cost * restarts, 0.0) / np.maximum(age + cost, 1e-9)


def search(
    demand: Demand,
    capacity: Ints,
    seed: int,
    *,
    start: Ints | None = None,
    size: int = 100,
    generations: int = 100,
    avoid: bool = True,
    most_nodes: int = 16,
    workspace: Workspace | None = None,
) -> Found:
    """Search allocations of ``capacity`` (devices per node) to jobs; ``start`` holds members [n, jobs, nodes] to begin with.

    A caller that searches again and again passes in a ``workspace`` of its own.
    """
    jobs, nodes = demand.present.shape
    layout = layout_for(nodes, int(capacity.max(initial=1)))
    most = demand.most.astype(np.int64)
    problem = Problem(
        pack(capacity, layout),
        pack(demand.present, layout),
        most,
        np.ascontiguousarray(demand.speedup),
        demand.penalty,
        float(demand.scale),
        np.empty((*demand.speedup.shape, WORTHS)),
        float(demand.power),
        bool(demand.count_nodes),
        np.minimum(most, most_nodes) if nodes > most_nodes else most,
        bool(((demand.present.sum(axis=1) <= most) & ((demand.present > 0).sum(axis=1) <= most_nodes)).all()),
    )
    population, scratch = (workspace or Workspace()).made(size, jobs, layout)
    first = demand.present[None] if start is None or not len(start) else start[:size]
    population.rows[: len(first)] = pack(first, layout)
    best, count, made = evolve(seed, layout, Rules(avoid, most_nodes), problem, population, scratch, len(first), size, generations)
    members = population.order[:count]
    front = members[population.rank[members] == 0]
    return Found(
        unpack(population.rows[best], layout),
        unpack(population.rows[front], layout),
        (float(population.objective[0, best]), float(population.objective[1, best])),
        made,
    )
