"""Asking another process: one question at a time, each with a limit."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable

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
