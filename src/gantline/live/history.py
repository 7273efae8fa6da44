"""The past as a trace: jobs that have ended, as rows that the simulator reads.

Its limits: only jobs that succeeded are in it; a duration is the time a job ran on the devices that it had, with what it lost or did
twice; a job that was held, or waited for another one, arrives when it was submitted; speeds at other sizes or on other types are not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gantline.live.view import JobView

LIMITS = (
    "only jobs that succeeded are in it",
    "a duration is the time a job ran on the devices it had, with what it lost or did twice",
    "a job that was held or waited for another job arrives when it was submitted",
    "speeds at other sizes or on other types are not known",
)
_LEAST = 1e-3  # seconds: a trace has no jobs without duration


def history_rows(jobs: Iterable[JobView]) -> list[dict[str, Any]]:
    """Rows in order of arrival; times are seconds since the home was made."""
    known = [job for job in jobs if job.state == "succeeded" and job.started is not None and job.finished is not None]
    return [_row(job) for job in sorted(known, key=lambda job: (job.submitted, len(job.id), job.id))]


def _row(job: JobView) -> dict[str, Any]:
    row = {"job": job.id, "arrival": job.submitted, "gpus": job.gpus, "duration": max(job.service, _LEAST), "user": job.user}
    row |= {"queue": job.queue, "model": job.name, "min_gpus": job.min_gpus, "max_gpus": job.max_gpus, "priority": job.priority}
    return {**job.metrics, **row, "started": job.started, "ended": job.finished, "attempts": 1 + job.restarts}
