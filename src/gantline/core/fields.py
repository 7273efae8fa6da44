"""Values as people write them in files and on command lines, checked one by one; each mistake names its field."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from gantline.core.errors import NotFoundError, UsageError, near

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


def is_text(text: str) -> bool:
    """Whether it can be encoded: half of a surrogate pair, which JSON can spell, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


FORMULA = r"^[=+\-@\t\r]"
NUMBER = r"^[+\-]?[0-9.]+([eE][+\-]?[0-9]+)?$"


def harmless(text: str) -> str:
    """The text with a quote in front if a spreadsheet would run it."""
    return f"'{text}" if re.match(FORMULA, text) and not re.match(NUMBER, text) else text


_PLAIN = (str, bool, int, float, list, tuple, dict)
"""What files and command lines can hold."""


def text(value: Any, where: str) -> str:
    """A text that is not empty; YAML reads `8x4` as text but `8` as a number, so numbers are taken too."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        raise UsageError(f"{value!r} is not a text", where=where)
    return str(value)


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
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lstrip("+-").isdigit():
        return int(value)  # digit by digit: a float has sixteen of them
    found = number(value, where)
    if found != int(found):
        raise UsageError(f"{value!r} is not a whole number", where=where)
    return int(found)


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
    return _time(value, where)


def finite_duration(value: Any, where: str) -> float:
    """A time that comes to an end."""
    return _time(value, where, ends=True)


def duration_above_zero(value: Any, where: str) -> float:
    """A time that is not nothing, perhaps for ever."""
    return _time(value, where, above=True)


def step_of_time(value: Any, where: str) -> float:
    """A time that is not nothing and comes to an end."""
    return _time(value, where, above=True, ends=True)


def round_of_time(value: Any, where: str) -> float:
    """The length of a round; the number zero, which Python callers may compute, means none."""
    return 0.0 if isinstance(value, (int, float)) and not isinstance(value, bool) and value == 0 else step_of_time(value, where)


def _time(value: Any, where: str, *, above: bool = False, ends: bool = False) -> float:
    remedy = "write 90, 90s, 15m, 2h, 1d, HH:MM:SS or D-HH:MM:SS"
    try:
        found = math.nan if isinstance(value, bool) else seconds(value, where) if isinstance(value, str) else float(value)
    except (TypeError, ValueError):  # two decimal points, a list
        found = math.nan
    if math.isnan(found) or found < 0 or (above and found == 0):
        raise UsageError(f"{value!r} is not {'a time above zero' if above else 'a time'}", where=where, fix=remedy)
    if LONGEST < found < math.inf or (above and found < SHORTEST_STEP):
        raise UsageError(f"{value!r} is no sensible time", where=where, fix="use a millisecond to 300 years")
    if ends and math.isinf(found):
        raise UsageError(f"{value!r} never ends", where=where, fix="give a number of seconds")
    return found


def mapping(value: Any, where: str) -> dict[str, Any]:
    """Names with values."""
    if not isinstance(value, Mapping) or any(not isinstance(key, str) for key in value):
        raise UsageError(f"{value!r} is not a mapping", where=where, fix="write {name: value}")
    return dict(value)


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


def key_values(pairs: Iterable[str], where: str) -> dict[str, str]:
    """Names with values from ``key=value`` texts."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key.strip():
            raise UsageError(f"'{pair}' is not a setting", where=where, fix=f"write {where} key=value")
        if key.strip() in found:
            raise UsageError(f"'{key.strip()}' is set twice", where=where, fix="keep one of them")
        found[key.strip()] = value
    return found


def plain_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Names with values that JSON and YAML can hold: lists for tuples, `inf` as text."""
    return {key: _plain(value) for key, value in given.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return plain_values(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def windows(value: Any, where: str) -> Any:
    """Windows that are reserved in advance: a text, or a list of them."""
    from gantline.core.windows import windows_as_text  # few runs have any

    return windows_as_text(value, where)


VICTIMS = ("order", "least-lost")
"""Which job is stopped when one must be, where an order leaves a choice: the lowest rank, or what loses least."""


def victims_rule(value: Any, where: str) -> str:
    """One of the rules for victims."""
    if value not in VICTIMS:
        raise NotFoundError(f"no rule '{value}'", where=where, fix=near(str(value), VICTIMS))
    return str(value)
