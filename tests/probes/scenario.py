"""Words for probes: short jobs in, policies of a line, what each job held out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.simulator.run import Run

FOREVER = math.inf


def job(name: str, gpus: int = 1, work: float = 100.0, at: float = 0.0, **more: Any) -> dict[str, Any]:
    """One row of a trace; `work` is its run time alone, as asked for."""
    return {"job": name, "arrival": at, "gpus": gpus, "duration": work, **more}


ALONE = [job("a", 1, 100)]
WIDE_AND_SLIM = [job("wide", 2, 120, model="vision"), job("slim", 1, 60, model="language")]


@dataclass(frozen=True)
class Says(Policy):
    """The assignments that a function gives; it is asked again at `changes`."""

    rows: Callable[[Snapshot], list[Assignment]]
    changes: tuple[float, ...] = ()

    def decide(self, snapshot: Snapshot) -> Plan:
        later = min((time for time in self.changes if time > snapshot.now), default=FOREVER)
        return Plan.assign(self.rows(snapshot), valid_until=later)


def each(terms: Callable[[Snapshot, int], dict[str, Any]], *changes: float) -> Policy:
    """Every job gets what a function says of its position."""
    return Says(lambda snapshot: [Assignment(k, **terms(snapshot, k)) for k in range(len(snapshot.jobs))], changes)


def every(**terms: Any) -> Policy:
    """Every job gets the same."""
    return each(lambda snapshot, k: terms)


def step_of(steps: dict[float, Any], snapshot: Snapshot) -> Any:
    """What holds from the latest of some times on."""
    return steps[max(time for time in steps if time <= snapshot.now)]


def in_steps(name: str, steps: dict[float, Any]) -> Policy:
    """Every job gets one of its terms by the time."""
    return each(lambda snapshot, k: {name: step_of(steps, snapshot)}, *steps)


IN_ONE_GROUP = every(group=0, mode=Mode.SPACE)


def spans(run: Run, name: str) -> list[tuple[float, float, list[int], str]]:
    """(start, end, devices, why it ended) of every interval in which the job held something."""
    rows = run.allocations.filter(run.allocations["job"] == name)
    return [(row["start"], row["end"], row["devices"], row["reason"]) for row in rows.iter_rows(named=True)]


def fact(run: Run, name: str, column: str) -> Any:
    """One value of a job's row in the result."""
    return run.jobs.filter(run.jobs["job"] == name)[column][0]


def facts(run: Run, column: str) -> dict[str, Any]:
    """A column of the result by job."""
    return dict(zip(run.jobs["job"], run.jobs[column], strict=True))
