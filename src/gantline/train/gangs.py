"""How the ranks of a job communicate: what `gantline.train` needs of a gang, and one over plain sockets.

A gang can be formed again with other members, which is how a job goes on with more or fewer ranks without a stop. With PyTorch it is a
process group (`gantline.train.torch.ProcessGroup`).
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import socket
import struct
import time
from typing import Protocol

from gantline.train.membership import Membership

_HELLO = struct.Struct("!16sI")
_LENGTH = struct.Struct("!Q")
_RETRY = 0.01  # seconds between two attempts to reach the first rank


class Gang(Protocol):
    """All ranks call the same functions in the same order."""

    def form(self, member: Membership) -> None:
        """Meet the others, at ``member.address`` and ``member.port``; a rank of an earlier gang leaves that first."""
        ...

    def sum(self, values: list[float]) -> list[float]:
        """Numbers summed over all ranks."""
        ...

    def spread(self, data: bytes) -> bytes:
        """The first rank's value, on all ranks."""
        ...

    def close(self) -> None:
        """Leave."""
        ...


class SocketGang:
    """Ranks in a star around the first one, over TCP on one machine: for small models in plain Python.

    Sums are made in the order of ranks, so that they are the same on all of them and in every run.
    """

    def __init__(self, *, limit: float = 120.0) -> None:
        self.limit = limit  # seconds that the others may take to come, or to answer
        self._rank, self._world = 0, 1
        self._others: list[socket.socket] = []  # of the first rank: by rank; of any other one: the first

    def form(self, member: Membership) -> None:
        self.close()
        self._rank, self._world = member.rank, member.world
        if member.world == 1:
            return
        secret = hashlib.sha256(f"{member.job}/{member.token}/{member.epoch}".encode()).digest()[:16]
        until = time.monotonic() + self.limit
        self._others = self._gather(member, secret, until) if member.rank == 0 else [self._reach(member, secret, until)]

    def sum(self, values: list[float]) -> list[float]:
        if self._world == 1:
            return values
        form = f"!{len(values)}d"
        own = struct.pack(form, *values)
        if self._rank:
            _send(self._others[0], own)
            return list(struct.unpack(form, _receive(self._others[0])))
        parts = [values, *(struct.unpack(form, _receive(other)) for other in self._others)]
        total = [sum(column) for column in zip(*parts)]
        for other in self._others:
            _send(other, struct.pack(form, *total))
        return total

    def spread(self, data: bytes) -> bytes:
        if self._rank:
            return _receive(self._others[0])
        for other in self._others:
            _send(other, data)
        return data

    def close(self) -> None:
        for other in self._others:
            with contextlib.suppress(OSError):
                other.close()
        self._others = []

    def _gather(self, member: Membership, secret: bytes, until: float) -> list[socket.socket]:
        found: dict[int, socket.socket] = {}
        with socket.create_server((member.address, member.port), backlog=member.world) as door:
            while len(found) < member.world - 1:
                door.settimeout(max(until - time.monotonic(), 0.001))
                try:
                    other, _ = door.accept()
                except TimeoutError:
                    raise ConnectionError(f"{len(found) + 1} of {member.world} ranks have come within {self.limit:g} s") from None
                other.settimeout(self.limit)
                with contextlib.suppress(OSError, struct.error):
                    token, rank = _HELLO.unpack(_receive(other))
                    if hmac.compare_digest(token, secret) and 0 < rank < member.world and rank not in found:
                        other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        found[rank] = other
                        continue
                other.close()  # not one of our ranks
        return [found[rank] for rank in sorted(found)]

    def _reach(self, member: Membership, secret: bytes, until: float) -> socket.socket:
        while True:
            try:
                first = socket.create_connection((member.address, member.port), timeout=self.limit)
            except OSError as error:
                if time.monotonic() > until:
                    raise ConnectionError(f"the first rank is not at {member.address}:{member.port}: {error}") from error
                time.sleep(_RETRY)
                continue
            first.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _send(first, _HELLO.pack(secret, member.rank))
            return first


def _send(to: socket.socket, data: bytes) -> None:
    to.sendall(_LENGTH.pack(len(data)) + data)


def _receive(source: socket.socket) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(source, _LENGTH.size))
    return _exactly(source, length)


def _exactly(source: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = source.recv(min(count, 1 << 20))
        if not part:
            raise ConnectionError("a rank of the gang is gone")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
