"""Queues and tokens as values; what the scheduler writes are `runtime.records`."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue as an operator set it: how many devices it is promised, how many more it may borrow, and its weight among others."""

    name: str
    weight: float = 1.0
    quota: float = math.inf
    borrow: float = 0.0


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token at rest: its hash, never itself. Times are seconds since 1970."""

    id: str
    hash: str
    user: str
    role: str
    created: float
    expires: float | None = None
    revoked: float | None = None
