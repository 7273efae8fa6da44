"""The faults of the faulty executor: what happens to its messages, and how long its machines take."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Faults:
    """Which faults occur, how often, and how long things take."""

    delay: tuple[float, float] = (0.0, 0.0)  # of messages, seconds, uniform
    loss: float = 0.0  # chance that a message is lost
    doubled: float = 0.0  # chance that a message arrives twice
    start: tuple[float, float] = (0.0, 0.0)  # seconds to start a gang
    stop: tuple[float, float] = (0.0, 0.0)  # seconds until it has saved, when ordered to stop
    release: tuple[float, float] = (0.0, 0.0)  # seconds from there until its devices are free
    heartbeat: float = 20.0  # how often machines repeat their last reports, all in one message
    checkpoint: float = math.inf  # seconds between saves while running

    def copies(self, rng: np.random.Generator) -> int:
        """How often a message arrives that is sent once."""
        return 0 if rng.random() < self.loss else (2 if rng.random() < self.doubled else 1)

    def arrivals(self, now: float, rng: np.random.Generator) -> list[float]:
        """When the copies of a message arrive."""
        return [now + span(self.delay, rng) for _ in range(self.copies(rng))]


def span(bounds: tuple[float, float], rng: np.random.Generator) -> float:
    """Seconds between the bounds, uniform; nothing is drawn where they are equal."""
    return bounds[0] if bounds[0] == bounds[1] else float(rng.uniform(*bounds))
