"""Gavel, section 7.3: throughput for money, with and without deadlines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale
from gantline.lab.experiment.sweep import Sweep
from gantline.systems.gavel.studies.workload import GavelStudy

_PRICES = "v100=0.74,p100=0.43,k80=0.135"
_SUM, _COST, _SLO = "throughput", "throughput per cost", "throughput per cost, deadlines"


class GavelCost(GavelStudy):
    """What jobs with deadlines cost under three goals."""

    name: ClassVar[str] = "gavel-cost"
    figure: ClassVar[str] = "Section 7.3: money spent and deadlines missed under total throughput, cost, and cost with SLOs"
    what: ClassVar[str] = (
        "Poisson arrivals of jobs of one GPU with deadlines of 1.2, 2 or 10 times their duration on a V100; prices per hour 0.74 (V100), "
        "0.43 (P100) and 0.135 (K80), which the program has for one cloud (the spot prices of the paper are not in its repository). Rules "
        "as repaired: the program compares a duration with an instant, which counts no miss at all of jobs that arrive late."
    )

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "money as a goal saves money": ClaimTerms("the sum of throughputs as a goal", "none"),
        "and misses more deadlines than with deadlines as limits": ClaimTerms("money with deadlines as limits", "none"),
        "with deadlines it still saves money": ClaimTerms("the sum of throughputs as a goal", "none"),
    }

    def cases(self, scale: Scale) -> list[Case]:
        policies = (
            PolicyChoice("gavel.max_sum_throughput_perf", {}, _SUM),
            PolicyChoice("gavel.max_sum_throughput_normalized_by_cost_perf", {}, _COST),
            PolicyChoice("gavel.max_sum_throughput_normalized_by_cost_perf_SLOs", {}, _SLO),
        )
        jobs = {"jobs": 400, "jobs_per_hour": 3.0} if scale == "full" else {"jobs": 60, "jobs_per_hour": 0.8}
        base = self.setting(scale, {**jobs, "slos": True}, prices=_PRICES)
        return Grid(base, policies, seeds=tuple(range(3 if scale == "full" else 2))).cases()

    def read(self, sweep: Sweep) -> pl.DataFrame:
        entries = [{"hash": case.hash, "cost": record.summary["cost"]} for case, record in zip(sweep.cases, sweep.records)]
        return super().read(sweep).join(pl.DataFrame(entries), on="hash")

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        cost, missed = ({row["policy"]: row[name] for row in self.table(results).iter_rows(named=True)} for name in ("cost", "missed %"))
        saved, kept = cost[_SUM] / cost[_COST], cost[_SUM] / cost[_SLO]
        return [
            Claim("money as a goal saves money", "1.4 times less", f"{saved:.2f} times less", saved > 1),
            Claim("and misses more deadlines than with deadlines as limits", "more", f"{missed[_COST]:.0f} % against {missed[_SLO]:.0f} %",
                  missed[_COST] > missed[_SLO]),
            Claim("with deadlines it still saves money", "1.2 times less", f"{kept:.2f} times less", kept > 1),
            Claim.number("cost, throughput over money as a goal", 1.4, saved),
            Claim.number("cost, throughput over money with deadlines", 1.2, kept),
        ]  # fmt: skip

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        share = 100 * pl.col("deadline_misses") / pl.col("deadlines")
        means = [pl.col("cost").mean(), share.mean().alias("missed %"), (pl.col("jct_mean") / 3600).mean().alias("JCT h")]
        return results.group_by("policy", maintain_order=True).agg(means)
