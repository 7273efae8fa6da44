"""Lists of jobs: which of them, in which order, with their places in the queue and when they are expected to start."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.live.scheduler.view import JobView
from gantline.live.service.context import Context, job_text
from gantline.live.service.questions import ExpectedStarts

_FIELDS = ("id", "name", "user", "queue", "state", "gpus", "priority", "submitted", "started", "restarts", "failures")
SORTS = (*_FIELDS, "ended", "position", "start_p50", "start_p90")


@dataclass(frozen=True)
class WantedJobs:
    """What a list is to hold. A queue means those below it, too; all of the labels must be there."""

    states: Sequence[str] = ()
    user: str = ""
    queue: str = ""
    labels: Sequence[str] = ()
    text: str = ""  # part of an id, a name, a user, a queue, a state or a label, whatever the case of its letters

    def __call__(self, job: JobView) -> bool:
        return (
            (not self.states or job.state in self.states)
            and self.user in ("", job.user)
            and (not self.queue or job.queue == self.queue or job.queue.startswith(f"{self.queue}/"))
            and _labelled(job.labels, self.labels)
            and (not self.text or self.text.casefold() in _words(job))
        )


def _labelled(labels: Mapping[str, str], wanted: Sequence[str]) -> bool:
    pairs = [one.partition("=") for one in wanted]
    return all(key in labels and (not sign or labels[key] == value) for key, sign, value in pairs)


def _words(job: JobView) -> str:
    labels = [f"{key}={value}" for key, value in job.labels.items()]
    return "\n".join([job.id, job.name, job.user, job.queue, job.state, *labels]).casefold()


class Ordered:
    """Jobs with their places in the queue and their expected starts."""

    def __init__(self, here: Context, starts: ExpectedStarts) -> None:
        self._service, self._starts = here.service, starts.by_job
        self._places = {row: place + 1 for place, row in enumerate(here.scheduler.view().standing.waiting.tolist())}

    def position(self, job: JobView) -> int | None:
        """Its place in the order of the last decision, from 1; None: it does not wait."""
        return self._places.get(job.row) if job.state == "pending" else None

    def starts(self, job: JobView) -> tuple[float | None, float | None]:
        """When it is expected to start, P50 and P90; None: it does not wait, or no forecast is there."""
        return self._starts.get(job.id, (None, None)) if job.state == "pending" else (None, None)

    def sorted(self, jobs: Sequence[JobView], by: str) -> list[JobView]:
        """In the order of a field, from the largest on with a '-' before it; jobs that have no value come last."""
        name = by.removeprefix("-")
        if name not in SORTS:
            raise NotFoundError(f"jobs cannot be sorted by '{name[:64]}'", where="sort", fix=near(name[:64], SORTS))
        value = self._value_of(name)
        known = [(found, job) for job in jobs if (found := value(job)) is not None]
        known.sort(key=lambda one: one[0], reverse=by.startswith("-"))
        return [*(job for _, job in known), *(job for job in jobs if value(job) is None)]

    def _value_of(self, name: str) -> Callable[[JobView], Any]:
        if name == "position":
            return self.position
        if name in ("start_p50", "start_p90"):
            return lambda job: self.starts(job)[name == "start_p90"]
        if name == "id":  # tasks of an array are listed together, and 10 comes after 9
            return lambda job: [int(part) if part.isdecimal() else 0 for part in job.id.split("_")]
        return lambda job: getattr(job, "finished" if name == "ended" else name)

    def text(self, job: JobView) -> str:
        """A job as JSON."""
        first, second = self.starts(job)
        more = f', "position": {json.dumps(self.position(job))}, "start_p50": {json.dumps(first)}, "start_p90": {json.dumps(second)}'
        return f"{job_text(self._service, job)[:-1]}{more}}}"


def page_of(
    here: Context, there: Sequence[JobView], ordered: Ordered, *, sort: str, limit: int, before: str, offset: int
) -> tuple[list[JobView], str | None]:
    """The jobs of one page, and what to give as `before` for older ones.

    As they were submitted the newest are shown; sorted, those from `offset` on.
    """
    if sort:
        if before:
            raise UsageError("a sorted list has no 'before'", where="before", fix="page through it with 'offset'")
        return ordered.sorted(there, sort)[offset : offset + limit], None
    if offset:
        raise UsageError("a list as submitted has no 'offset'", where="offset", fix="page through it with 'before', or sort it")
    shown = there[-limit:]
    return list(shown), shown[0].id if len(shown) < len(there) else None
