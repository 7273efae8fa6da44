"""Whether a process on another machine is there, whatever its engine believes."""

from __future__ import annotations

import socket

_SECONDS = 1.0


def accepts(address: str, port: int) -> bool:
    """Whether connections are accepted there."""
    try:
        with socket.create_connection((address, port), timeout=_SECONDS):
            return True
    except OSError:
        return False
