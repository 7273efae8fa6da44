"""What Slurm shows of jobs that have come and gone: squeue for a while after their end, sacct for a week, and earlier looks.

From them follow how much of their limits jobs use, and how others will come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from gantline.live.watch.slurm_state import SlurmJob, SlurmState
from gantline.live.watch.use_of_limits import shares_of_limits
from gantline.simulator.uncertainty import FEWEST

RUNS = ("RUNNING", "COMPLETING", "CONFIGURING", "STAGE_OUT")
_ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "NODE_FAIL")
_SUBMISSIONS = 200  # the latest of which the next ones are drawn; an array is one
_MOST = 2000  # jobs in them


@dataclass(frozen=True)
class SlurmPast:
    """The jobs of a look, of accounting and of earlier looks, by id."""

    state: SlurmState
    earlier: Mapping[str, SlurmJob] = field(default_factory=dict)

    @cached_property
    def jobs(self) -> Iterable[SlurmJob]:
        """Each as it was last seen."""
        listed = {job.id: job for job in self.state.jobs}
        return ({**self.earlier, **{job.id: job for job in self.state.past}} | listed).values()

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """The shares of their limits that jobs use, each as likely as the others."""
        running = [
            (self.state.now - job.started) / job.limit
            for job in self.state.jobs
            if job.state in RUNS and job.started and job.limit and self.state.now > job.started
        ]
        return shares_of_limits(self._ended, running)

    @property
    def run_times(self) -> str:
        """What is known of run times, in words."""
        known = len(self._ended)
        if known >= FEWEST:
            return f"run times are known of {known} ended jobs"
        if known:
            return f"run times are known of {known} ended jobs only: {FEWEST} of any length up to the limit are counted with them"
        return "run times are known of no ended job: any up to the limit is as likely"

    @cached_property
    def _ended(self) -> list[float]:
        return [
            (job.ended - job.started) / job.limit
            for job in self.jobs
            if job.state in _ENDED and job.started is not None and job.ended and job.limit and job.ended > job.started
        ]

    def arrivals(self) -> list[SlurmJob]:
        """The jobs that were submitted last, in order."""
        known = sorted((job for job in self.jobs if job.submitted), key=lambda job: job.submitted)[-_MOST:]
        instants = sorted({job.submitted for job in known})[-_SUBMISSIONS:]
        return [job for job in known if job.submitted >= instants[0]]
