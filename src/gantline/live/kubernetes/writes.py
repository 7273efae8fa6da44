"""What is written to the API server: by a few threads, one write at a time for each object, repeated until the server has answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from gantline.core.errors import GantlineError
from gantline.live.kubernetes.client import ApiClient, ApiError, AwayError
from gantline.live.kubernetes.objects import Object

_THREADS = 8
_PAUSE = 0.5  # seconds before a write is repeated that the server could not take

Done = Callable[[Object | None, ApiError | None], None]


class Writes:
    """Writes under way. `post` brings what follows back to the thread that asked."""

    def __init__(self, client: ApiClient, post: Callable[[Callable[[], None]], None], may_write: Callable[[], bool]) -> None:
        self.client, self.post, self._may_write = client, post, may_write
        self._pool = ThreadPoolExecutor(_THREADS, "gantline-write")
        self._closing, self._lock = False, threading.Lock()
        self.under_way: set[str] = set()

    def begin(self, what: str, write: Callable[[], Object], done: Done) -> None:
        """Write something, unless the same is under way. `done` receives the answer, or the server's refusal."""
        if what in self.under_way:
            return
        self.under_way.add(what)
        self._pool.submit(self._write, what, write, done)

    def _write(self, what: str, write: Callable[[], Object], done: Done) -> None:
        answer: Object | None = None
        refusal: ApiError | None = None
        try:
            if not self._may_write():
                raise AwayError("the lease is not renewed", where="lease")
            answer = write()
        except ApiError as error:
            refusal = error
        except GantlineError:
            self._again(what, write, done)
            return
        except Exception as error:  # a mistake of ours: it is reported once, as a refusal
            refusal = ApiError(0, type(error).__name__, str(error), what)

        def follow() -> None:
            self.under_way.discard(what)
            done(answer, refusal)

        if not self._closing:
            self.post(follow)

    def _again(self, what: str, write: Callable[[], Object], done: Done) -> None:
        """Repeat a write behind those that wait: one which the server never takes does not keep others from their turn."""
        time.sleep(_PAUSE)
        with self._lock:
            if not self._closing:
                self._pool.submit(self._write, what, write, done)

    def close(self) -> None:
        with self._lock:
            self._closing = True
        self._pool.shutdown(wait=True, cancel_futures=True)
