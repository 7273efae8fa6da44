"""Jobs on a link as circles: how well their communication fits together, and the shifts with which it fits best.

Rajasekaran et al., "CASSINI: Network-Aware Job Scheduling in Machine Learning Clusters" (NSDI 2024): time is rolled around a circle whose
perimeter is the least common multiple of the jobs' iteration times; the score of a link is one less the part of the circle by which demand
exceeds the link. Demand is constant between the instants at which a job begins or ends to communicate, so the excess is integrated
exactly. Angles of five degrees only say which shifts are tried.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats

QUANTUM = 0.005  # seconds to which iteration times are rounded before a common multiple is sought
LONGEST = 400  # iterations of the shortest job in a circle at most
ANGLES = 72  # of five degrees
_ROUNDS = 3  # of coordinate descent
_SAME = 1e-9


class Circle(NamedTuple):
    """One job on a link: seconds of an iteration, seconds of communication at its end, GB/s meanwhile, seconds by which it is shifted."""

    iteration: float
    network: float
    bandwidth: float
    shift: float = 0.0


class Fit(NamedTuple):
    """Shifts of jobs on one link, seconds, the first of them at zero; the score with them; whether their periods have a common multiple."""

    shifts: tuple[float, ...]
    score: float
    common: bool


def common_period(iterations: Sequence[float], quantum: float = QUANTUM, longest: int = LONGEST) -> tuple[float, bool]:
    """The perimeter, and whether it is a common multiple: periods without one in the limit are looked at for so many iterations."""
    quanta = [max(round(each / quantum), 1) for each in iterations]
    if all(abs(each - quanta[k] * quantum) <= _SAME * each for k, each in enumerate(iterations)):
        least = math.lcm(*quanta)
        if least <= longest * min(quanta):
            return least * quantum, True
    for turns in range(1, longest + 1):  # periods that are no multiples of the quantum may still have one
        perimeter = turns * iterations[0]
        if all(abs(perimeter / each - round(perimeter / each)) <= 1e-7 for each in iterations):
            return perimeter, True
    return longest * min(iterations), False


def _edges(circles: Sequence[Circle], perimeter: float) -> tuple[Floats, Floats]:
    """Instants at which demand changes, and the demand of each job from each to the next: [job, piece]."""
    cuts = {0.0, perimeter}
    starts: list[list[float]] = []
    for one in circles:
        begin = (one.shift + one.iteration - one.network) % one.iteration
        first = [begin + turn * one.iteration for turn in range(-1, math.ceil(perimeter / one.iteration) + 1)]
        starts.append(first)
        cuts.update(edge for start in first for edge in (start, start + one.network) if 0.0 < edge < perimeter)
    edges = np.array(sorted(cuts))
    middle = (edges[:-1] + edges[1:]) / 2.0
    demand = np.zeros((len(circles), len(middle)))
    for job, one in enumerate(circles):
        since = (middle - one.shift - (one.iteration - one.network)) % one.iteration
        demand[job] = np.where(since < one.network, one.bandwidth, 0.0)
    return edges, demand


def score_of(circles: Sequence[Circle], capacity: float, perimeter: float | None = None) -> float:
    """One less the excess over the circle, as a part of what the link could carry: 1 fits, and many jobs may fall below zero."""
    if len(circles) < 2:
        return 1.0
    around = common_period([one.iteration for one in circles])[0] if perimeter is None else perimeter
    edges, demand = _edges(circles, around)
    excess = np.maximum(demand.sum(axis=0) - capacity, 0.0)
    return 1.0 - float((excess * np.diff(edges)).sum()) / (around * capacity)


def stretched(circles: Sequence[Circle], capacity: float) -> Floats:
    """Seconds that an iteration of each job takes: its own, and what it loses to others while it communicates.

    Where demand exceeds the link, those that send have max-min fair parts of it. For two jobs at the full rate of the link this is exact:
    both go along their own circles in step, and slowly where they meet.
    """
    around = common_period([one.iteration for one in circles])[0]
    edges, demand = _edges(circles, around)
    length, lost = np.diff(edges), np.zeros(len(circles))
    for piece in np.flatnonzero(demand.sum(axis=0) > capacity * (1.0 + _SAME)).tolist():
        asks = demand[:, piece]
        part = fair_parts(asks, capacity)
        sends = asks > 0.0
        lost[sends] += (asks[sends] / part[sends] - 1.0) * length[piece]
    iteration = np.array([one.iteration for one in circles])
    return np.asarray(iteration + lost * iteration / around)


def fair_parts(asks: Floats, capacity: float) -> Floats:
    """Max-min fair parts of one link: those that ask for little get it, the others equal parts of the rest."""
    part, left, open_jobs = np.zeros(len(asks)), capacity, int((asks > 0.0).sum())
    for job in np.argsort(asks, kind="stable").tolist():
        if asks[job] > 0.0:
            part[job] = min(float(asks[job]), left / open_jobs)
            left, open_jobs = left - part[job], open_jobs - 1
    return part


def best_shifts(circles: Sequence[Circle], capacity: float, fixed: Sequence[int] = (0,)) -> Fit:
    """The shifts of greatest score: a grid of angles for two jobs, coordinate descent over the same grid for more."""
    around, common = common_period([one.iteration for one in circles])
    chosen = [one._replace(shift=one.shift if job in fixed else 0.0) for job, one in enumerate(circles)]
    best = score_of(chosen, capacity, around)
    free = [job for job in range(len(circles)) if job not in fixed]
    for _ in range(1 if len(free) < 2 else _ROUNDS):
        before = best
        for job in free:
            for angle in range(ANGLES):
                turned = chosen[job]._replace(shift=angle / ANGLES * chosen[job].iteration)
                score = score_of([*chosen[:job], turned, *chosen[job + 1 :]], capacity, around)
                if score > best + _SAME:
                    best, chosen[job] = score, turned
        if best <= before + _SAME:
            break
    return Fit(tuple(one.shift for one in chosen), best, common)
