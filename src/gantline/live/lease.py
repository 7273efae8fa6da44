"""Silence beyond a lease is a loss: a part of a gang, or a service, that is not heard of for so long is taken for gone, for good.

What comes back after that finds its time over: a part is not taken into its gang again, a service may not write. Both sides count for
themselves, by clocks that never go back, so that no two clocks must agree. Keepers import this; it needs the standard library only.
"""

from __future__ import annotations

import math
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Lease:
    """It runs from the moment at which it is made."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self._clock = seconds, clock
        self.renew()

    def renew(self) -> None:
        """A sign of life has come."""
        self._until = self._clock() + self.seconds

    def end(self) -> None:
        """It is given up, or was never held."""
        self._until = -math.inf

    @property
    def is_over(self) -> bool:
        return self._clock() > self._until
