"""Times of events that one process writes and another reads: by the wall clock, and by the monotonic clock, which cannot be set.

The monotonic clock is the same for all processes of a machine from its start to its next, so that a wall clock which is set between
the keeper's note and the service's look changes nothing. Keepers import this; it needs the standard library only.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@cache
def boot() -> str:
    """Which start of the machine this is; nothing where the system does not say."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
    return ""


def stamp(name: str) -> dict[str, Any]:
    """The present moment, for a file."""
    return {name: time.time(), f"{name}_tick": time.monotonic(), "boot": boot()}


def seconds_ago(state: Mapping[str, Any], name: str) -> float | None:
    """How long ago a moment was that a process noted since this machine started; None: use the wall clock."""
    tick = state.get(f"{name}_tick")
    if tick is None or not boot() or state.get("boot") != boot():
        return None
    return max(0.0, time.monotonic() - float(tick))
