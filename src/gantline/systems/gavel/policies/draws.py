"""Random draws as the artifact makes them: Python's ``random.Random``, its state kept in the policy's memory.

A policy object holds no state, so the generator is rebuilt from plain numbers before a call and stored after it.
"""

from __future__ import annotations

from random import Random

Drawn = list[int]  # 624 words and the position: what JSON can keep


def generator(seed: int, state: Drawn | None) -> Random:
    """The generator of this seed, where the last call left it."""
    draws = Random(seed)
    if state is not None:
        draws.setstate((3, tuple(state), None))
    return draws


def state_of(draws: Random) -> Drawn:
    """Where the generator stands, as plain numbers."""
    return list(draws.getstate()[1])
