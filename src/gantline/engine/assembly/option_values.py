"""Values of the options of a run, as people write them in files and on command lines, checked one by one; each mistake names its field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gantline.core.errors import UsageError
from gantline.core.fields import number, read_time, step_of_time, text, whole
from gantline.core.windows import windows_as_text

_PLAIN = (str, bool, int, float, list, tuple, dict)
"""What files and command lines can hold."""


def yes_or_no(value: Any, where: str) -> bool:
    """True or false; on command lines they are words."""
    found = {"true": True, "yes": True, "false": False, "no": False}.get(str(value).lower())
    if found is None:
        raise UsageError(f"{value!r} is neither true nor false", where=where)
    return found


def factor(value: Any, where: str) -> float:
    """A finite number from one on: how many times longer something takes."""
    found = number(value, where)
    if found < 1.0:
        raise UsageError(f"{value!r} is below 1", where=where, fix="1 means as fast, 1.7 that it takes 1.7 times as long")
    return found


def seed(value: Any, where: str) -> int:
    """A whole number that begins a stream of random ones."""
    found = whole(value, where)
    if not -(2**63) <= found < 2**63:
        raise UsageError(f"{value!r} is too large for a seed", where=where, fix="use at most eighteen digits")
    return found


def duration(value: Any, where: str) -> float:
    """A time in seconds, given as 300, 5m or 1-00:00:00; zero or more, perhaps for ever."""
    return read_time(value, where)


def finite_duration(value: Any, where: str) -> float:
    """A time that comes to an end."""
    return read_time(value, where, ends=True)


def duration_above_zero(value: Any, where: str) -> float:
    """A time that is not nothing, perhaps for ever."""
    return read_time(value, where, above=True)


def round_of_time(value: Any, where: str) -> float:
    """The length of a round; the number zero, which Python callers may compute, means none."""
    return 0.0 if isinstance(value, (int, float)) and not isinstance(value, bool) and value == 0 else step_of_time(value, where)


def track(value: Any, where: str) -> tuple[int, int]:
    """A range of jobs in order of arrival, as `3000:4000` or a pair."""
    parts = value.split(":") if isinstance(value, str) else value
    try:
        low, high = (whole(part, where) for part in parts)
    except (UsageError, TypeError, ValueError):
        low = high = -1
    if low < 0 or high < 0:
        raise UsageError(f"{value!r} is not a range of jobs", where=where, fix="write LO:HI, such as 1000:2000, counted from 0")
    return low, high


def warmup(value: Any, where: str) -> float | str:
    """A time that comes to an end, or `auto`."""
    return "auto" if value == "auto" else finite_duration(value, where)


def name(value: Any, where: str) -> Any:
    """The name of something that another part knows; from Python the thing itself may come, and is passed on."""
    return text(value, where) if isinstance(value, _PLAIN) else value


def name_or_none(value: Any, where: str) -> Any:
    """As `name`, or nothing."""
    return "" if isinstance(value, str) and value == "" else name(value, where)


def path(value: Any, where: str) -> Any:
    """The path of a file, or nothing; from Python what the file would hold may come, and is passed on."""
    return str(value.__fspath__()) if hasattr(value, "__fspath__") else name_or_none(value, where)


def path_or_list(value: Any, where: str) -> Any:
    """The path of a file, or from Python the things that its lines would hold."""
    if isinstance(value, (str, bool, int, float, dict)) or hasattr(value, "__fspath__"):
        return path(value, where)
    things = tuple(value)
    for thing in things:
        if isinstance(thing, _PLAIN):
            raise UsageError(f"{thing!r} is out of place", where=where, fix="name a file")
    return things or ""


def amounts(value: Any, where: str) -> str:
    """Names with numbers, as ``v100=0.74,k80=0.135``, as a mapping, or in a file."""
    if isinstance(value, Mapping):
        return ",".join(f"{key}={amount}" for key, amount in value.items())
    return str(path(value, where))


def windows(value: Any, where: str) -> Any:
    """Windows that are reserved in advance: a text, or a list of them."""
    return windows_as_text(value, where)
