"""Words for probes: short jobs in, what each of them held out."""

from __future__ import annotations

import math
from typing import Any

from gantline.simulator.run import Run

FOREVER = math.inf


def job(name: str, gpus: int = 1, work: float = 100.0, at: float = 0.0, **more: Any) -> dict[str, Any]:
    """One row of a trace; `work` is its run time alone, as asked for."""
    return {"job": name, "arrival": at, "gpus": gpus, "duration": work, **more}


def spans(run: Run, name: str) -> list[tuple[float, float, list[int], str]]:
    """(start, end, devices, why it ended) of every interval in which the job held something."""
    rows = run.allocations.filter(run.allocations["job"] == name)
    return [(row["start"], row["end"], row["devices"], row["reason"]) for row in rows.iter_rows(named=True)]


def fact(run: Run, name: str, column: str) -> Any:
    """One value of a job's row in the result."""
    return run.jobs.filter(run.jobs["job"] == name)[column][0]
