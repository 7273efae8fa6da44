"""How much work is left of a job whose rate changes, second by second as the original subtracts it."""

from __future__ import annotations

import math

import numpy as np


class WorkLeft:
    """What is left after each second since the rate last changed. Doubles are subtracted one after the other: rounding shows in the end."""

    def __init__(self, left: float, since: int, rate: float, after: int) -> None:
        """`after`: seconds from the end of the work to the end of the job."""
        self._after = after
        self._set(left, since, rate)

    def at(self, now: int) -> float:
        """What is left after `now`."""
        steps = now - self._since
        return self._left - steps if self._path is None else float(self._path[steps])

    def change(self, rate: float, now: int) -> None:
        """Go on at this rate from the next second on."""
        self._set(self.at(now), now, rate)

    def _set(self, left: float, since: int, rate: float) -> None:
        self._left, self._since = left, since
        if rate == 1.0:  # exact: the result has no more digits than what is subtracted from
            self._path, steps = None, max(math.ceil(left), 0)
        else:
            each = np.full(math.ceil(max(left, 0.0) / rate) + 3, rate)
            each[0] = left
            self._path = np.subtract.accumulate(each)
            steps = int(np.argmax(self._path <= 0.0))
        self.end = since + steps + self._after
        """When the job ends at this rate."""
