"""Gavel, Figure 10: finish-time fairness with and without knowing speeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale
from gantline.lab.experiment.sweep import Sweep
from gantline.systems.gavel.studies.workload import LOAD, GavelStudy, ahead, as_published, hours, near_stored, table_of

_ISOLATED = "isolated"


class GavelFinishTime(GavelStudy):
    """Themis' objective by Gavel's programs, and the ratio to a part of the cluster of one's own."""

    name: ClassVar[str] = "gavel-finish-time"
    figure: ClassVar[str] = "Figure 10: average JCT and finish-time fairness (rho), continuous trace, gangs of one to eight GPUs"
    what: ClassVar[str] = (
        "As gavel-multi, under finish-time fairness. Rho is what the authors' notebooks compute: a job's completion time over that of the "
        "same job in the same trace when everybody has the m-th part of the cluster (policy isolated)."
    )
    stored: ClassVar[dict[str, dict[float, float]]] = {
        "FTF": {0.4: 25.92, 2.0: 28.87},
        "Gavel FTF": {0.4: 18.57, 2.0: 21.80},
    }

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "knowing speeds shortens jobs": ClaimTerms("FTF", "at least 1.2 times at the highest load"),
        "and is fairer": ClaimTerms("FTF", "mean rho at least 1.2 times lower at the highest load"),
        "no job is worse off on average than on a part of its own": ClaimTerms("an equal part of the cluster", "none: mean rho below 1"),
        "average JCT, FTF over Gavel FTF at 2.6 jobs/h": ClaimTerms("the paper's figure", "10 %"),
        "mean rho, FTF over Gavel FTF at 2.6 jobs/h": ClaimTerms("the paper's figure", "10 %"),
    }
    number_terms: ClassVar[ClaimTerms] = ClaimTerms("numbers stored with the authors' program", "5 %")

    def cases(self, scale: Scale) -> list[Case]:
        jobs, track = (6500, (4000, 5000)) if scale == "full" else (120, (40, 80))
        policies = (
            as_published("FTF", "finish_time_fairness", tie="central"),
            as_published("Gavel FTF", "finish_time_fairness_perf", tie="central"),
            as_published(_ISOLATED, "isolated"),
        )
        base = self.setting(scale, {"jobs": jobs, "multi_gpu": True}, track=track)
        return Grid(base, policies, vary={LOAD: (0.4, 2.0, 2.6) if scale == "full" else (0.2, 0.5)}).cases()

    def read(self, sweep: Sweep) -> pl.DataFrame:
        alone = {case.axes[LOAD]: _jct(sweep, case) for case in sweep.cases if case.policy == _ISOLATED}
        rho: list[dict[str, Any]] = []
        for case in sweep.cases:
            both = _jct(sweep, case).join(alone[case.axes[LOAD]], on="job", suffix="_alone")
            rho.append({"hash": case.hash, "rho": (both["jct"] / both["jct_alone"]).mean()})
        return super().read(sweep).join(pl.DataFrame(rho), on="hash")

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        found = hours(results, LOAD)
        rho = {name: dict(rows.select(LOAD, "rho").iter_rows()) for (name,), rows in results.group_by("policy")}
        worst = max(rho["Gavel FTF"].values())
        claims = [
            ahead("knowing speeds shortens jobs", found, "Gavel FTF", "FTF", "1.9 times at 2.6 jobs/h", 1.2),
            ahead("and is fairer", rho, "Gavel FTF", "FTF", "mean rho 0.79 against 1.40 at 2.6 jobs/h", 1.2),
            Claim("no job is worse off on average than on a part of its own", "mean rho below 1", f"at most {worst:.2f}", worst < 1),
        ]
        if scale == "small":
            return claims
        factors = [
            Claim.number("average JCT, FTF over Gavel FTF at 2.6 jobs/h", 1.9, found["FTF"][2.6] / found["Gavel FTF"][2.6]),
            Claim.number("mean rho, FTF over Gavel FTF at 2.6 jobs/h", 1.4 / 0.79, rho["FTF"][2.6] / rho["Gavel FTF"][2.6]),
        ]
        return [*claims, *factors, *near_stored(found, self.stored, "jobs/h")]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        rho = results.pivot("policy", index=LOAD, values="rho").rename(lambda name: f"rho {name}" if name != LOAD else "jobs per hour")
        return table_of(results, LOAD).join(rho.drop(f"rho {_ISOLATED}"), on="jobs per hour")


def _jct(sweep: Sweep, case: Case) -> pl.DataFrame:
    """Completion times of the tracked jobs."""
    return sweep.jobs(case).filter(pl.col("tracked") & pl.col("jct").is_finite()).select("job", "jct")
