"""The Unix socket of a service: this machine's users reach it there, whatever others do to its port.

Its name is that of the port, in the kernel's own list of names, so that accounts that may not enter the home find it, too. The kernel
says whose process is at the other end: the service counts connections by account, and a client sends its token to nobody but root
and its own account.
"""

from __future__ import annotations

import os
import socket
import struct
from urllib.parse import urlsplit

HERE = ("127.0.0.1", "localhost", "::1")
_CREDENTIALS = struct.Struct("3i")  # process, user, group
_SECONDS = 1.0  # for a connection on this machine


def listen_beside(port: int) -> socket.socket | None:
    """A socket beside the port; None: this system has none, or the name is taken."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.bind(_name(port))
        found.listen(256)
    except OSError:
        found.close()
        return None
    return found


def socket_of(url: str) -> str | None:
    """The name of the socket of the service at this address, where it is on this machine and may be trusted with a token."""
    try:
        parts = urlsplit(url)
        if parts.hostname not in HERE or parts.port is None:
            return None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(_SECONDS)
            probe.connect(_name(parts.port))
            return _name(parts.port) if user_of(probe) in (0, os.getuid()) else None
    except (OSError, ValueError, AttributeError):
        return None


def user_of(connection: socket.socket) -> int:
    """The number of the account at the other end of a Unix socket."""
    return int(_CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1])


def _name(port: int) -> str:
    return f"\0gantline-{port}"
