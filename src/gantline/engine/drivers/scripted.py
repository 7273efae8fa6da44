"""An executor that repeats what was received from another one: with it, a recorded run is folded again."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from gantline.engine.executor import USUAL, Can, Order, Report


class Scripted:
    """Reports come when they were received: at that time, and after so many orders."""

    def __init__(self, received: Iterable[tuple[float, int, Report]], able: frozenset[Can] = USUAL) -> None:
        self.able = able
        self._received = deque(received)
        self._orders = 0

    def can(self, row: int) -> frozenset[Can]:
        return self.able

    def send(self, order: Order, now: float) -> None:
        self._orders += 1  # whatever comes of it is in the script

    def next_time(self) -> float:
        return self._received[0][0] if self._received else math.inf

    def receive(self, now: float) -> list[Report]:
        found = []
        while self._received and self._received[0][0] <= now and self._received[0][1] <= self._orders:
            found.append(self._received.popleft()[2])
        return found

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        """The machines that failed did so then."""
