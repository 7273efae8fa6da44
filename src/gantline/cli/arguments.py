"""What people type, turned into values: settings, times, windows of jobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from gantline.core.errors import UsageError
from gantline.core.fields import key_values, seconds

PolicyName = Annotated[str, Parameter(help="A name from 'gantline policy list', FILE.py:CLASS, or a YAML file with policy and settings.")]
Settings = Annotated[list[str] | None, Parameter(name="--set", help="A parameter, key=value; may be repeated.")]


def settings_of(pairs: Sequence[str] | None, where: str = "--set") -> dict[str, str]:
    """Parameters from ``key=value`` texts."""
    return key_values(pairs or (), where)


def time_of(text: str | None, where: str, *, above: bool = False) -> float | None:
    """Seconds from ``90``, ``15m``, ``2h`` or ``HH:MM:SS``; None stays None. `above`: zero is refused."""
    if text is None:
        return None
    try:
        value = seconds(text, where)
    except ValueError:  # two decimal points and the like
        value = math.nan
    if math.isnan(value) or value < 0 or (above and value == 0):
        wanted = "a time above zero" if above else "a time"
        raise UsageError(f"'{text}' is not {wanted}", where=where, fix="write 90, 90s, 15m, 2h, 1d, HH:MM:SS or D-HH:MM:SS")
    return value


def finite_time_of(text: str | None, where: str, *, above: bool = False) -> float | None:
    """As `time_of`, but infinity is refused."""
    value = time_of(text, where, above=above)
    if value is not None and math.isinf(value):
        raise UsageError(f"'{text}' never ends", where=where, fix="give a number of seconds")
    return value


def signed_time_of(text: str, where: str) -> float:
    """A time that may lie in the past: ``-2h``."""
    earlier = text.strip().startswith("-")
    value = finite_time_of(text.strip().removeprefix("-"), where) or 0.0
    return -value if earlier else value


def window_of(text: str | None) -> tuple[int, int] | None:
    """Two positions from ``LO:HI``."""
    if text is None:
        return None
    low, sign, high = text.partition(":")
    if not sign or not low.strip().isdigit() or not high.strip().isdigit():
        raise UsageError(f"'{text}' is not a window of jobs", where="--track", fix="write LO:HI, such as 1000:2000, counted from 0")
    return int(low), int(high)
