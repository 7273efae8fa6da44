"""How long jobs of one demand wait for a machine, and for a rack: given, or tuned by what waiting has brought.

Tuned timers are the mean and two standard deviations of the waits after which jobs of that demand got a machine (a rack) lately: waiting
longer than that has hardly ever helped.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

from gantline.core.topology import IN_NODE, IN_RACK

ENOUGH = 10  # waits from which on a timer is tuned
_WINDOW = 50  # waits that are remembered per demand and tier


@dataclass
class Timers:
    """Seconds per tier; ``seen`` are the waits (instant, seconds) by "demand/tier"."""

    machine: float
    rack: float
    tuned: bool
    stale: float  # seconds after which a wait says nothing about the present
    now: float
    seen: dict[str, list[list[float]]] = field(default_factory=dict)

    @staticmethod
    def of(wait: str, machine: float, rack: float, stale: float, now: float, waits: dict[str, list[list[float]]]) -> Timers:
        fixed = {"none": (0.0, 0.0), "consolidate": (math.inf, math.inf)}
        if wait in fixed:
            return Timers(*fixed[wait], False, stale, now)
        seen = {key: [each for each in each_wait if now - each[0] <= stale] for key, each_wait in waits.items()}
        return Timers(machine, max(machine, rack), wait == "tuned", stale, now, {key: recent for key, recent in seen.items() if recent})

    def until(self, gpus: int, tier: int) -> float:
        """Seconds that a job waits before it gives up this tier for the next."""
        machine = self._timer(gpus, IN_NODE, self.machine)
        return machine if tier == IN_NODE else max(machine, self._timer(gpus, IN_RACK, self.rack))

    def _timer(self, gpus: int, tier: int, given: float) -> float:
        waits = [waited for _, waited in self.seen.get(_key(gpus, tier), ())] if self.tuned else []
        return statistics.fmean(waits) + 2.0 * statistics.pstdev(waits) if len(waits) >= ENOUGH else given

    def note(self, gpus: int, tier: int, waited: float) -> None:
        """A job got this tier after such a wait."""
        if self.tuned and tier in (IN_NODE, IN_RACK):
            waits = self.seen.setdefault(_key(gpus, tier), [])
            waits.append([self.now, waited])
            del waits[:-_WINDOW]


def _key(gpus: int, tier: int) -> str:
    """Demands that differ by less than twice are one class."""
    return f"{gpus.bit_length()}/{tier}"
