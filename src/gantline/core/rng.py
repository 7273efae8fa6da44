"""Counter-based randomness: the same (seed, decision, name) gives the same stream, on any machine, in any order of use."""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, decision: int, name: str) -> np.random.Generator:
    """A generator of its own for one purpose at one decision; nothing is shared, so nothing can drift."""
    digest = hashlib.blake2b(f"{seed}/{decision}/{name}".encode(), digest_size=16).digest()
    key = np.frombuffer(digest, dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))
