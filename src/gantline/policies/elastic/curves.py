"""The sizes a job may have and its speed at each, read from its options: one ragged table for all jobs of a pool.

A job that lists options of several sizes may have exactly those, within [min_gpus, max_gpus]. One that lists a single size and a wider
range may have every count in the range; its speed is then what the performance model says, else proportional to the count, which is
also what the engine assumes. Sizes at which nothing is done, and sizes that the pool will never have, are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import compiled
from gantline.core.snapshot import Snapshot


@dataclass(frozen=True)
class Curves:
    """Sizes in rising order: those of job i are entries [first[i], first[i + 1])."""

    first: Ints
    size: Ints
    rate: Floats  # work per second
    option: Ints  # which of the job's options (-1: a way derived from one)

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def count(self) -> Ints:
        """How many sizes each job may have."""
        return np.diff(self.first)

    @property
    def least(self) -> Ints:
        """The smallest size of each job; zero: it has none."""
        return self._edge(self.first[:-1])

    @property
    def most(self) -> Ints:
        """The largest size of each job; zero: it has none."""
        return self._edge(self.first[1:] - 1)

    def _edge(self, entries: Ints) -> Ints:
        some = self.count > 0
        found = np.zeros(len(self), dtype=np.int64)
        found[some] = self.size[entries[some]]
        return found

    @property
    def unit(self) -> Floats:
        """Speed of one worker, which speedups and remaining times refer to: measured, else a worker's part at the smallest size."""
        some = self.count > 0
        found = np.ones(len(self))
        entry = self.first[:-1][some]
        found[some] = self.rate[entry] / self.size[entry]
        return found

    @property
    def speedup(self) -> Floats:
        """Per entry: how many single workers it is worth."""
        return self.rate / np.repeat(self.unit, self.count)

    def at_most(self, size: Ints) -> Ints:
        """Per job the entry of the largest size that is not above the given one; -1: there is none."""
        owner = np.repeat(np.arange(len(self)), self.count)
        below = np.bincount(owner[self.size <= size[owner]], minlength=len(self))
        return np.where(below > 0, self.first[:-1] + below - 1, -1)

    def only(self, keep: Bools) -> Curves:
        """The same jobs with fewer sizes."""
        owner = np.repeat(np.arange(len(self)), self.count)[keep]
        first = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=len(self))))).astype(np.int64)
        return Curves(first, self.size[keep], self.rate[keep], self.option[keep])

    def powers_of_two(self) -> Curves:
        """Sizes that fill halves, quarters and so on of a machine; a job that has none keeps what it has."""
        even = (self.size & (self.size - 1)) == 0
        owner = np.repeat(np.arange(len(self)), self.count)
        some = np.bincount(owner[even], minlength=len(self)) > 0
        return self if even.all() else self.only(even | ~some[owner])

    def entry_of(self, grants: Ints) -> Ints:
        """Per job the entry of the size it was granted; -1 for those granted nothing."""
        return np.where(grants > 0, self.at_most(grants), -1)


def read_curves(snapshot: Snapshot, jobs: Ints, kind: int, capacity: int) -> Curves:
    """The sizes that the jobs at these positions may have on one device type."""
    _, I = snapshot.jobs.matrices()
    first, size, rate, option = _read(I, snapshot.options.F, snapshot.options.I, jobs, kind, capacity)
    model: Any = snapshot.performance
    if model is not None:
        owner, ids = np.repeat(jobs, np.diff(first)), snapshot.jobs.ids
        for entry in np.flatnonzero(option < 0).tolist():
            told = model.rate(ids[owner[entry]], kind, int(size[entry]))
            rate[entry] = rate[entry] if told is None else told
        if not (rate > 0).all():
            return Curves(first, size, rate, option).only(rate > 0)
    return Curves(first, size, rate, option)


@compiled
def _read(I: Ints, OF: Floats, OI: Ints, rows: Ints, kind: int, capacity: int) -> tuple[Ints, Ints, Floats, Ints]:
    n = rows.size
    first, room = np.zeros(n + 1, np.int64), 0
    for i in range(n):
        row = rows[i]
        room += max(I[c.OPTION_COUNT, row], min(I[c.MAX_GPUS, row], capacity) - I[c.MIN_GPUS, row] + 1, 0)
    size, rate, option = np.empty(room, np.int64), np.empty(room), np.empty(room, np.int64)
    at = 0
    for i in range(n):
        row = rows[i]
        least, most = max(I[c.MIN_GPUS, row], 1), min(I[c.MAX_GPUS, row], capacity)
        begin, sizes, listed = at, 0, -1
        for k in range(I[c.OPTION_COUNT, row]):
            o = I[c.OPTION_FIRST, row] + k
            if OI[c.O_TYPE, o] != kind or OI[c.O_GPUS, o] == 0:
                continue
            if listed < 0 or OI[c.O_GPUS, o] != OI[c.O_GPUS, listed]:
                sizes += 1
            if listed < 0:
                listed = o
            if OF[c.O_RATE, o] > 0.0 and least <= OI[c.O_GPUS, o] <= most:
                place = at  # options come in any order, and of two for one size the faster counts
                while place > begin and size[place - 1] >= OI[c.O_GPUS, o]:
                    place -= 1
                if place < at and size[place] == OI[c.O_GPUS, o]:
                    if OF[c.O_RATE, o] > rate[place]:
                        rate[place], option[place] = OF[c.O_RATE, o], k
                    continue
                for moved in range(at, place, -1):
                    size[moved], rate[moved], option[moved] = size[moved - 1], rate[moved - 1], option[moved - 1]
                size[place], rate[place], option[place] = OI[c.O_GPUS, o], OF[c.O_RATE, o], k
                at += 1
        if sizes == 1 and least < I[c.MAX_GPUS, row] and OF[c.O_RATE, listed] > 0.0:  # one size listed, a range accepted
            kept = option[begin] if at > begin else -1
            at = begin
            for count in range(least, most + 1):
                size[at], rate[at] = count, OF[c.O_RATE, listed] * count / OI[c.O_GPUS, listed]
                option[at] = kept if count == OI[c.O_GPUS, listed] else -1
                at += 1
        first[i + 1] = at
    return first, size[:at], rate[:at], option[:at]
