"""The live clock: seconds since the home was made.

The wall clock is read once, at the start; from then on the monotonic clock counts, so that a jump of the wall clock changes nothing.
`jump` is how far the two have come apart since.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class WallClock:
    """Seconds since `born` (seconds since the epoch), never less than `least`: time does not go back over a restart either.

    `wall` is the clock that people can set; tests give one of their own.
    """

    def __init__(self, born: float, least: float = 0.0, wall: Callable[[], float] = time.time) -> None:
        self.born, self._wall = born, wall
        self._began = time.monotonic()
        self._at = max(wall() - born, least)

    def now(self) -> float:
        return self._at + (time.monotonic() - self._began)

    def at(self, wall: float) -> float:
        """The live time of a wall-clock time, as well as it is known; never in the future."""
        return min(max(wall - self.born - self.jump(), 0.0), self.now())

    def wall(self, at: float) -> float:
        """The time of day, in seconds since the epoch, of an instant."""
        return self.born + at

    def day_and_time(self, at: float) -> str:
        """The same as text for people."""
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(round(self.wall(at))))

    def jump(self) -> float:
        """Seconds by which the wall clock has been set forward (or back, below zero) since the start."""
        return (self._wall() - self.born) - self.now()
