"""The ways in which one job may run, as one cell of a table: ``v100:4=3600|cpu:0/20/64=9000``.

Each alternative is ``type:gpus[@nodes][/cpus][/memory][/storage]=seconds`` (memory in GB, storage in MB/s); alternatives are joined by
``|``. ``v100:8@2`` is eight devices on exactly two nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

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
        kind, gpus, span, *beside, duration = match.groups()
        cpus, memory, storage = (float(amount or 0) for amount in beside)
        found.append(WrittenOption(kind, int(gpus), float(duration), cpus, memory, storage, int(span or 0)))
    return tuple(found)


def format_options(options: Iterable[WrittenOption]) -> str:
    """The cell that :func:`parse_options` reads back."""
    return "|".join(map(_format, options))


def _format(option: WrittenOption) -> str:
    beside = [option.cpus, option.memory, option.storage]
    while beside and not beside[-1]:
        beside.pop()
    extra = "".join(f"/{_short(amount)}" for amount in beside)
    span = f"@{option.span}" if option.span else ""
    return f"{option.type}:{option.gpus}{span}{extra}={_short(option.duration)}"


def _short(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
