"""Cells of a trace that hold more than one value: the ways in which a job may run, and how its loss falls.

Alternatives: ``v100:4=3600|cpu:0/20/64=9000``. Each is ``type:gpus[@nodes][/cpus][/memory][/storage]=seconds``
(memory in GB, storage in MB/s); alternatives are joined by ``|``. ``v100:8@2`` is eight devices on exactly two nodes.

Losses, with progress from 0 to 1: either ``start=2.3;floor=0.3;rate=8``, which is floor + (start - floor) exp(-rate
progress), or points ``0:2.3|0.5:0.6|1:0.3`` with straight lines between them and level ends.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError

_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_ONE = rf"[^:=|/\s]+:\d+(?:@[1-9]\d*)?(?:/{_NUMBER}){{0,3}}={_NUMBER}"
OPTIONS_PATTERN = rf"^{_ONE}(?:\|{_ONE})*$"
CPU_ONLY_PATTERN = r"(?:^|\|)[^:=|/\s]+:0(?:/|=)"
_PARTS = re.compile(rf"([^:=|/\s]+):(\d+)(?:@([1-9]\d*))?(?:/({_NUMBER}))?(?:/({_NUMBER}))?(?:/({_NUMBER}))?=({_NUMBER})")


class WrittenOption(NamedTuple):
    """One way to run: so many devices of a type (and CPUs, memory in GB, storage in MB/s), for so many seconds."""

    type: str
    gpus: int
    duration: float
    cpus: float = 0.0
    memory: float = 0.0
    storage: float = 0.0
    span: int = 0  # nodes, exactly; 0: no matter


def parse_options(text: str) -> tuple[WrittenOption, ...]:
    """The alternatives in a cell of the ``options`` column."""
    found = []
    for part in text.split("|") if text else ():
        match = _PARTS.fullmatch(part)
        if match is None:
            raise UsageError(f"'{part}' is not type:gpus[@nodes][/cpus][/memory][/storage]=seconds", fix="for instance v100:4=3600")
        kind, gpus, span, *amounts, duration = match.groups()
        cpus, memory, storage = (float(amount or 0) for amount in amounts)
        found.append(WrittenOption(kind, int(gpus), float(duration), cpus, memory, storage, int(span or 0)))
    return tuple(found)


def format_options(options: Iterable[WrittenOption]) -> str:
    """The cell that :func:`parse_options` reads back."""
    return "|".join(map(_format, options))


def _format(option: WrittenOption) -> str:
    amounts = [option.cpus, option.memory, option.storage]
    while amounts and not amounts[-1]:
        amounts.pop()
    extra = "".join(f"/{_short(amount)}" for amount in amounts)
    span = f"@{option.span}" if option.span else ""
    return f"{option.type}:{option.gpus}{span}{extra}={_short(option.duration)}"


def _short(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


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
