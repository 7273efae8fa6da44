"""Limits on connections: how many there are, how many of one peer, and how long one may take to send its request.

A connection needs no token to be opened. So their number is limited, in all and for each address, and one more is answered with 503 and
closed; one that has not sent the head of its next request in time is closed. The guard limits how long a body may take. Connections by
the Unix socket are counted apart and by account, so that whoever fills the port keeps nobody else on this machine out.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from gantline.live.service.home import user_of

HEAD_SECONDS = 15.0
_LEAST = 8  # of one peer: a browser opens six
_QUIET = 60.0  # seconds between two lines about the same peer
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-type: application/json\r\n\r\n"
    b'{"error": {"kind": "unreachable", "what": "too many connections", "where": "service", "fix": "try again in a while"}}'
)
log = logging.getLogger("gantline.live.service")


@dataclass(frozen=True)
class Peer:
    """Where a connection comes from: an address, or an account of this machine."""

    name: str
    is_local: bool = False


@dataclass
class Counted:
    """The open connections."""

    most: int  # on each side: at the port, and at the Unix socket
    most_of_one: int
    by_peer: Counter[Peer] = field(default_factory=Counter)
    _logged: dict[Peer | str, float] = field(default_factory=dict)

    def enter(self, peer: Peer) -> bool:
        """Count one more; whether it may be served. Why not is in the log, once a minute."""
        there = sum(count for one, count in self.by_peer.items() if one.is_local == peer.is_local)
        self.by_peer[peer] += 1
        if self.by_peer[peer] > self.most_of_one:
            self._tell(peer, f"{peer.name} has {self.most_of_one} connections open, as many as one peer may have: more are refused")
            return False
        if there >= self.most:
            side = "the Unix socket" if peer.is_local else "the port"
            top = ", ".join(f"{one.name} has {count}" for one, count in self.by_peer.most_common(3))
            self._tell(side, f"{self.most} connections are open at {side}, and more are refused: {top}")
            return False
        return True

    def leave(self, peer: Peer) -> None:
        self.by_peer[peer] -= 1
        if self.by_peer[peer] <= 0:
            del self.by_peer[peer]

    def _tell(self, about: Peer | str, text: str) -> None:
        now = time.monotonic()
        self._logged = {key: at for key, at in self._logged.items() if now - at < _QUIET}
        if about not in self._logged:
            self._logged[about] = now
            log.warning("%s", text)


def bounded(most: int, head_seconds: float = HEAD_SECONDS, most_of_one: int | None = None) -> type[asyncio.Protocol]:
    """The protocol that uvicorn would choose, within these bounds."""
    counted = Counted(most, max(_LEAST, most // 4) if most_of_one is None else most_of_one)

    class Bounded(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """One connection."""

        _late: asyncio.TimerHandle | None = None
        _peer: Peer | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._peer = peer_of(transport.get_extra_info("socket"))
            if counted.enter(self._peer):
                self._expect_head()
            else:
                transport.write(_FULL)
                transport.close()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._relax()  # a request is being answered
            elif self._late is None:
                self._expect_head()  # another one has begun behind it

        def connection_lost(self, exc: Exception | None) -> None:
            self._relax()
            if self._peer is not None:
                counted.leave(self._peer)
                self._peer = None
            super().connection_lost(exc)

        def _expect_head(self) -> None:
            self._late = self.loop.call_later(head_seconds, self.transport.abort)

        def _relax(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return Bounded


def peer_of(connection: socket.socket) -> Peer:
    """The peer of a connection; IPv6 hands whole networks out, so that half of the address names one."""
    if connection.family == socket.AF_UNIX:
        return Peer(f"account {user_of(connection)}", is_local=True)
    try:
        address = str(connection.getpeername()[0])
    except OSError:
        return Peer("a peer that has gone")
    if connection.family == socket.AF_INET6 and "." not in address:
        packed = socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
        if any(packed[:8]):
            return Peer(socket.inet_ntop(socket.AF_INET6, packed[:8] + bytes(8)) + "/64")
    return Peer(address)
