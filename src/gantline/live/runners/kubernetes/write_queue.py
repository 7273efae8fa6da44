"""What is written to the API server: by a few threads, one write at a time for each object, repeated until the server has answered."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from gantline.core.errors import GantlineError
from gantline.live.runners.kubernetes.access import Object
from gantline.live.runners.kubernetes.client import ApiClient, ApiError, AwayError
from gantline.live.runners.kubernetes.workloads import Workload

_THREADS = 8
_PAUSE = 0.5  # seconds before a write is repeated that the server could not take

Done = Callable[[Object | None, ApiError | None], None]


class WriteQueue:
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


# Changes of objects that others change as well: each is made to the version that it was decided from, or not at all.
#
# A change that comes too late (409 Conflict) is not repeated as it is. The object is read again, and what is to be
# done is decided anew from what it is now, so that no edit of its owner is overwritten.

_LOG = logging.getLogger("gantline.live")
_GONE, _CONFLICT = 404, 409
_TRIES = 10  # changes in a row that come too late, before its owner is told and each further one waits
_LATE_PAUSE = 0.5  # seconds that it waits then
_TOO_OFTEN = (
    f"it has changed {_TRIES} times in a row while it was to be suspended, admitted or let go; this is tried again every "
    f"{_LATE_PAUSE:g} s: see what else writes to it"
)


@dataclass
class WorkloadChanges:
    """Of all objects. What is called back is called in the thread that asked."""

    client: ApiClient
    writes: WriteQueue
    saw: Callable[[Workload], None]  # an object as it is now, changed or not: what is to be done is decided from it
    lost: Callable[[Workload], None]  # it is gone
    _late: dict[str, int] = field(default_factory=dict)  # uid -> changes in a row that came too late

    def make(self, workload: Workload, change: Object, refused: Callable[[ApiError], None]) -> None:
        """Change an object, unless a change of it is under way; `refused` is called if it can never be changed like that."""

        def done(answer: Object | None, refusal: ApiError | None) -> None:
            if refusal is not None and refusal.code == _CONFLICT:
                self._look_again(workload)
            elif refusal is not None and refusal.code != _GONE:
                refused(refusal)
            else:
                if "resourceVersion" in change["metadata"]:
                    self._late.pop(workload.uid, None)
                self._now(workload)(answer, refusal)

        self.writes.begin(workload.title, partial(self.client.merge, workload.path, change), done)

    def ask_after(self, workload: Workload) -> None:
        """Read an object, which may be gone, also while a change of it is under way."""
        self.writes.begin(f"{workload.title}?", partial(self._read, workload), self._now(workload))

    def _look_again(self, workload: Workload) -> None:
        """No other change of it is begun meanwhile: it would come too late as well."""
        late = self._late[workload.uid] = self._late.get(workload.uid, 0) + 1
        self.writes.begin(workload.title, partial(self._read if late < _TRIES else self._tell, workload), self._now(workload))

    def _read(self, workload: Workload) -> Object:
        try:
            return self.client.get(workload.path)
        except ApiError as error:
            if error.code == _GONE:
                raise
            raise AwayError(f"{workload.title} cannot be read: {error.what}", where=error.where) from None  # it is asked again

    def _tell(self, workload: Workload) -> Object:
        """Say at the object why it takes so long; the answer is the object as it is now."""
        time.sleep(_LATE_PAUSE)
        try:
            return self.client.merge(workload.path, workload.mark(conflict=_TOO_OFTEN))
        except ApiError:
            return self._read(workload)

    def _now(self, workload: Workload) -> Done:
        def done(answer: Object | None, refusal: ApiError | None) -> None:
            now = workload.renewed(answer) if answer is not None else None
            if now is not None and now.uid == workload.uid:
                self.saw(now)
            elif now is not None or (refusal is not None and refusal.code == _GONE):  # another object has its name, or none
                self._late.pop(workload.uid, None)
                self.lost(workload)
            else:
                _LOG.warning("%s could not be read: %s", workload.title, refusal)

        return done
