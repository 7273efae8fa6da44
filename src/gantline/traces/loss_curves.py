"""How a job's loss falls while it trains, as one cell of a table; progress goes from 0 to 1.

Either ``start=2.3;floor=0.3;rate=8``, which is floor + (start - floor) exp(-rate progress), or points ``0:2.3|0.5:0.6|1:0.3``
with straight lines between them and level ends.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError

LOSS_HELP = "start=2.3;floor=0.3;rate=8, or points PROGRESS:LOSS with growing progress from 0 to 1, 0:2.3|0.5:0.6|1:0.3"
_FALL = ("start", "floor", "rate")


def losses_of(cell: str, progress: Floats) -> Floats:
    """The losses of a job after these parts of its work."""
    if "=" in cell:
        start, floor, rate = _fall(cell)
        return np.asarray(floor + (start - floor) * np.exp(-rate * progress))
    points = [tuple(_number(cell, number) for number in point.split(":")) for point in cell.split("|")]
    if any(len(point) != 2 for point in points):
        raise _fault(cell, "is no loss curve")
    parts, losses = zip(*points)
    if not (parts[0] >= 0.0 and parts[-1] <= 1.0 and all(a < b for a, b in pairwise(parts))):
        raise _fault(cell, "has points out of order, twice at one place, or outside 0 to 1")
    return np.interp(progress, parts, losses)


def _fall(cell: str) -> tuple[float, float, float]:
    named = [part.partition("=") for part in cell.split(";")]
    if tuple(name for name, _, _ in named) != _FALL:
        raise _fault(cell, "is no loss curve")
    start, floor, rate = (_number(cell, number) for _, _, number in named)
    if rate < 0.0:
        raise _fault(cell, "has a rate below zero")
    return start, floor, rate


def _number(cell: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        raise _fault(cell, "is no loss curve") from None
    if not math.isfinite(found):
        raise _fault(cell, f"has '{text}' where a number must stand")
    return found


def _fault(cell: str, what: str) -> UsageError:
    return UsageError(f"{cell!r} {what}", where="loss", fix=LOSS_HELP)
