"""The sizes that the jobs of a pool may have and their speed at each (`jobs.sizes_table`), with what elastic policies derive from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
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

    @cached_property
    def owner(self) -> Ints:
        """Per entry: the job whose size it is."""
        return np.repeat(np.arange(len(self)), self.count)

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
        below = np.bincount(self.owner[self.size <= size[self.owner]], minlength=len(self))
        return np.where(below > 0, self.first[:-1] + below - 1, -1)

    def only(self, keep: Bools) -> Curves:
        """The same jobs with fewer sizes."""
        owner = self.owner[keep]
        first = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=len(self))))).astype(np.int64)
        return Curves(first, self.size[keep], self.rate[keep], self.option[keep])

    def powers_of_two(self) -> Curves:
        """Sizes that fill halves, quarters and so on of a machine; a job that has none keeps what it has."""
        even = (self.size & (self.size - 1)) == 0
        some = np.bincount(self.owner[even], minlength=len(self)) > 0
        return self if even.all() else self.only(even | ~some[self.owner])

    def entry_of(self, grants: Ints) -> Ints:
        """Per job the entry of the size it was granted; -1 for those granted nothing."""
        return np.where(grants > 0, self.at_most(grants), -1)


def read_curves(snapshot: Snapshot, jobs: Ints, kind: int, capacity: int) -> Curves:
    """The sizes that the jobs at these positions may have on one device type; those that the pool will never have are left out."""
    return Curves(*snapshot.jobs.sizes_table(kind, jobs, capacity))
