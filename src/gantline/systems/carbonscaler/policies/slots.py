"""The slots that a plan is made of: from one change of the signal to the next, the first one cut by now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Bools, Floats
from gantline.core.signal import Signal


@dataclass(frozen=True)
class Slots:
    """Where each slot begins and ends, the intensity in it, and the seconds that a change of size costs."""

    begin: Floats
    end: Floats
    carbon: Floats
    cost: float

    @staticmethod
    def until(signal: Signal, now: float, last: float, cost: float) -> Slots:
        edges = np.arange(signal.next_step(now), max(last, now), signal.step)
        begin = np.concatenate(([now], edges))
        return Slots(begin, np.append(edges, signal.next_step(begin[-1])), signal.at(begin), cost)

    def __len__(self) -> int:
        return len(self.begin)

    def working_until(self, deadline: float, changed: Bools | None = None) -> Floats:
        """Seconds of work in each slot before a deadline, less what a change costs: where the size changes, or (None) everywhere."""
        lost = self.cost if changed is None else self.cost * changed
        seconds: Floats = np.maximum(np.minimum(self.end, deadline) - self.begin - lost, 0.0)
        return seconds

    def lasting_until(self, deadline: float) -> Floats:
        """Seconds of each slot before a deadline."""
        seconds: Floats = np.maximum(np.minimum(self.end, deadline) - self.begin, 0.0)
        return seconds
