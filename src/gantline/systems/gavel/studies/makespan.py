"""Gavel, section 7.3: makespan of a static trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale
from gantline.systems.gavel.studies.workload import GavelStudy, ahead, as_published, hours, near_stored, table_of

_JOBS = "trace.jobs"


class GavelMakespan(GavelStudy):
    """All jobs are there from the start; how long until the last has ended?"""

    name: ClassVar[str] = "gavel-makespan"
    figure: ClassVar[str] = "Section 7.3: makespan against the number of jobs, static trace, gangs of one to eight GPUs"
    what: ClassVar[str] = (
        "All jobs of Gavel's generator at time 0 on 36 V100, 36 P100 and 36 K80, seed 0. FIFO is the program's defective one, which "
        "promises V100s that are not there; that is a good part of its distance. The stored run of space sharing comes from an earlier "
        "version."
    )
    load: ClassVar[str] = _JOBS
    load_unit: ClassVar[str] = "jobs"
    stored: ClassVar[dict[str, dict[float, float]]] = {
        "FIFO": {100: 182, 300: 296, 500: 427},
        "Gandiva": {100: 167, 300: 200, 500: 264},
        "Gavel": {100: 161, 300: 161, 500: 169},
        "Gavel with space sharing": {100: 164},
    }

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "far shorter than FIFO": ClaimTerms("FIFO", "at least 1.5 times with most jobs"),
        "shorter than with random packing": ClaimTerms("Gandiva", "none, with most jobs"),
        "space sharing does not hurt": ClaimTerms("Gavel without it", "5 % with most jobs"),
    }
    number_terms: ClassVar[ClaimTerms] = ClaimTerms("numbers stored with the authors' program", "5 %")

    def cases(self, scale: Scale) -> list[Case]:
        policies = (
            as_published("FIFO", "fifo"),
            as_published("Gandiva", "gandiva"),
            as_published("Gavel", "min_total_duration_perf"),
        )
        packed = as_published("Gavel with space sharing", "min_total_duration_packed")
        base = self.setting(scale, {"mean_gap": 0.0, "multi_gpu": True})
        counts = (100, 300, 500) if scale == "full" else (20, 70)
        return Grid(base, policies, vary={_JOBS: counts}).cases() + Grid(base, (packed,), vary={_JOBS: counts[:1]}).cases()

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        found = hours(results, _JOBS, "makespan")
        claims = [
            ahead("far shorter than FIFO", found, "Gavel", "FIFO", "2.5 times at 500 and 700 jobs", 1.5),
            ahead("shorter than with random packing", found, "Gavel", "Gandiva", "1.56 times at 500 jobs", 1.0),
            ahead("space sharing does not hurt", found, "Gavel with space sharing", "Gavel", "0.98 times at 100, 1.08 at 700 jobs", 0.95),
        ]
        return claims + (near_stored(found, self.stored, "jobs") if scale == "full" else [])

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        return table_of(results, _JOBS, "makespan")
