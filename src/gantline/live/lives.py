"""Another life of a store that is older than what its jobs have left: a backup, a database of an earlier time, a lost write-ahead log.

Ids of jobs and epochs of incarnations that it would give out next may have been given out before. So ids go on behind the newest that is
known, and every epoch in the checkpoint moves behind those of all folders: to runners, whatever an earlier life has started is then an
older incarnation of its job, which they end, and whose end counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gantline.live.book import Job
from gantline.live.setup import Saved


@dataclass(frozen=True)
class NewLife:
    """What it begins with."""

    generation: str
    newest: int  # the highest number of a job that has been given out
    epochs: int  # the highest epoch of an incarnation
    why: str  # it is known to be one
    known: int  # the highest number of a job in the store

    def __str__(self) -> str:
        lost = f"; the store knows nothing of jobs {self.known + 1} to {self.newest}" if self.newest > self.known else ""
        return (
            f"another life of the store begins: {self.why}{lost}. Jobs that ran when it was written start again from what they have "
            "saved, processes of the earlier life are stopped, and new jobs get higher numbers"
        )

    def move(self, saved: Saved) -> Saved:
        """A checkpoint with later epochs."""
        by = self.epochs + 1
        snapshot = saved["snapshot"]
        jobs = [{**job, "epoch": job.get("epoch", 0) + by} for job in snapshot["jobs"]]
        live = [{**one, "epoch": one["epoch"] + by, "onto": one["onto"] + by if one["onto"] >= 0 else -1} for one in saved["live"]]
        return {
            **saved,
            "snapshot": {**snapshot, "jobs": jobs},
            "live": live,
            "over": {row: epoch + by for row, epoch in saved["over"].items()},
            "saves": {row: [epoch + by, first] for row, (epoch, first) in saved["saves"].items()},
            "ended": [{**one, "epoch": one["epoch"] + by} for one in saved["ended"]],
        }

    def move_jobs(self, jobs: Iterable[Job]) -> None:
        """What is known of jobs, likewise."""
        for job in jobs:
            job.ended_epoch += self.epochs + 1
