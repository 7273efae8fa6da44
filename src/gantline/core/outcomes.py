"""What became of jobs, as columns: enough to say how well a run, or a future that was rolled out, went.

A job that is still there when the run ends counts as if it completed at that moment: less would reward leaving jobs behind. Jobs that
failed, were cancelled or turned away have no completion time, and have missed their deadlines. With every job completed the values
are those of the metrics of a run (``docs/metrics.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gantline.core.areas import mean_present
from gantline.core.arrays import Bools, Floats


@dataclass(frozen=True)
class Ended:
    """One entry per job. ``finish`` is NaN or infinite for a job that has not completed, ``first_start`` for one that never started."""

    arrival: Floats
    first_start: Floats
    finish: Floats
    duration: Floats  # run time with the devices that the job asked for
    gpus: Floats  # that it asked for
    end: float  # of the run, or the horizon of a future
    devices: float  # GPUs of the cluster
    deadline: Floats | None = None  # NaN for jobs without one
    lost: Bools | None = None  # failed, cancelled or turned away
    counted: Bools | None = None  # the jobs that count, where others only ran beside them
    met: Bools | None = None  # deadlines, where the run judged them itself
    dollars: float = math.nan
    kwh: float = math.nan

    def value(self, word: str) -> float:
        """The value of one of the words of an objective; lower is better, NaN where the columns cannot say."""
        found: float = getattr(self, "_" + word.replace("-", "_"))()
        return found

    @property
    def _gone(self) -> Floats:
        return np.where(np.isfinite(self.finish), self.finish, np.maximum(self.end, self.arrival))

    @property
    def _chosen(self) -> Bools:
        return np.ones(len(self.arrival), dtype=bool) if self.counted is None else self.counted

    @property
    def _kept(self) -> Bools:
        """The jobs that count and were not lost."""
        return self._chosen if self.lost is None else self._chosen & ~self.lost

    @property
    def _jct(self) -> Floats:
        return (self._gone - self.arrival)[self._kept]

    def _mean_jct(self) -> float:
        jct = self._jct
        return float(jct.mean()) if jct.size else math.nan

    def _p95_jct(self) -> float:
        jct = self._jct
        return float(np.quantile(jct, 0.95)) if jct.size else math.nan

    def _responsiveness(self) -> float:
        started = np.where(np.isfinite(self.first_start), self.first_start, self._gone)
        waited = (started - self.arrival)[self._kept]
        return float(waited.mean()) if waited.size else math.nan

    def _makespan(self) -> float:
        kept = self._kept
        return float(self._gone[kept].max() - self.arrival[self._chosen].min()) if kept.any() else math.nan

    def _worst_rho(self) -> float:
        """Finish-time fairness by ``share``: completion time over that in an equal part of the cluster."""
        kept, gone = self._kept & (self.duration > 0), self._gone
        if not kept.any() or self.devices <= 0:
            return math.nan
        there = np.ones(len(gone), dtype=bool) if self.lost is None else ~self.lost | np.isfinite(self.finish)
        present = mean_present(self.arrival[there], gone[there], self.arrival[kept], gone[kept])
        ideal = self.duration[kept] * np.maximum(1.0, self.gpus[kept] * present / self.devices)
        return float(((gone - self.arrival)[kept] / ideal).max())

    def _deadlines(self) -> float:
        """The share of deadlines that were missed, of those met or missed; one that lies beyond the end is open."""
        if self.deadline is None:
            return math.nan
        due = self._chosen & np.isfinite(self.deadline)
        done = np.isfinite(self.finish) if self.lost is None else np.isfinite(self.finish) & ~self.lost
        in_time = self.finish <= self.deadline if self.met is None else self.met
        lost = np.zeros(len(due), dtype=bool) if self.lost is None else self.lost
        missed = np.where(done, ~in_time, lost | (self.deadline < self.end))
        judged = due & (done | missed)
        return float(missed[judged].mean()) if judged.any() else math.nan

    def _dollars(self) -> float:
        return self.dollars

    def _kwh(self) -> float:
        return self.kwh
