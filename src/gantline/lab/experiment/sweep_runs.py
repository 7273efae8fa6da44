"""The runs of a sweep as values: its cases, and how each ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gantline.lab.experiment.grid import Case
from gantline.lab.experiment.outcome import FAILED
from gantline.lab.experiment.records import Record
from gantline.lab.experiment.results import results_frame


@dataclass(frozen=True, repr=False)
class SweepRuns:
    """A record per case, in the order of the grid: what comparisons, remarks and pages read."""

    cases: tuple[Case, ...]
    records: tuple[Record, ...]
    folder: Path
    reused: int

    @property
    def results(self) -> pl.DataFrame:
        """A row per case: axes, state, summary, metrics."""
        return results_frame(self.cases, self.records)

    @property
    def failures(self) -> list[tuple[Case, str]]:
        """The cases that failed, with their messages."""
        return [(case, record.message) for case, record in zip(self.cases, self.records) if record.state == FAILED]

    def jobs(self, case: Case) -> pl.DataFrame:
        """What happened to each job in a case; `tracked` marks those that count."""
        return self.records[self.cases.index(case)].jobs()
