"""`run.plot.gantt()`: the figures of a run, from Python. A chart draws itself in a notebook, and `save` writes it as a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gantline.lab.report.figures import (
    Chart,
    fairness_per_user,
    fragmentation_over_time,
    gantt,
    jct_cdf,
    progress_per_user,
    queue_and_utilization,
)
from gantline.lab.report.frames import RunLike, StoredRun
from gantline.simulator.run import Run


@dataclass(frozen=True)
class Plots:
    """The figures of one run.

    >>> run.plot.gantt(by="user")
    >>> run.plot.jct_cdf().save("jct.pdf", preset="column")
    """

    run: RunLike

    def gantt(self, by: Literal["user", "job"] = "job") -> Chart:
        """Which job or user held which device when; colours mean jobs or users."""
        return gantt(self.run, by)

    def jct_cdf(self) -> Chart:
        """The distribution of job completion times."""
        return jct_cdf([self.run])

    def timeline(self) -> Chart:
        """Waiting jobs and utilization over time."""
        return queue_and_utilization([self.run])

    def fragmentation(self) -> Chart:
        """Free GPUs that no waiting job could use, over time."""
        return fragmentation_over_time([self.run])

    def fairness(self) -> Chart:
        """The share of the requested GPU time that each user received."""
        return fairness_per_user([self.run])

    def progress(self) -> Chart:
        """Work done and machines held by each user over time."""
        return progress_per_user(self.run)


for _kind in (Run, StoredRun):
    setattr(_kind, "plot", property(Plots))  # noqa: B010 (a figure of a run is this room's business, not the simulator's)
