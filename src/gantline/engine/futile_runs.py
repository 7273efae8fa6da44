"""Runs that reach their limit before their start is over: the plan gives them less time than a start takes, and they do no work.

The first such run of a job is reported. After a few in a row, between which the job has not worked either, the job ends as one that has
reached its limit: no plan of this kind would ever let it work.
"""

from __future__ import annotations

from gantline.core.columns import Job
from gantline.core.inputs import Action, JobRequest
from gantline.engine.job_requests import JobRequests
from gantline.engine.lost_turns import Incident
from gantline.engine.state import State

MOST = 3  # such runs in a row


class FutileRuns:
    """Counts them, job by job."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._count: dict[int, tuple[int, float]] = {}  # row -> such runs in a row, and what it had attained by then
        self._ended: list[tuple[int, float, float]] = []  # rows whose run has just ended so, their limit, and what their start takes

    def note(self, row: int) -> None:
        """A run ends at its limit, now: was its start still going on?"""
        F = self.state.tables.F
        if F[Job.SINCE, row] >= self.state.now - 1e-9:
            limit, takes = (float(F[line, row] - F[Job.LAST_START, row]) for line in (Job.LIMIT_END, Job.SINCE))
            self._ended.append((row, limit, takes))

    def report(self, requests: JobRequests) -> list[Incident]:
        """What is to be said of the runs that were noted; jobs that had too many of them end."""
        found: list[Incident] = []
        t, now = self.state.tables, self.state.now
        for row, limit, takes in self._ended:
            count, attained = self._count.get(row, (0, 0.0))
            count = count + 1 if attained == t.F[Job.SERVICE, row] else 1
            self._count[row] = count, float(t.F[Job.SERVICE, row])
            why = f"the plan lets job '{t.ids[row]}' run for {limit:g} s, its limit, and its start alone takes {takes:g} s"
            if count == 1:
                found.append(Incident(now, self.state.decision, why))
            elif count >= MOST:
                del self._count[row]
                requests.apply(t.ids[row], JobRequest(now, Action.FAIL, t.ids[row]))
                found.append(Incident(now, self.state.decision, f"{why}: the job ends after {count} runs without work"))
        self._ended.clear()
        return found
