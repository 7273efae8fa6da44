"""Pollux' beliefs: how much faster each job would be on so many devices, from the models fitted so far.

Speedups are relative to the job's fair share of the cluster, which the original prices as if it were on one node. Goodput depends on nodes
only through "one" or "several", so two rows of numbers per job are enough; they are kept until model or gradient noise change.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.models.goodput.batch import GOODPUT, choose_batch
from gantline.systems.pollux.imitation.applications import Courses
from gantline.systems.pollux.imitation.clock import Column, PolluxJobs

# what a job's goodputs were computed for
_ROWS, _SQUARE, _VARIANCE, _DEVICES = range(4)


class Beliefs:
    """Goodputs of all jobs on one node and on several, computed as they are needed."""

    def __init__(self, jobs: int, devices: int, per_node: int) -> None:
        self.per_node = per_node
        self.goodput = np.zeros((jobs, 2, devices + 1))
        self.known = np.full((jobs, 4), -1.0)

    def speedups(self, jobs: PolluxJobs, courses: Courses, rows: Ints, most: Ints, fair: int) -> Floats:
        """Speedups [job, 2, devices] of some jobs, each up to its own limit."""
        found = np.zeros((len(rows), 2, int(most.max(initial=1)) + 1))
        fill_speedups(jobs, courses, rows, most, fair, self.per_node, self.goodput, self.known, found)
        return found


@kernel
def fill_speedups(
    jobs: PolluxJobs, courses: Courses, rows: Ints, most: Ints, fair: int, per_node: int, goodput: Floats, known: Floats, found: Floats
) -> None:
    """Goodputs where they changed, and the speedups that follow from them."""
    F, I, out = jobs.F, jobs.I, jobs.out
    for place in range(rows.size):
        j = rows[place]
        limits = courses.limits[I[Column.APP, j]]
        square, variance = F[Column.SQUARE, j], F[Column.VARIANCE, j]
        if I[Column.MODEL, j] == 0:
            for k in range(1, most[place] + 1):
                found[place, 0, k] = found[place, 1, k] = k / fair
            continue
        old = known[j]
        if old[_ROWS] != I[Column.SEEN, j] or old[_SQUARE] != square or old[_VARIANCE] != variance or old[_DEVICES] < most[place]:
            old[_ROWS], old[_SQUARE], old[_VARIANCE], old[_DEVICES] = I[Column.SEEN, j], square, variance, most[place]
            for k in range(1, most[place] + 1):
                if k <= per_node:
                    choose_batch(jobs.model[j], square, variance, 1, k, limits, out)
                    goodput[j, 0, k] = out[GOODPUT]
                if k > 1:
                    choose_batch(jobs.model[j], square, variance, 2, k, limits, out)
                    goodput[j, 1, k] = out[GOODPUT]
        choose_batch(jobs.model[j], square, variance, 1, fair, limits, out)
        base = out[GOODPUT] if out[GOODPUT] > 0.0 else goodput[j, 0, 1]  # a fair share that no batch is right for: one device
        for k in range(1, most[place] + 1):
            if base > 0.0:
                found[place, 0, k], found[place, 1, k] = goodput[j, 0, k] / base, goodput[j, 1, k] / base
