"""Guests in the gaps of other gangs (Xiao et al., AntMan, OSDI 2020) as a performance model, for every policy that shares devices.

What a gang uses of a device alone is the metric `gpu_use` (1 where unknown); with `gpu_use_peak` and `gpu_phase` it alternates between the
two every so many seconds of the clock. On a shared device a gang asks for its fraction of that. As long as all that is asked for fits,
gangs go at their fraction of the speed alone, but for a small rest that company costs. Beyond that, kernels block each other, and all
slow down by more than the excess. A gang whose memory cap is below what it needs (`device_memory`, GB) keeps the rest in the host's memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.grant import Grant
from gantline.performance.model import Gangs, Mate, Observed, PerformanceModel

USE, PEAK, PHASE, NEED = "gpu_use", "gpu_use_peak", "gpu_phase", "device_memory"
USE_NOW, MINIBATCH = "gpu_use_now", "minibatch"
"""What a profiler sees: how much a gang uses of its devices, and how many times longer than alone a mini-batch takes."""
_AT_THE_BOUNDARY = 1e-9


class _Asked(NamedTuple):
    """What a gang asks of each of its devices, and until when."""

    part: float
    until: float


@dataclass(frozen=True)
class Guests(PerformanceModel):
    """Gangs that share devices slow each other down where they ask for more than there is."""

    about_gangs: ClassVar[bool] = False
    rest: float = 0.01  # what company costs although everything fits
    blocking: float = 2.5  # how much slower for each device's worth that is asked for in excess
    spill: float = 1.0  # how much slower for all of the memory that does not fit

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        rate, until = gangs.divided.copy(), np.full(len(gangs), np.inf)
        for at, (slowdown, holds, grant) in self._shared(gangs).items():
            rate[at], until[at] = gangs.alone[at] * grant.assignment.fraction / slowdown, holds
        return rate, until

    def observe(self, gangs: Gangs) -> Observed:
        """How much gangs use, and what their company costs them."""
        slowdown = np.ones(len(gangs))
        for at, (each, _, _) in self._shared(gangs).items():
            slowdown[at] = each
        use = [_use(known, gangs.now)[0] for known in zip(*(gangs.metric(name).tolist() for name in (USE, PEAK, PHASE)))]
        return Observed({USE_NOW: np.array(use), MINIBATCH: slowdown}, gangs.learned)

    def _shared(self, gangs: Gangs) -> Mapping[int, tuple[float, float, Grant]]:
        """Of each gang that shares: how much slower it is than its fraction says, until when, and its grant."""
        shared = {at: grant for at, grant in enumerate(gangs.grants) if grant is not None and grant.shared}
        if not shared:
            return {}
        mates = {at: gangs[at].mates for at in shared}
        grants = {int(gangs.rows[at]): grant for at, grant in shared.items()}
        grants |= {mate.row: mate.grant for company in mates.values() for mate in company}
        rows = np.array(list(grants), dtype=np.int64)
        known = zip(*(gangs.metric_of(name, rows).tolist() for name in (USE, PEAK, PHASE)))
        asked = {
            row: _Asked(use * grants[row].assignment.fraction, until)
            for row, (use, until) in zip(grants, (_use(each, gangs.now) for each in known))
        }
        need = gangs.metric(NEED).tolist()
        return {at: (*self._slowdown(int(gangs.rows[at]), grant, need[at], mates[at], asked), grant) for at, grant in shared.items()}

    def _slowdown(self, row: int, grant: Grant, need: float, mates: tuple[Mate, ...], asked: Mapping[int, _Asked]) -> tuple[float, float]:
        """By the device on which most is asked for."""
        there = dict.fromkeys(grant.devices, asked[row].part)
        until = asked[row].until
        for mate in mates:
            for device in mate.grant.devices:
                if device in there:
                    there[device] += asked[mate.row].part
            until = min(until, asked[mate.row].until)
        excess = max(0.0, max(there.values(), default=0.0) - 1.0)
        cap = grant.assignment.memory_cap
        outside = max(0.0, 1.0 - cap / need) if need > 0.0 else 0.0
        return (1.0 + self.rest * bool(mates) + self.blocking * excess) * (1.0 + self.spill * outside), until


def _use(known: tuple[float, ...], now: float) -> tuple[float, float]:
    """What a gang uses of a device at an instant, and until when."""
    use, peak, phase = known
    low = use if use == use else 1.0
    if not (phase > 0.0 and peak == peak):
        return low, math.inf
    number = math.floor(now / phase + _AT_THE_BOUNDARY)
    return (peak if number % 2 else low), (number + 1) * phase
