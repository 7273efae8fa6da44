"""How many jobs are expected in the ten minutes to come: what Lucid's time-aware scaling goes by (ASPLOS 2023, section 3.4).

Submissions are counted in bins of ten minutes. The forecast is the mean of the last hour and, once they have been seen, of the same hour
a day and a week ago: a model of a daily and weekly rhythm that people can check by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from gantline.core.snapshot import Snapshot

BIN = 600.0
_HOUR, _DAY, _WEEK = 6, 144, 1008  # bins
_KEPT = _WEEK + _HOUR


@dataclass(frozen=True)
class SubmissionCounts:
    """Jobs and GPUs that were asked for, by bin; `first` is the bin in which counting began, `last` the row counted last."""

    counts: dict[int, tuple[int, int]]
    first: int
    last: int

    @staticmethod
    def seen_in(snapshot: Snapshot, memory: dict[str, list[list[int]] | int]) -> SubmissionCounts:
        """What is remembered, with the jobs that have come since."""
        present = int(snapshot.now // BIN)
        rows = memory.get("bins", [])
        counts = {at: (jobs, gpus) for at, jobs, gpus in rows if at > present - _KEPT} if isinstance(rows, list) else {}
        first, last = (
            int(value) if isinstance(value := memory.get(name), int) else none for name, none in (("first", present), ("row", -1))
        )
        jobs = snapshot.jobs
        for row, arrival, gpus in zip(jobs.rows.tolist(), jobs.arrival.tolist(), jobs.gpus.tolist()):
            if row > last:
                before = counts.get(int(arrival // BIN), (0, 0))
                counts[int(arrival // BIN)] = (before[0] + 1, before[1] + gpus)
        newest = max([last, *jobs.rows.tolist()])
        return SubmissionCounts(counts, min([first, *counts]), newest)

    def remembered(self) -> dict[str, list[list[int]] | int]:
        """The plain value that the next decision starts from."""
        return {"bins": [[at, *self.counts[at]] for at in sorted(self.counts)], "first": self.first, "row": self.last}

    def expected(self, now: float) -> tuple[float, float]:
        """Jobs and GPUs in ten minutes."""
        present = int(now // BIN)
        hours = [self._hour_before(present + 1)]
        hours += [self._hour_before(present + _HOUR - ago) for ago in (_DAY, _WEEK) if present - ago >= self.first]
        jobs, gpus = (sum(each) / len(hours) for each in zip(*hours))
        return jobs, gpus

    def _hour_before(self, end: int) -> tuple[float, float]:
        """The mean over the six bins before this one, as far as they were counted."""
        bins = range(max(end - _HOUR, self.first), max(end, self.first + 1))
        totals = [self.counts.get(at, (0, 0)) for at in bins]
        return sum(jobs for jobs, _ in totals) / len(bins), sum(gpus for _, gpus in totals) / len(bins)
