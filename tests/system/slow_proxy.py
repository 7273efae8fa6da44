"""A connection to a server on loopback whose answers come late, or not at all for a while. It sees bytes only, so encryption passes."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable

_CHUNK = 1 << 16


class SlowProxy:
    """Forwards connections to a port. What the server says arrives `delay` seconds later, and nothing of it while `held`."""

    def __init__(self, port: int) -> None:
        self.delay, self._server = 0.0, port
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def hold(self) -> None:
        """From now on no answer passes."""
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    def close(self) -> None:
        self.release()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it was closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                late: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
                self._start(self._forward, client, server)
                self._start(self._receive, server, late)
                self._start(self._deliver, late, client, server)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(_CHUNK):
                server.sendall(data)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _receive(self, server: socket.socket, late: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(_CHUNK):
                late.put((time.monotonic() + self.delay, data))
        late.put((0.0, b""))

    def _deliver(self, late: queue.SimpleQueue[tuple[float, bytes]], client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (one := late.get())[1]:
                time.sleep(max(0.0, one[0] - time.monotonic()))
                self._open.wait()
                client.sendall(one[1])
        for end in (client, server):
            end.close()

    @staticmethod
    def _start(act: Callable[..., None], *args: object) -> None:
        threading.Thread(target=act, args=args, daemon=True).start()
