"""Waiting for what other threads and processes do: for the state itself, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

LIMIT = 240.0  # seconds after which a test gives up waiting, however slow the machine
_FIRST, _GROWTH, _LONGEST = 0.02, 1.3, 0.1  # seconds between two looks: most of what is waited for comes soon, and a look costs a request


def until(true: Callable[[], Any], what: str = "") -> Any:
    """Wait until something holds; what it was comes back."""
    end, pause = time.monotonic() + LIMIT, _FIRST
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(pause)
        pause = min(_GROWTH * pause, _LONGEST)
    raise AssertionError(f"did not happen within {LIMIT:g} s: {what}")
