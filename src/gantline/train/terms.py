"""What a running job may use beside its devices, and when its steps begin: written by the runner, read between two steps.

A shift against the jobs that it shares a link or a device with (`offset`) is a delay of one step: where the gang steps in time with
others, one delay moves all its later steps. Steps repeat, so that a shift back is a delay by the rest of a period.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Terms:
    """Amounts are those of the whole job; None: as it asked for."""

    cpus: float | None = None
    memory: float | None = None  # GB
    storage: float | None = None  # MB/s
    fraction: float = 1.0  # of each device
    memory_cap: float | None = None  # GB of each device's memory
    offset: float = 0.0  # seconds by which its steps are shifted


class Pace:
    """The terms of one rank, and how long its steps take."""

    def __init__(self, home: Path | None) -> None:
        self.terms = Terms()
        self.period = 0.0  # seconds between the beginnings of the last two steps
        self._path = None if home is None else home / "terms.json"
        self._seen, self._begun = -1, 0.0

    def look(self) -> bool:
        """Whether there are other terms than before."""
        before = self.terms
        try:
            changed = -1 if self._path is None else os.stat(self._path).st_mtime_ns
            if self._path is not None and changed != self._seen:
                found = json.loads(self._path.read_text(encoding="utf-8"))
                self._seen, self.terms = changed, Terms(**{name: found[name] for name in Terms.__slots__ if name in found})
        except (OSError, ValueError):
            pass  # there is none, or not yet: the next look finds it
        return self.terms != before

    def delay(self, before: Terms) -> float:
        """Seconds by which the next step begins later, so that its steps are shifted as the terms say."""
        shift = self.terms.offset - before.offset
        return shift % self.period if self.period > 0.0 else max(shift, 0.0)

    def begin(self) -> None:
        """A step begins."""
        now = time.monotonic()
        self.period, self._begun = (now - self._begun if self._begun else 0.0), now

    def pause(self, seconds: float) -> None:
        """Wait before a step; the pause is no part of a period."""
        time.sleep(seconds)
        self._begun += seconds if self._begun else 0.0
