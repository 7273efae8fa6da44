"""How long an iteration takes jobs that share devices stage by stage (Zhao et al., Muri, SIGCOMM 2022, section 4.1).

An iteration is a cycle of three stages: loading (storage and CPU), computing (GPU) and communicating (network). The jobs of a group follow
each other a slot apart, four slots a period, so that each resource serves one job at a time; loading spans two of the slots. A slot ends
when the slowest of its stages ends. Two jobs may also alternate: one loads while the other computes and communicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel

MOST = 4
"""Jobs of a group at most: a slot for each."""
_SLOTS = 2 * MOST
_SETTLED = 1e-3
"""Two periods that differ by no more are one: the cycle has settled."""


class Stages(NamedTuple):
    """Seconds of an iteration on each resource."""

    load: float
    gpu: float
    network: float


class Cycle(NamedTuple):
    """The order in which jobs follow each other (places in the list they came in), and the seconds that an iteration takes them."""

    order: tuple[int, ...]
    period: float


def usable(stages: Stages) -> bool:
    """Whether these are times: known, none below zero, and not all zero."""
    return all(each is not None and 0.0 <= each < np.inf for each in stages) and sum(stages) > 0.0


@lru_cache(maxsize=1 << 16)
def cycle_period(stages: tuple[Stages, ...]) -> float:
    """Seconds of an iteration of at most four jobs that follow each other in this order."""
    return float(_period(np.asarray(stages, dtype=np.float64), np.arange(len(stages)), False, np.empty(_SLOTS + 1)))


@lru_cache(maxsize=1 << 16)
def shortest_cycle(stages: tuple[Stages, ...]) -> Cycle:
    """The order of least period, the first of equals."""
    return _extreme(stages, worst=False)


@lru_cache(maxsize=1 << 16)
def longest_cycle(stages: tuple[Stages, ...]) -> Cycle:
    """The order of greatest period, for an ablation."""
    return _extreme(stages, worst=True)


def interleaving_efficiency(stages: Sequence[Stages], period: float) -> float:
    """How much of the time a resource is used, on average over the four: at most 1."""
    return sum(sum(each) for each in stages) / (MOST * period)


def _extreme(stages: tuple[Stages, ...], *, worst: bool) -> Cycle:
    orders, found = _orders(len(stages)), np.empty(1)
    at = _extreme_order(np.asarray(stages, dtype=np.float64), orders, worst, np.empty(_SLOTS + 1), found)
    return Cycle(tuple(orders[at].tolist()), float(found[0]))


@lru_cache(maxsize=MOST)
def _orders(count: int) -> Ints:
    return np.array(list(permutations(range(count))), dtype=np.int64)


@kernel
def _extreme_order(stages: Floats, orders: Ints, worst: bool, ends: Floats, found: Floats) -> int:
    """The order with the least period (or the greatest), which is written down."""
    best = 0
    for at in range(orders.shape[0]):
        period = _period(stages, orders[at], worst, ends)
        if at == 0 or (period > found[0] if worst else period < found[0]):
            best, found[0] = at, period
    return best


@kernel
def _period(stages: Floats, order: Ints, worst: bool, ends: Floats) -> float:
    """The period of one order; `ends` is room for the ends of the slots. Slots are walked until one period takes as long as the last."""
    jobs = order.size
    if jobs == 1:
        return float(stages[order[0], 0] + stages[order[0], 1] + stages[order[0], 2])
    ends[0], period = 0.0, 0.0
    for slot in range(_SLOTS):
        last = -np.inf
        communicates, computes, loads = (slot + 1) % MOST, (slot + 2) % MOST, (slot + 3) % MOST
        if communicates < jobs:
            last = max(last, ends[slot] + stages[order[communicates], 2])
        if computes < jobs:
            last = max(last, ends[slot] + stages[order[computes], 1])
        if loads < jobs and slot > 0:
            last = max(last, ends[slot - 1] + stages[order[loads], 0])
        ends[slot + 1] = last
        if slot >= MOST:
            before, period = ends[slot] - ends[slot - MOST], ends[slot + 1] - ends[slot + 1 - MOST]
            if abs(period - before) <= _SETTLED * max(period, before):
                break
    if jobs == 2:
        a, b = order[0], order[1]
        in_turns = max(stages[a, 0], stages[b, 1] + stages[b, 2]) + max(stages[b, 0], stages[a, 1] + stages[a, 2])
        period = max(period, in_turns) if worst else min(period, in_turns)
    return period
