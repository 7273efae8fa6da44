"""Rows of a trace, and what became of them, for tests of a few jobs."""

from __future__ import annotations

from typing import Any

from gantline.simulator.run import Run


def job_row(name: str, gpus: int = 1, duration: float = 100.0, at: float = 0.0, **more: Any) -> dict[str, Any]:
    """A job that arrives at that time and takes so long as it is asked for."""
    return {"job": name, "arrival": at, "gpus": gpus, "duration": duration, **more}


def by_job(run: Run, column: str) -> dict[str, Any]:
    """What a column of the result says of each job."""
    return dict(run.jobs.select("job", column).iter_rows())
