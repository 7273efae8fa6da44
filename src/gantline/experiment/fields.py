"""Values as people write them in files and on command lines, checked one by one; each mistake names its field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gantline.core.errors import UsageError
from gantline.core.units import seconds


def text(value: Any, where: str) -> str:
    """A text that is not empty; YAML reads `8x4` as text but `8` as a number, so numbers are taken too."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        raise UsageError(f"{value!r} is not a text", where=where)
    return str(value)


def text_or_none(value: Any, where: str) -> str:
    """A text, or nothing."""
    return "" if value == "" else text(value, where)


def yes_or_no(value: Any, where: str) -> bool:
    """True or false; on command lines they are words."""
    found = {"true": True, "yes": True, "false": False, "no": False}.get(str(value).lower())
    if found is None:
        raise UsageError(f"{value!r} is neither true nor false", where=where)
    return found


def number(value: Any, where: str) -> float:
    """A finite number."""
    try:
        found = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise UsageError(f"{value!r} is not a number", where=where)
    return found


def whole(value: Any, where: str) -> int:
    """A whole number."""
    found = number(value, where)
    if found != int(found):
        raise UsageError(f"{value!r} is not a whole number", where=where)
    return int(found)


def duration(value: Any, where: str) -> float:
    """A time in seconds, given as 300, 5m or 1-00:00:00; zero or more."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UsageError(f"{value!r} is not a time", where=where, fix="write 90, 90s, 15m, 2h or 1d")
    found = seconds(value, where)
    if not found >= 0:
        raise UsageError(f"{value!r} is below zero", where=where)
    return found


def mapping(value: Any, where: str) -> dict[str, Any]:
    """Names with values."""
    if not isinstance(value, Mapping) or any(not isinstance(key, str) for key in value):
        raise UsageError(f"{value!r} is not a mapping", where=where, fix="write {name: value}")
    return dict(value)


def track(value: Any, where: str) -> tuple[int, int]:
    """A range of jobs in order of arrival, as `3000:4000` or a pair."""
    parts = value.split(":") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or len(parts) != 2:
        raise UsageError(f"{value!r} is not a range of jobs", where=where, fix="write 3000:4000")
    return whole(parts[0], where), whole(parts[1], where)


def plain_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Names with values that JSON and YAML can hold: lists for tuples, `inf` as text."""
    return {key: _plain(value) for key, value in given.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return plain_values(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
