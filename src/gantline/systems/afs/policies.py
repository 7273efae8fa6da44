"""`afs`: elastic sharing by what one more step would save (AFS, NSDI 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled
from gantline.core.policy import parameter
from gantline.policies.elastic.policies import SharesOut
from gantline.policies.elastic.pools import Curves, Pool

# AFS-L (Hwang et al., NSDI 2021): one step at a time to the job in which it does most good, found by comparing two at a time.
#
# Of two jobs the sooner is the one that would end first with what it has. The later one gets the step only if its relative gain exceeds
# that of the sooner, counted without hoping for more devices later:
#
# (p_b(next) - p_b(now)) / p_b(next)  >  (p_a(next) - p_a(now)) / p_a(now)        (a sooner, b later)


def apathetic_shares(curves: Curves, remaining: Floats, capacity: int) -> Ints:
    """Sizes by AFS-L. `remaining` is in seconds on one worker; jobs stand in order of arrival, and ties fall to the earlier one."""
    return _share(curves.first, curves.size, curves.speedup, np.maximum(remaining, 1e-9), capacity)


@compiled
def _share(first: Ints, size: Ints, speedup: Floats, remaining: Floats, capacity: int) -> Ints:
    n = first.size - 1
    entry, alive, grants = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.int64)
    length, as_later, as_sooner, need = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64)
    left, free = 0, capacity
    for job in range(n):
        entry[job] = first[job] - 1
        if _weigh(job, first, size, speedup, remaining, entry, length, as_later, as_sooner, need):
            alive[left] = job
            left += 1
    while free > 0 and left > 0:
        kept = 0
        for k in range(left):  # what does not fit now never will
            if need[alive[k]] <= free:
                alive[kept] = alive[k]
                kept += 1
        left = kept
        if left == 0:
            break
        best, place = alive[0], 0
        for k in range(1, left):
            job = alive[k]
            if grants[best] == 0 and grants[job] == 0:
                wins = length[job] < length[best]
            else:
                # a job that holds nothing would never end: it is the later one; of two that end together the earlier job is the sooner
                ends_best = length[best] if grants[best] > 0 else np.inf
                ends_job = length[job] if grants[job] > 0 else np.inf
                if ends_best <= ends_job:
                    wins = as_later[job] > as_sooner[best]
                else:
                    wins = not as_later[best] > as_sooner[job]
            if wins:
                best, place = job, k
        free -= need[best]
        entry[best] += 1
        grants[best] = size[entry[best]]
        if not _weigh(best, first, size, speedup, remaining, entry, length, as_later, as_sooner, need):
            for k in range(place, left - 1):
                alive[k] = alive[k + 1]
            left -= 1
    return grants


@compiled
def _weigh(
    job: int,
    first: Ints,
    size: Ints,
    speedup: Floats,
    remaining: Floats,
    entry: Ints,
    length: Floats,
    as_later: Floats,
    as_sooner: Floats,
    need: Ints,
) -> bool:
    """What the next step of a job is worth, per device; False: there is none that gains anything."""
    at = entry[job]
    if at + 1 >= first[job + 1]:
        return False
    there = speedup[at + 1]
    if at < first[job]:  # it has nothing: its first step is everything it will ever gain on what it has
        need[job], length[job] = size[at + 1], remaining[job] / there
        as_later[job], as_sooner[job] = 1.0 / need[job], np.inf
        return True
    here = speedup[at]
    need[job], length[job] = size[at + 1] - size[at], remaining[job] / here
    as_later[job], as_sooner[job] = (there - here) / there / need[job], (there - here) / here / need[job]
    return bool(there > here)


# `afs`: elastic sharing by what one more step would save (AFS, NSDI 2021).


@dataclass(frozen=True)
class Afs(SharesOut):
    """Apathetic future share: one step at a time to the job in which it does most good, hoping for nothing later."""

    name = "afs"
    paper = "Hwang et al.: Elastic Resource Sharing for Distributed Deep Learning (NSDI 2021)"
    needs = frozenset({"remaining"})

    lengths: str = parameter(
        "known",
        "'known': estimated (AFS-L); 'unknown': the longest-running is taken to have most left (AFS-P)",
        one_of=("known", "unknown"),
    )

    def share(self, pool: Pool) -> Ints:
        left = pool.remaining if self.lengths == "known" else _guessed(pool)
        return apathetic_shares(pool.curves, left, pool.capacity)


def _guessed(pool: Pool) -> Floats:
    """As much left as was done so far, in seconds on one worker: what a heavy tail of lengths suggests."""
    done: Floats = pool.of(pool.snapshot.jobs.done) / pool.curves.unit
    return np.maximum(done, 1.0)
