"""Rows of a trace, and what became of them, for tests of a few jobs."""

from __future__ import annotations

from typing import Any

import polars as pl

from gantline.simulator.run import Run


def job_row(name: str, gpus: int = 1, duration: float = 100.0, at: float = 0.0, **more: Any) -> dict[str, Any]:
    """A job that arrives at that time and takes so long as it is asked for."""
    return {"job": name, "arrival": at, "gpus": gpus, "duration": duration, **more}


def gangs(*sizes: int, **more: Any) -> list[dict[str, Any]]:
    """Jobs j0, j1, ... of these sizes that are there from the beginning."""
    return [job_row(f"j{number}", gpus, 1000.0, **more) for number, gpus in enumerate(sizes)]


def by_job(run: Run, column: str) -> dict[str, Any]:
    """What a column of the result says of each job."""
    return dict(run.jobs.select("job", column).iter_rows())


def held_by(run: Run, name: str) -> pl.DataFrame:
    """The intervals in which a job held something."""
    return run.allocations.filter(run.allocations["job"] == name)
