"""Amounts as people write them in a job's specification: sizes, devices, memory, bandwidth, arrays, and rules by which losses end it."""

from __future__ import annotations

import re
from functools import lru_cache

from gantline.core.errors import UsageError
from gantline.engine.ending import EndingRule, find_ending

MOST_TASKS = 10_000
"""Tasks of one array; more is taken for a typing error."""
MOST_OUTPUT = 10.0  # GB
_SIZES = re.compile(r"^(\d{1,7})(?:(?::|\.\.)(\d{1,7}))?$")
_DEVICES = re.compile(r"^(?:(?P<type>[A-Za-z][\w.\-]*)(?::(?P<typed>[\d:.]+))?|(?P<any>[\d:.]+))$")
_MEMORY = re.compile(r"^(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?\+?$", re.IGNORECASE)
_CPUS = re.compile(r"^(\d+(?:\.\d+)?)\+?$")
_BANDWIDTH = re.compile(r"^(\d+(?:\.\d+)?)\s*(?:([MG])B(?:/s|ps)?)?\+?$", re.IGNORECASE)
_RANGE = re.compile(r"^(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?$")
_GB = {"": 1.0, "k": 1e-6, "m": 1e-3, "g": 1.0, "t": 1e3, "ki": 1024 / 1e9, "mi": 1024**2 / 1e9, "gi": 1024**3 / 1e9, "ti": 1024**4 / 1e9}
WIDEST = 10_000  # reports that are kept of a job at most


@lru_cache(maxsize=1000)
def rule_of(text: str) -> EndingRule:
    """The rule that a text means; one that would have a service keep too many reports is refused."""
    rule = find_ending(text)
    if rule.kind == "plateau" and rule.window > WIDEST:
        raise UsageError(f"a window of {rule.window} reports", where="--end-by", fix=f"a service keeps at most {WIDEST} reports of a job")
    return rule


def sizes(value: object, where: str, least: int = 1) -> tuple[int, int]:
    """A number, or a range from least to most: ``8``, ``2:8``, ``2..8``."""
    if isinstance(value, (list, tuple)) and len(value) == 2:
        value = f"{value[0]}:{value[1]}"
    found = _SIZES.match(str(value).strip()) if not isinstance(value, (bool, float)) else None
    if not found:
        raise UsageError(f"{value!r} is not a number or a range", where=where, fix="write 4 or 2:8")
    low, high = int(found[1]), int(found[2] or found[1])
    if not least <= low <= high:
        raise UsageError(f"'{value}' is not a range of at least {least}", where=where, fix="write MIN:MAX, such as 2:8")
    return low, high


def devices(value: object, where: str) -> tuple[str, int, int]:
    """Type (empty: any), least and most of ``H100:8``, ``h100:2:8``, ``h100``, ``8`` or ``2:8``; types are in lower case."""
    found = _DEVICES.match(str(value).strip()) if not isinstance(value, (bool, float)) else None
    if not found:
        raise UsageError(f"{value!r} is not a number of devices", where=where, fix="write H100:8, cpu:2:4 or 8")
    low, high = sizes(found["typed"] or found["any"] or 1, where)
    return (found["type"] or "").lower(), low, high


def spell_devices(kind: str, low: int, high: int) -> str:
    """What `devices` reads."""
    size = str(low) if low == high else f"{low}:{high}"
    return f"{kind}:{size}" if kind else size


def gigabytes(value: object, where: str) -> float:
    """GB of ``64GiB``, ``64G+`` or ``64``; the plus (at least) is how every amount is meant."""
    found = _MEMORY.match(str(value).strip()) if not isinstance(value, bool) else None
    if not found:
        raise UsageError(f"{value!r} is not an amount of memory", where=where, fix="write 64GiB, 512MB or 64 (GB)")
    return float(found[1]) * _GB[(found[2] or "").lower()]


def storage_bandwidth(value: object, where: str) -> float:
    """MB/s of ``500``, ``500MB/s`` or ``1.5GB/s``."""
    found = _BANDWIDTH.match(str(value).strip()) if not isinstance(value, bool) else None
    if not found:
        raise UsageError(f"{value!r} is not a bandwidth", where=where, fix="write 500MB/s, 1.5GB/s or 500 (MB/s)")
    return float(found[1]) * (1000.0 if (found[2] or "").lower() == "g" else 1.0)


def output(value: object, where: str) -> float:
    """GB of output that is kept: a log is for people, and a full disk affects all users."""
    found = gigabytes(value, where)
    if found > MOST_OUTPUT:
        fix = "let the job write large results to files of its own"
        raise UsageError(f"is more than the {MOST_OUTPUT:g} GB that are kept of any job", where=where, fix=fix)
    return found


def cpus(value: object, where: str) -> float:
    """CPUs of ``8`` or ``8+``."""
    found = _CPUS.match(str(value).strip()) if not isinstance(value, bool) else None
    if not found:
        raise UsageError(f"{value!r} is not a number of CPUs", where=where, fix="write 8 or 8+")
    return float(found[1])


def array(text: str, where: str) -> tuple[list[int], int]:
    """Indices of ``0-9``, ``1,3,7``, ``0-20:5``, and how many may run at once after ``%`` (0: any number)."""
    ranges, sign, most = text.strip().partition("%")
    if sign and not (most.isdecimal() and 0 < int(most) <= MOST_TASKS):
        raise UsageError(f"'{text}' does not say how many may run at once", where=where, fix="write 0-99%8")
    found: dict[int, None] = {}
    for part in ranges.split(","):
        piece = _RANGE.match(part.strip())
        if not piece:
            raise UsageError(f"'{text}' is not a range of indices", where=where, fix="write 0-99, 0-99%8, 1,3,7 or 0-20:5")
        first, last, step = int(piece[1]), int(piece[2] or piece[1]), int(piece[3] or 1)
        if last < first or step < 1 or (last - first) // step >= MOST_TASKS:
            raise UsageError(f"'{part}' is empty or has more than {MOST_TASKS} tasks", where=where, fix="write 0-99")
        found.update(dict.fromkeys(range(first, last + 1, step)))
    if len(found) > MOST_TASKS:
        raise UsageError(f"{len(found)} tasks are too many", where=where, fix=f"use at most {MOST_TASKS}")
    return sorted(found), int(most) if sign else 0
