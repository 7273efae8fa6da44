"""Asking another process: one question at a time, each with a limit."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from gantline.core.errors import RefusedError, UnreachableError
from gantline.lab.questions.worker import refusal

LIMIT = 60.0  # seconds


class Asker:
    """Keeps one worker, which is started at the first question and ended when an answer takes too long."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._worker: subprocess.Popen[str] | None = None
        self._about = ""  # the snapshot that the worker has decoded last

    def ask(
        self,
        question: dict[str, object],
        about: str = "",
        snapshot: Callable[[], dict[str, object]] | None = None,
        limit: float | None = None,
    ) -> dict[str, object]:
        """The answer; raises what the worker refused.

        `about` names an instant: its `snapshot` is made, sent and decoded once, for all questions about it that follow one another.
        `limit`: seconds after which there is no answer, where they are not the usual ones.
        """
        if not self._lock.acquire(timeout=self.limit):
            raise UnreachableError("others are asking", where="questions", fix="ask again in a while")
        try:
            known = bool(about) and about == self._about and self._worker is not None and self._worker.poll() is None
            more = {} if known or snapshot is None else {"snapshot": snapshot()}
            line = self._exchange(json.dumps({**question, **more, **({"about": about} if about else {})}), limit or self.limit)
            reply = json.loads(line)
            self._about = "" if "error" in reply else about  # what refuses a question may not have read its snapshot
        finally:
            self._lock.release()
        if "error" in reply:
            raise refusal(reply["error"])
        found: dict[str, object] = reply["answer"]
        return found

    def _exchange(self, line: str, limit: float) -> str:
        worker = self._alive()
        assert worker.stdin is not None
        assert worker.stdout is not None
        late = threading.Timer(limit, worker.kill)
        late.start()
        try:
            worker.stdin.write(line + "\n")
            worker.stdin.flush()
            found = worker.stdout.readline()
        except OSError:
            found = ""
        finally:
            late.cancel()
        if not found:
            self.close()
            raise RefusedError(f"no answer within {limit:g} s", where="questions", fix="ask with fewer --draws")
        return found

    def _alive(self) -> subprocess.Popen[str]:
        if self._worker is None or self._worker.poll() is not None:
            self.close()
            command = [sys.executable, "-m", "gantline.lab.questions.worker"]
            self._worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        return self._worker

    def close(self) -> None:
        """End the worker."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            worker.wait()
            for stream in (worker.stdin, worker.stdout):
                if stream is not None:
                    stream.close()


# One answer for all equal questions: made in the background, kept until the state changes.
#
# A question never waits: its answer is ready, or is being made. `since` is the state that the asker has seen: an answer about
# it or a later one will do, so that one that was begun a moment ago serves all.

MOST = 64  # answers that are kept


@dataclass(frozen=True)
class Shared:
    """An answer, or why there is none, about the state of that version."""

    version: int
    answer: dict[str, Any] | None = None
    error: BaseException | None = None


class SharedAnswers:
    """Answers by question; one thread makes them, one after the other."""

    def __init__(self, version: Callable[[], int]) -> None:
        self._version = version
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Shared] = OrderedDict()
        self._wanted: OrderedDict[Hashable, Callable[[], dict[str, object]]] = OrderedDict()
        self._making: tuple[Hashable, int] | None = None
        self.made = 0  # how many were

    def get(self, what: Hashable, make: Callable[[], dict[str, Any]], since: int) -> dict[str, Any] | None:
        """The answer; None: it is being made. An error is raised once; the next question tries again."""
        with self._lock:
            found = self._kept.get(what)
            if found is not None and found.version >= since:
                if found.error is not None:
                    del self._kept[what]
                    raise found.error
                return found.answer
            under_way = self._making is not None and self._making[0] == what and self._making[1] >= since
            if not under_way and what not in self._wanted:
                self._wanted[what] = make
                if self._making is None:
                    self._making = (None, -1)
                    threading.Thread(target=self._work, name="gantline-questions", daemon=True).start()
        return None

    def newest(self, what: Hashable) -> Shared | None:
        """The answer that was made last, whatever has changed since; None: there is none."""
        with self._lock:
            found = self._kept.get(what)
        return found if found is not None and found.error is None else None

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._wanted:
                    self._making = None
                    return
                what, make = self._wanted.popitem(last=False)
                version = self._version()
                self._making = (what, version)
            try:
                found = Shared(version, make())
            except BaseException as error:  # it is raised to the asker
                found = Shared(version, error=error)
            with self._lock:
                self.made += 1
                self._kept[what] = found
                self._kept.move_to_end(what)
                while len(self._kept) > MOST:
                    self._kept.popitem(last=False)
