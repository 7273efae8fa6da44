"""A service that only listens to progress: a real HTTP server on loopback with answers that a test chooses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Listener:
    """What it heard, and what it answers."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.tokens: list[str] = []
        self.answer: dict[str, Any] = {}
        self.code = 200
        self._news = threading.Condition()
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with listener._news:
                    listener.received.append(body)
                    listener.paths.append(self.path)
                    listener.tokens.append(self.headers["Authorization"])
                    text = json.dumps(listener.answer).encode()
                    code = listener.code
                    listener._news.notify_all()
                self.send_response(code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *words: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def wait_for(self, wanted: Any, seconds: float = 60.0) -> bool:
        """Wait until what was received satisfies a function."""
        with self._news:
            return self._news.wait_for(lambda: any(wanted(one) for one in self.received), timeout=seconds)


@contextmanager
def listening() -> Iterator[Listener]:
    """A listener for the length of a test."""
    listener = Listener()
    thread = threading.Thread(target=listener.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield listener
    finally:
        listener.server.shutdown()
        listener.server.server_close()
        thread.join()
