"""Extra workers for elastic jobs: a multiple-choice knapsack whose values are the time that they save (Lyra, EuroSys 2023, section 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gantline.core.arrays import Floats, Ints


def best_extras(values: Sequence[Floats], capacity: int) -> Ints:
    """How many extra workers each job gets; `values[j][k]` is what k + 1 of them are worth to job j, and nobody has to have any.

    A dynamic program over devices. Of equal values, later jobs get less.
    """
    extras = np.zeros(len(values), dtype=np.int64)
    if capacity <= 0 or not len(values):
        return extras
    steps = [np.diff(each, prepend=0.0) for each in values]
    if all((np.diff(each) <= 1e-9).all() for each in steps):
        return _best_steps(steps, capacity)
    choice = np.zeros((len(values), capacity + 1), dtype=np.int32)
    best = np.zeros(capacity + 1)
    for job, worth in enumerate(values):
        before = best.copy()
        for extra in range(1, min(len(worth), capacity) + 1):
            if worth[extra - 1] <= 0.0:
                continue
            better = before[:-extra] + worth[extra - 1]
            wins = better > best[extra:] + 1e-12
            best[extra:][wins] = better[wins]
            choice[job, extra:][wins] = extra
    left = capacity
    for job in range(len(values) - 1, -1, -1):
        extras[job] = choice[job, left]
        left -= int(extras[job])
    return extras


def _best_steps(steps: Sequence[Floats], capacity: int) -> Ints:
    """Where each further worker adds no more than the one before, the best steps of all are the answer, and much quicker to find."""
    owner = np.repeat(np.arange(len(steps)), [len(each) for each in steps])
    gain = np.concatenate(steps)
    best = np.argsort(-gain, kind="stable")[:capacity]
    return np.bincount(owner[best[gain[best] > 0.0]], minlength=len(steps)).astype(np.int64)
