"""Gangs that run in the gaps of others (Xiao et al., AntMan, OSDI 2020), for every policy that shares devices.

What a gang uses of a device alone is the metric `gpu_use` (1 where unknown); with `gpu_use_peak` and `gpu_phase` it
alternates between the two every so many seconds of the clock. On a shared device a gang asks for its fraction of that.
As long as all that is asked for fits, gangs go at their fraction of the speed alone, but for a small rest that sharing
costs. Beyond that, kernels block each other, and all slow down by more than the excess. A gang whose memory cap is below
what it needs (`device_memory`, GB) keeps the rest in the host's memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.models.model import Gangs, Observed, PerformanceModel

USE, PEAK, PHASE, NEED = "gpu_use", "gpu_use_peak", "gpu_phase", "device_memory"
USE_NOW, MINIBATCH = "gpu_use_now", "minibatch"
"""What a profiler sees: how much a gang uses of its devices, and how many times longer than alone a mini-batch takes."""
_AT_THE_BOUNDARY = 1e-9


@dataclass(frozen=True)
class DeviceContention(PerformanceModel):
    """Gangs that share devices slow each other down where they ask for more than there is."""

    about_gangs: ClassVar[bool] = False
    rest: float = 0.01  # what sharing costs although everything fits
    blocking: float = 2.5  # how much slower for each device's worth that is asked for in excess
    spill: float = 1.0  # how much slower for all of the memory that does not fit

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        slowdown, until = self._slowdown(gangs)
        return np.where(gangs.shared, gangs.alone * gangs.fraction / slowdown, gangs.divided), until

    def observe(self, gangs: Gangs) -> Observed:
        """How much gangs use, and what sharing costs them."""
        return Observed({USE_NOW: _use(gangs, gangs.rows)[0], MINIBATCH: self._slowdown(gangs)[0]}, gangs.learned)

    def _slowdown(self, gangs: Gangs) -> tuple[Floats, Floats]:
        """How much slower gangs are than their fractions say, by the device on which most is asked for; and until when."""
        slowdown, until = np.ones(len(gangs)), np.full(len(gangs), np.inf)
        sharers, shared = gangs.sharers, gangs.shared
        if not shared.any():
            return slowdown, until
        (own, holds), (theirs, theirs_hold) = _use(gangs, gangs.rows), _use(gangs, sharers.row)
        asked = (own * gangs.fraction)[sharers.gang]
        np.add.at(asked, sharers.place, theirs * gangs.fraction_of(sharers.row))
        most = np.zeros(len(gangs))
        np.maximum.at(most, sharers.gang, asked)
        until[shared] = holds[shared]
        np.minimum.at(until, sharers.crowded, theirs_hold)
        excess = np.maximum(0.0, most - 1.0)
        need = gangs.metric(NEED)
        outside = np.maximum(0.0, 1.0 - np.divide(gangs.memory_cap, need, out=np.ones(len(gangs)), where=need > 0.0))
        crowded = np.bincount(sharers.crowded, minlength=len(gangs)) > 0
        found = (1.0 + self.rest * crowded + self.blocking * excess) * (1.0 + self.spill * outside)
        slowdown[shared] = found[shared]
        return slowdown, until


def _use(gangs: Gangs, rows: Ints) -> tuple[Floats, Floats]:
    """What gangs use of a device at this instant, and until when."""
    use, peak, phase = (gangs.metric_of(name, rows) for name in (USE, PEAK, PHASE))
    use, until = np.where(use == use, use, 1.0), np.full(len(rows), np.inf)
    alternates = (phase > 0.0) & (peak == peak)
    if not alternates.any():
        return use, until
    number = np.floor(np.divide(gangs.now, phase, out=np.zeros(len(rows)), where=alternates) + _AT_THE_BOUNDARY)
    return np.where(alternates & (number % 2 == 1), peak, use), np.where(alternates, (number + 1) * phase, until)
