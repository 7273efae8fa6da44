"""How many jobs there are and were, by what became of them, and how many decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from gantline.live.view import View

ENDS = {"completed": ("succeeded",), "failed": ("failed", "timeout", "rejected"), "deleted": ("cancelled",)}
WAITING, RUNNING = ("pending", "held"), ("starting", "running", "resizing", "preempting")


@dataclass(frozen=True)
class JobCounts:
    """At one instant; jobs that have left for the archive are counted among those that ended."""

    created: int
    archived: int
    ended: Mapping[str, int]  # by the names of `ENDS`
    waiting: int
    running: int
    states: Mapping[str, int]  # of jobs that are in the store
    decisions: int
    seconds: float  # that decisions took

    @staticmethod
    def of(view: View, archived: Mapping[str, int]) -> JobCounts:
        """`archived`: how many jobs in the archive ended in each state."""
        states, left = Counter(job.state for job in view.jobs.values()), Counter(archived)
        return JobCounts(
            len(view.jobs) + left.total(), left.total(),
            {name: sum(states[one] + left[one] for one in ends) for name, ends in ENDS.items()},
            sum(states[one] for one in WAITING), sum(states[one] for one in RUNNING), states,
            int(view.counters.get("decisions", 0.0)), view.counters.get("decision_seconds", 0.0),
        )  # fmt: skip
