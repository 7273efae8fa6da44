"""Queues: a tree with weights, quotas and borrowing; users have the same fields and no children."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gantline.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue (or user): `quota` bounds the GPUs its jobs hold at once; `borrow` lets it exceed that while others leave theirs idle."""

    name: str
    weight: float = 1.0
    quota: float = math.inf
    borrow: bool = True
    parent: str = ""

    def __post_init__(self) -> None:
        if not self.weight > 0:
            raise UsageError(f"queue '{self.name}' has weight {self.weight}", fix="use a weight above zero")
        if self.quota < 0:
            raise UsageError(f"queue '{self.name}' has quota {self.quota}", fix="use a quota of zero or more")


def ancestors(name: str) -> tuple[str, ...]:
    """A queue and those above it: ``a/b/c`` -> (``a/b/c``, ``a/b``, ``a``)."""
    parts = name.split("/")
    return tuple("/".join(parts[: i + 1]) for i in reversed(range(len(parts))))
