"""What jobs and queues held, read off a run's allocations."""

from __future__ import annotations

from collections.abc import Iterable

from tests.jobs import by_job, held_by

from gantline.core.queues import ancestors
from gantline.simulator.run import Run


def held(run: Run, job: str, at: float) -> int:
    """How many devices a job held at that time."""
    spans = held_by(run, job).iter_rows(named=True)
    return sum(span["gpus"] for span in spans if span["start"] <= at < span["end"])


def most_held(run: Run, queues: Iterable[str]) -> dict[str, int]:
    """The most devices that each of these queues and those below it held at any time."""
    queue_of = by_job(run, "queue")
    spans = [(row["start"], row["end"], row["gpus"], queue_of[row["job"]]) for row in run.allocations.iter_rows(named=True)]
    found = {}
    for queue in queues:
        mine = [(start, end, gpus) for start, end, gpus, name in spans if queue in ancestors(name) and end > start]
        found[queue] = max((sum(gpus for start, end, gpus in mine if start <= at < end) for at, _, _ in mine), default=0)
    return found
