"""Short runs for a profiler: a job that ends after so many steps, and notes when it made them.

``GANTLINE_TRIAL_STEPS`` says how many steps to make; the process then ends with code 0 and saves nothing. ``GANTLINE_TRIAL_LOG`` names
a file for lines of "seconds steps", so that a profiler can see the speed of a job that runs next to another one.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TextIO

_OFTEN = 0.05  # seconds between two notes


@dataclass(slots=True)
class Trial:
    """What a profiler asks of this process; usually nothing."""

    steps: int = 0
    log: TextIO | None = None
    _noted: float = field(default=0.0)

    @classmethod
    def read(cls) -> Trial:
        """What the environment asks for."""
        text, path = os.environ.get("GANTLINE_TRIAL_STEPS", ""), os.environ.get("GANTLINE_TRIAL_LOG", "")
        first = os.environ.get("RANK", "0") == "0"
        return cls(int(text) if text.isdigit() else 0, open(path, "a", buffering=1, encoding="ascii") if path and first else None)

    def is_over(self, made: int) -> bool:
        """Whether so many steps are enough."""
        return self.steps > 0 and made >= self.steps

    def note(self, made: int) -> None:
        """A step was made."""
        if self.log is None:
            return
        now = time.monotonic()
        if now - self._noted >= _OFTEN:
            self._noted = now
            self.log.write(f"{now:.6f} {made}\n")
