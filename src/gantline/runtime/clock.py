"""The live clock: seconds since the home was made.

The wall clock is read once, at the start; from then on the monotonic clock counts, so that a jump of the wall clock changes nothing.
`jump` tells how far the two have come apart since.
"""

from __future__ import annotations

import time


class WallClock:
    """Seconds since `born` (seconds since the epoch), never less than `least`: time does not go back over a restart either."""

    def __init__(self, born: float, least: float = 0.0) -> None:
        self.born = born
        self._began = time.monotonic()
        self._at = max(time.time() - born, least)

    def now(self) -> float:
        return self._at + (time.monotonic() - self._began)

    def at(self, wall: float) -> float:
        """When it was so late on the wall clock, as well as we know; never in the future."""
        return min(max(wall - self.born - self.jump(), 0.0), self.now())

    def wall(self, at: float) -> float:
        """The time of day, in seconds since the epoch, of an instant."""
        return self.born + at

    def jump(self) -> float:
        """Seconds by which the wall clock has been set forward (or back, below zero) since the start."""
        return (time.time() - self.born) - self.now()
