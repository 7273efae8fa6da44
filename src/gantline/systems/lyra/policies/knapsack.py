"""Extra workers for elastic jobs: a multiple-choice knapsack whose values are the time that they save (Lyra, EuroSys 2023, section 5)."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.systems.ffdl.policies.optimizer import fill_choices


def best_extras(first: Ints, extra: Ints, worth: Floats, capacity: int) -> Ints:
    """How many extra workers each job gets: `extra` of them are worth `worth` to the job whose entries they are; no job has to have any.

    The entries of job j are first[j] to first[j + 1], by rising numbers. A dynamic program; at equal values later jobs get less.
    """
    jobs = len(first) - 1
    if capacity <= 0 or not len(extra):
        return np.zeros(jobs, dtype=np.int64)
    owner = np.repeat(np.arange(jobs), np.diff(first))
    start = np.zeros(len(extra), dtype=bool)
    start[first[:-1][np.diff(first) > 0]] = True
    gain = worth - np.where(start, 0.0, np.roll(worth, 1))
    single = extra == np.where(start, 1, np.roll(extra, 1) + 1)
    falling = start | (gain - np.roll(gain, 1) <= 1e-9)
    if single.all() and falling.all():
        return _best_steps(owner, gain, jobs, capacity)
    use = (worth > 0.0) & (extra <= capacity)
    count = np.bincount(owner[use], minlength=jobs) + 1  # and none at all
    begin = np.concatenate([[0], np.cumsum(count)])
    numbers, values = np.zeros(begin[-1], dtype=np.int64), np.zeros(begin[-1])
    places = np.flatnonzero(~np.isin(np.arange(begin[-1]), begin[:-1]))
    numbers[places], values[places] = extra[use], worth[use]
    choice = np.zeros((jobs, capacity + 1), dtype=np.int16)
    fill_choices(begin, numbers, values, np.arange(jobs), capacity, choice)
    extras, left = np.zeros(jobs, dtype=np.int64), capacity
    for job in range(jobs - 1, -1, -1):
        extras[job] = numbers[begin[job] + int(choice[job, left])]
        left -= int(extras[job])
    return extras


def _best_steps(owner: Ints, gain: Floats, jobs: int, capacity: int) -> Ints:
    """Where each further worker adds no more than the one before, the best steps of all are the answer, and much quicker to find."""
    best = np.argsort(-gain, kind="stable")[:capacity]
    return np.bincount(owner[best[gain[best] > 0.0]], minlength=jobs).astype(np.int64)
