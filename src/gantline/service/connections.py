"""Limits on connections: how many there are, and how long one may take to send its request.

A connection needs no token to be opened. So their number is limited, one more is answered with 503 and closed, and one that has
not sent the head of its next request in time is closed. The guard limits how long a body may take.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 15.0
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-type: application/json\r\n\r\n"
    b'{"error": {"kind": "unreachable", "what": "too many connections", "where": "service", "fix": "try again in a while"}}'
)


def bounded(most: int, head_seconds: float = HEAD_SECONDS) -> type[asyncio.Protocol]:
    """The protocol that uvicorn would choose, within these bounds."""

    class Bounded(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """One connection."""

        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > most:
                transport.write(_FULL)
                transport.close()
            else:
                self._expect_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._relax()  # a request is being answered
            elif self._late is None:
                self._expect_head()  # another one has begun behind it

        def connection_lost(self, exc: Exception | None) -> None:
            self._relax()
            super().connection_lost(exc)

        def _expect_head(self) -> None:
            self._late = self.loop.call_later(head_seconds, self.transport.abort)

        def _relax(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return Bounded
