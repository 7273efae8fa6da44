"""Jobs that start again and again and get nowhere.

The service counts by its own orders; a job gets on when it begins with more saved work than before, or has reported more.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

MOST, WITHIN = 3, 600.0  # so many restarts within so many seconds are an incident


@dataclass
class _Life:
    """A job since it got on last."""

    epoch: int  # of its newest incarnation
    saved: float  # work that it began with, at most
    reported: float  # what it had reported as done by then
    restarts: deque[float] = field(default_factory=lambda: deque(maxlen=MOST))  # when they were


class Restarts:
    """Belongs to the thread that owns the engine."""

    def __init__(self) -> None:
        self._known: dict[str, _Life] = {}

    def starts(self, job: str, epoch: int, saved: float, reported: float, now: float) -> bool:
        """An incarnation is ordered to begin, perhaps once more; whether it is one restart too many, which is said once."""
        known = self._known.get(job)
        if known is None or saved > known.saved or reported > known.reported:
            self._known[job] = _Life(epoch, saved, reported)
            return False
        if epoch <= known.epoch:
            return False
        known.epoch = epoch
        before = self._is_stuck(known, now)
        known.restarts.append(now)
        return self._is_stuck(known, now) and not before

    def stuck(self, now: float) -> list[str]:
        """Jobs that have restarted too often lately, and have got nowhere."""
        return [job for job, known in self._known.items() if self._is_stuck(known, now)]

    def forget(self, job: str) -> None:
        """It has ended."""
        self._known.pop(job, None)

    def _is_stuck(self, known: _Life, now: float) -> bool:
        return len(known.restarts) == MOST and known.restarts[0] >= now - WITHIN
