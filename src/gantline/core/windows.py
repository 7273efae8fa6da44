"""Windows: devices that are reserved in advance, from one instant to another, for some users and queues, or for no job at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gantline.core.errors import UsageError
from gantline.core.fields import human_seconds, seconds
from gantline.core.json_reader import Reader, decode_record
from gantline.core.queues import ancestors

_WRITE = "write nodes=2,from=1h,for=4h, with on=NODE+NODE or gpus=N in place of nodes, and name=, user= or queue= if you like"


@dataclass(frozen=True, slots=True)
class AdvanceWindow:
    """Devices that are kept free from `start` to `end`: whole `nodes`, single `gpus`, or those at `places` (node0, or node0:3).

    What is only counted is chosen when the window is reserved; from then on `places` names it. Jobs of `users` and of `queues` (with
    those below them) may use the devices; where neither is named, nothing runs on them.
    """

    start: float
    end: float
    name: str = ""
    nodes: int = 0
    gpus: int = 0
    places: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if sum((self.nodes > 0, self.gpus > 0, bool(self.places))) != 1 or min(self.nodes, self.gpus) < 0:
            raise UsageError("a window is of so many nodes, of so many devices, or of those that it names", where="reserve", fix="give one")
        if not (math.isfinite(self.start) and math.isfinite(self.end) and self.start < self.end):
            raise UsageError(f"a window cannot last from {self.start:g} to {self.end:g} s", where="reserve", fix="give --for, above zero")

    def admits(self, user: str, queue: str) -> bool:
        """Whether jobs of that user, or of that queue, may use the devices while the window lasts."""
        return user in self.users or not set(self.queues).isdisjoint(ancestors(queue))

    def overlaps(self, other: AdvanceWindow) -> bool:
        return self.start < other.end and other.start < self.end

    def in_words(self, now: float) -> str:
        """What is reserved, and when."""
        return f"{', '.join(self.places)} reserved as '{self.name}' {self.when(now)}"

    def when(self, now: float) -> str:
        """When it is, seen from now."""
        begins = "from now on" if self.start <= now else f"in {human_seconds(self.start - now)}"
        return f"{begins} for {human_seconds(self.end - max(self.start, now))}"


def decode_window(reader: Reader) -> AdvanceWindow:
    """The window that a document describes."""
    return decode_record(AdvanceWindow, reader, start=reader.number("start", 0.0), end=reader.number("end", math.inf))


def parse_windows(text: str) -> tuple[AdvanceWindow, ...]:
    """Windows as people write them for a simulation: ``nodes=2,from=1h,for=4h;on=node0+node1,from=0,for=30m,queue=prod``."""
    return tuple(_parse(part.strip()) for part in text.split(";") if part.strip())


def _parse(text: str) -> AdvanceWindow:
    fields: dict[str, str] = {}
    for part in text.split(","):
        key, sign, value = (piece.strip() for piece in part.partition("="))
        if not sign or not value or key not in ("nodes", "gpus", "on", "from", "for", "name", "user", "queue") or key in fields:
            raise UsageError(f"'{part.strip()}' says nothing about a window", where="--reserve", fix=_WRITE)
        fields[key] = value
    if "for" not in fields:
        raise UsageError(f"'{text}' does not say how long", where="--reserve", fix=_WRITE)
    counts = [fields.get(key, "0") for key in ("nodes", "gpus")]
    if not all(value.isdigit() for value in counts):
        raise UsageError(f"'{text}' has a number that is none", where="--reserve", fix=_WRITE)
    start = seconds(fields.get("from", "0"), "--reserve")
    places, users, queues = (tuple(fields[word].split("+")) if word in fields else () for word in ("on", "user", "queue"))
    end = start + seconds(fields["for"], "--reserve")
    return AdvanceWindow(start, end, fields.get("name", ""), int(counts[0]), int(counts[1]), places, users, queues)


def windows_as_text(value: Any, where: str) -> Any:
    """Windows as a run takes them: a text, or a list of windows."""
    if isinstance(value, str):
        parse_windows(value)
        return value
    if isinstance(value, AdvanceWindow):
        return (value,)
    found = tuple(value)
    if not all(isinstance(one, AdvanceWindow) for one in found):
        raise UsageError("is not a list of windows", where=where, fix=_WRITE)
    return found
