"""Jobs that share devices stage by stage (Zhao et al., Muri, SIGCOMM 2022, section 4.1).

The stage times of a job are metrics, seconds of an iteration: `stage_load` (storage and CPU), `stage_gpu`,
`stage_network`, and `iteration_time` for the whole of it alone. An iteration is a cycle of three stages: loading
(storage and CPU), computing (GPU) and communicating (network). The jobs of a group follow each other in the order of
their offsets, a slot apart, four slots a period, so that each resource serves one job at a time; loading spans two of
the slots. A slot ends when the slowest of its stages ends. Two jobs may also alternate: one loads while the other
computes and communicates. More than four take turns by fours. Where one of them has no stage times, all have their
part of the devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import ClassVar, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.models.model import Gangs, PerformanceModel

STAGES = ("stage_load", "stage_gpu", "stage_network")
ITERATION = "iteration_time"
ALONE = 1.015
"""How many times longer than measured an iteration took the authors' jobs alone."""
DISTURBED = (1.0, 1.33 / ALONE, 1.5 / ALONE, 1.37 / ALONE)
"""How many times longer than their stages say groups of one, two, three and four take, as the authors measured."""


@dataclass(frozen=True)
class StageCycles(PerformanceModel):
    """Gangs on the same devices all take one period for an iteration."""

    about_gangs: ClassVar[bool] = False
    disturbed: tuple[float, ...] = DISTURBED

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        rate = gangs.divided.copy()
        if gangs.shared.any():
            times = np.column_stack([gangs.metric(name) for name in STAGES]).tolist()
            step = gangs.metric(ITERATION)
            for together in _gangs_that_share(gangs):
                stages = [Stages(*times[at]) for at in together]
                if len(together) > 1 and all(map(usable, stages)) and (step[together] > 0.0).all():
                    rate[together] = gangs.alone[together] * np.minimum(step[together] / self.period(stages), 1.0)
        return rate, np.full(len(gangs), np.inf)

    def period(self, stages: list[Stages]) -> float:
        """Seconds of an iteration of each of them, in this order."""
        fours = [tuple(stages[at : at + MOST]) for at in range(0, len(stages), MOST)]
        return sum(cycle_period(each) * self.disturbed[len(each) - 1] for each in fours)


def _gangs_that_share(gangs: Gangs) -> Iterator[list[int]]:
    """Places of gangs that are on the same devices, in the order of their offsets."""
    sharers, found = gangs.sharers, dict[bytes, list[int]]()
    bounds = np.searchsorted(sharers.gang, np.arange(len(gangs) + 1)).tolist()
    for at in np.argsort(gangs.place, kind="stable").tolist():
        if gangs.shared[at]:
            found.setdefault(sharers.device[bounds[at] : bounds[at + 1]].tobytes(), []).append(at)
    yield from found.values()


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
