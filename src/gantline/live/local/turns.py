"""Time slices: jobs that need parts of a device and cannot be on it side by side run in turns, each for its part of a short period.

No message is needed when a turn ends: all keepers read the same clock of the machine, and each has its part of the period. So turns
go on while the service is away. A job that is alone on a device has all of it. Keepers import this; it needs the standard library only.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

PERIOD = 0.2  # seconds in which each job has had a turn


def share_out(parts: Mapping[str, float]) -> dict[str, tuple[float, float] | None]:
    """The part of the period of each job on one device, by the parts of the device that they asked for; None: all of it."""
    if len(parts) < 2:
        return dict.fromkeys(parts)
    total, at = sum(parts.values()), 0.0
    found: dict[str, tuple[float, float] | None] = {}
    for job, part in sorted(parts.items()):
        found[job] = (at / total, (at + part) / total)
        at += part
    return found


def is_on(turn: Iterable[float], now: float | None = None) -> tuple[bool, float]:
    """Whether it is this one's turn, and how many seconds until that changes."""
    first, last = turn
    at = ((time.monotonic() if now is None else now) % PERIOD) / PERIOD
    if first <= at < last:
        return True, (last - at) * PERIOD
    return False, ((first - at) % 1.0) * PERIOD
