"""How Slurm writes durations and resources: ``1-02:03:04``, ``cpu=8,mem=64G,gres/gpu:a100=2``, ``gpu:a100:2``."""

from __future__ import annotations

import re

_NO_LIMIT = ("", "unlimited", "partition_limit", "invalid")
_CLOCK = re.compile(r"\d{1,9}(?::\d{1,9}){0,2}(?:\.\d+)?")
_TYPED = re.compile(r"gres/gpu:([\w.\-]+)[=:](\d+)")
_PLAIN = re.compile(r"gres/gpu[=:](\d+)")
_OLD = re.compile(r"(?:^|,|gres:)gpu(?::([A-Za-z][\w.\-]*|[\w.\-]+(?=:\d)))?(?::(\d+))?(?=,|\(|$)")
_MEMORY = re.compile(r"(?:^|,)mem=([\d.]+)([KMGTP]?)")
_UNITS = {"": 2**20, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}


def seconds_of(text: str) -> float | None:
    """Seconds of ``[days-]hours:minutes:seconds``, ``minutes:seconds`` or ``minutes``; None for no limit."""
    if text.strip().lower() in _NO_LIMIT:
        return None
    days, dash, rest = text.strip().rpartition("-")
    if not _CLOCK.fullmatch(rest) or (dash and not re.fullmatch(r"\d{1,9}", days)):
        raise ValueError(text)
    parts = [float(part) for part in rest.split(":")]
    if dash:  # with days the first number is hours
        hours, minutes, seconds = (*parts, 0.0, 0.0)[:3]
    else:
        hours, minutes, seconds = (0.0, parts[0], 0.0) if len(parts) == 1 else ((0.0, *parts)[-3:])
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds


def gpus_of(text: str) -> float:
    """GPUs named by a TRES or GRES text; typed entries repeat the plain total, so the total wins."""
    plain = _PLAIN.search(text)
    if plain:
        return float(plain.group(1))
    typed = sum(float(count) for _, count in _TYPED.findall(text))
    if typed or "gres/" in text:
        return typed
    return sum(float(count or 1) for _, count in _OLD.findall(text))


def type_of(text: str) -> str:
    """The GPU type that a TRES or GRES text names, if it names exactly one."""
    kinds = {kind for kind, _ in _TYPED.findall(text)} or {kind for kind, _ in _OLD.findall(text) if kind}
    return kinds.pop() if len(kinds) == 1 else ""


def memory_of(text: str) -> float | None:
    """Gigabytes of the ``mem=`` entry of a TRES text; a number without a unit is in mebibytes."""
    found = _MEMORY.search(text)
    return float(found.group(1)) * _UNITS[found.group(2)] / 1e9 if found else None
