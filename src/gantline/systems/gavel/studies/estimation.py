"""Gavel, section 7.5 and Figure 14: what it costs to estimate how fast pairs of jobs are together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale
from gantline.lab.experiment.sweep import Sweep
from gantline.systems.gavel.studies.workload import GavelStudy, as_published

_ALONE, _MEASURED = "no sharing", "all measured"
_PAPER, _LEAST = (0.2, 16), (0.05, 4)  # part of the runs with reference jobs, number of those
_AMOUNTS = ((0.6, 16), _PAPER, (0.2, 8), _LEAST)


class GavelEstimation(GavelStudy):
    """Packed LAS that knows all pairs, and that estimates them from less and less profiling."""

    name: ClassVar[str] = "gavel-estimation"
    figure: ClassVar[str] = "Figure 14: average JCT with the throughput estimator, continuous trace, jobs of one GPU"
    what: ClassVar[str] = (
        "Gavel LAS with space sharing at 4.8 jobs/h, jobs 500 to 1000 tracked. A new job is profiled next to a part of the reference jobs, "
        "the rest of its row is completed and the nearest reference stands for it; a pair that has run is known from then on. The error is "
        "the mean difference of the ratio of speed together to speed alone, over all pairs, before anything has run. The program reads "
        "wrong columns when references are fewer than job types; here they are the right ones."
    )

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "estimates are nearly as good as measurements": ClaimTerms("all pairs measured", "10 % of the average JCT"),
        "less profiling, larger errors": ClaimTerms("20 % of 16 references", "none"),
    }

    def cases(self, scale: Scale) -> list[Case]:
        policies = [as_published(_ALONE, "max_min_fairness_perf"), as_published(_MEASURED, "max_min_fairness_packed")]
        for part, count in _AMOUNTS if scale == "full" else (_PAPER, _LEAST):
            policies.append(as_published(_title(part, count), "max_min_fairness_packed", profiling=part, references=count))
        jobs, load, track = (1400, 4.8, (500, 1000)) if scale == "full" else (70, 1.8, (15, 45))
        base = self.setting(scale, {"jobs": jobs, "jobs_per_hour": load}, track=track)
        return Grid(base, tuple(policies), seeds=tuple(range(3 if scale == "full" else 2))).cases()

    def read(self, sweep: Sweep) -> pl.DataFrame:
        summaries = ((case.hash, record.summary) for case, record in zip(sweep.cases, sweep.records))
        entries = [{"hash": key, "error": summary.get("estimation_error", 0.0)} for key, summary in summaries]
        return super().read(sweep).join(pl.DataFrame(entries), on="hash")

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        jct, error = ({row["policy"]: row[name] for row in self.table(results).iter_rows(named=True)} for name in ("JCT h", "error"))
        paper, least = _title(*_PAPER), _title(*_LEAST)
        cost = jct[paper] / jct[_MEASURED] - 1
        found = f"{100 * cost:+.1f} % JCT with {paper}"
        errors = f"{error[paper]:.3f}, with {least} {error[least]:.3f}"
        return [
            Claim("estimates are nearly as good as measurements", "close to the oracle", found, abs(cost) < 0.1),
            Claim("less profiling, larger errors", "–", errors, bool(error[paper] < error[least])),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        means = [
            pl.col("error").mean(),
            (pl.col("jct_mean") / 3600).mean().alias("JCT h"),
            (pl.col("makespan") / 3600).mean().alias("end h"),
        ]
        return results.group_by("policy", maintain_order=True).agg(means)


def _title(part: float, count: int) -> str:
    return f"{100 * part:g} % of {count} references"
