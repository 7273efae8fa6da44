"""Times and amounts as people write them."""

from __future__ import annotations

import math
import re

from gantline.core.errors import UsageError

LONGEST = 1e10
"""Seconds, three hundred years: beyond it sums of times lose digits, and the input is a mistake."""
SHORTEST_STEP = 1e-3
_UNIT_SECONDS = {"s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_CLOCK = re.compile(r"^(?:(\d+)-)?(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d+)?))?$")
_AMOUNT = re.compile(r"^([0-9.]+(?:e[+-]?\d+)?)\s*([a-z]*)$", re.IGNORECASE)


def seconds(text: str | float, where: str = "duration") -> float:
    """Seconds from ``90``, ``90s``, ``15m``, ``2h``, ``1d``, ``HH:MM:SS`` or ``D-HH:MM:SS``."""
    if isinstance(text, (int, float)):
        return float(text)
    value = text.strip()
    if value in {"inf", "infinite", "never"}:
        return math.inf
    if clock := _CLOCK.match(value):
        days, first, second, third = clock.groups()
        if third is None:  # MM:SS, or with days HH:MM, as Slurm reads it
            total = float(first) * 3600 + float(second) * 60 if days else float(first) * 60 + float(second)
        else:
            total = float(first) * 3600 + float(second) * 60 + float(third)
        return total + 86400.0 * float(days or 0)
    if amount := _AMOUNT.match(value):
        number, unit = amount.groups()
        if not unit:
            return float(number)
        if unit.lower() in _UNIT_SECONDS:
            return float(number) * _UNIT_SECONDS[unit.lower()]
    raise UsageError(f"'{text}' is not a time", where=where, fix="write 90, 90s, 15m, 2h, 1d, HH:MM:SS or D-HH:MM:SS")


def human_seconds(value: float) -> str:
    """A time in the unit a person would choose: ``2.3 h``."""
    if not math.isfinite(value):
        return "-"
    size, unit = unit_of_seconds(value)
    return f"{value / size:.1f} {unit}"


def unit_of_seconds(value: float) -> tuple[float, str]:
    """The unit in which a person would state this time, with its length in seconds."""
    for limit, size, unit in ((120, 1.0, "s"), (7200, 60.0, "min"), (172800, 3600.0, "h")):
        if abs(value) < limit:
            return size, unit
    return 86400.0, "d"
