"""The output of gangs, copied through the API into the home: while somebody reads it, and before pods are removed.

The pods' logs go with the pods; the copy stays. Lines of several pods have the first rank of their pod before them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gantline.core.errors import GantlineError
from gantline.live.runners.kubernetes.access import path_of
from gantline.live.runners.kubernetes.client import ApiClient
from gantline.live.runners.local.files import make_private
from gantline.live.runners.local.output import Lines, Log

_BYTES = 64 << 20


@dataclass
class LogCopy:
    """The copy of one gang's output, written by a thread for each pod."""

    client: ApiClient
    namespace: str
    outputs: list[tuple[str, str]]  # pods, and which container of each
    path: Path
    most: int = _BYTES
    done: list[Callable[[], None]] = field(default_factory=list)  # called once, when all output has come
    is_over: bool = False
    is_whole: bool = True  # nothing broke off

    def __post_init__(self) -> None:
        self._lock, self._left, self._first = threading.Lock(), len(self.outputs), threading.Event()
        make_private(self.path.parent)
        for old in (self.path, self.path.with_name("log.1")):
            old.unlink(missing_ok=True)
        self._log = Log(str(self.path), self.most)
        self._lines = Lines(self._log, lambda number: number)
        self._lines.numbered = len(self.outputs) > 1
        for number, (name, container) in enumerate(self.outputs):
            threading.Thread(target=self._copy, args=(number, name, container), name=f"gantline-log-{name}", daemon=True).start()

    def wait_a_little(self, seconds: float = 1.0) -> None:
        """For the output that there is already: what comes later is read at the next look."""
        self._first.wait(seconds)

    def when_over(self, call: Callable[[], None]) -> None:
        """Call it when all output has come, or now."""
        with self._lock:
            if not self.is_over:
                self.done.append(call)
                return
        call()

    def _copy(self, number: int, name: str, container: str) -> None:
        try:
            for line in self.client.lines(f"{path_of('pods', self.namespace, name)}/log", follow="true", container=container):
                with self._lock:
                    self._lines.write(number, line)
                self._first.set()
        except (GantlineError, OSError):
            self.is_whole = False  # it has not begun, or its node does not answer: what has come is kept
        with self._lock:
            self._lines.write(number, b"")
            self._left -= 1
            if self._left:
                return
            self._log.close()
            self.is_over = True
            self._first.set()
            calls = list(self.done)
        for call in calls:
            call()


class LogCopies:
    """Copies under way, by job and epoch; from any thread."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self._copies: dict[tuple[str, int], LogCopy] = {}
        self._lock = threading.Lock()

    def of(self, job: str, epoch: int, outputs: list[tuple[str, str]], path: Path, most: int = _BYTES) -> LogCopy:
        """The copy of a gang's output, begun now if it is not under way. One that broke off is begun anew."""
        with self._lock:
            known = self._copies.get((job, epoch))
            if known is None or (known.is_over and not known.is_whole):
                known = self._copies[job, epoch] = LogCopy(self.client, self.namespace, outputs, path, most)
            return known

    def forget(self, job: str, epoch: int) -> None:
        with self._lock:
            self._copies.pop((job, epoch), None)
