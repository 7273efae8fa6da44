"""Workers that answer questions outlive the services of the tests: starting one takes longer than everything that is asked of it.

Each service of a test keeps two, as `serve` arranges it. Here a service that ends hands on what it started to the next one.
"""

from __future__ import annotations

import subprocess
from typing import Any

from gantline.lab.questions.asker import Asker
from gantline.live.service.context import Service

_IDLE: list[subprocess.Popen[str]] = []  # they end with this process, which holds the other ends of their pipes


class FrugalAsker(Asker):
    """Takes a worker that is idle before it starts one, and leaves it idle when it is closed."""

    def _alive(self) -> subprocess.Popen[str]:
        if self._worker is None and _IDLE:
            self._worker = _IDLE.pop()
        return super()._alive()

    def close(self) -> None:
        if self._worker is None or self._worker.poll() is not None or not self._lock.acquire(blocking=False):
            super().close()  # it has ended, or it is at work on an answer that takes too long
            return
        _IDLE.append(self._worker)
        self._worker = None
        self._lock.release()


def frugal_service(*parts: Any, **more: Any) -> Service:
    """A service whose questions are answered by such workers."""
    return Service(*parts, **more, asker=FrugalAsker(), prompt=FrugalAsker())
