"""Named random streams: one seed, and a generator of its own for every thing that is drawn.

A column drawn from its own stream does not notice when another column is added, removed or reordered, and the first
hundred values of a stream are the same whether one asks for a hundred or for a million.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.core.rng import stream


class Streams:
    """Independent generators by name, all derived from one seed."""

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise UsageError(f"a seed must be a whole number of at least 0, not {seed!r}", where="seed")
        self.seed = seed

    def generator(self, name: str) -> np.random.Generator:
        """The generator of this name, always at its beginning."""
        return stream(self.seed, 0, f"workload/{name}")

    def uniforms(self, name: str, count: int) -> Floats:
        """``count`` uniform numbers in [0, 1); everything else is made from these by inverse distribution functions."""
        return self.generator(name).random(count)
