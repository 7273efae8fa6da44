"""Jobs that a runner has found in its engine: submitted, resized and cancelled as their objects say."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from gantline.core.errors import NotFoundError, RefusedError
from gantline.core.inputs import Action
from gantline.live.book import Book
from gantline.live.launch import Submittable
from gantline.live.requests import Requests
from gantline.live.runners.runner_context import FoundJobs


class TakenIn(FoundJobs):
    """Those of one scheduler. May be called from any thread."""

    def __init__(self, requests: Requests, book: Book) -> None:
        self._requests, self._book = requests, book

    def submit(self, spec: Submittable, user: str) -> str:
        return self._requests.submit(spec, user)[0]

    def cancel(self, job: str) -> None:
        with contextlib.suppress(RefusedError, NotFoundError):
            self._requests.request([job], Action.CANCEL, "", 0, 0, 0)

    def resize(self, job: str, gpus: int, least: int, most: int) -> None:
        self._requests.request([job], Action.RESIZE, "", gpus, least, most)

    def is_over(self, job: str) -> bool:
        return job not in self._book or self._book[job].ended

    def present(self) -> Mapping[str, str]:
        return {job.id: job.launch.object for job in self._book if job.launch.object and not job.ended}
