"""AlloX (Le et al., EuroSys 2020), section 6: mean completion time against fairness by alpha, and against other schedulers by load.

The cluster and the jobs are those of its simulations: GPUs and CPU nodes, ten users, estimates that err.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale, Study
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import Sweep
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.report.figures import Chart
from gantline.lab.report.figures.panels import Axis, Line, Panel, Points, floats

USERS = tuple(f"user{number:02d}" for number in range(1, 11))
RATE = "trace.jobs_per_hour"
_ALPHAS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
_FAIR = ("drf", "drf-ext", "drf-fifo", "es")
_POLICIES = (
    PolicyChoice("allox", {"alpha": 1.0}, "allox alpha=1"),
    PolicyChoice("allox", {"alpha": 0.5}, "allox alpha=0.5"),
    PolicyChoice("allox.srpt", name="srpt"),
    PolicyChoice("allox.sjf", name="sjf"),
    *(PolicyChoice(policy) for policy in _FAIR),
)
_PUBLISHED_GAIN = 0.95


def allox_setting(jobs: int, *, rate: float = 2400.0, skew: float = 0.0) -> Setting:
    """Twenty GPUs and twenty CPU nodes; the workload is generated, with estimates off by a tenth."""
    source = TraceSource(generator="hybrid", settings={"jobs": jobs, "jobs_per_hour": rate, "skew": skew})
    return Setting(source, machines(20), "allox", estimates="declared")


def machines(of_each: int) -> str:
    """So many GPUs and so many CPU nodes."""
    return f"gpu:{of_each}x1/2c/64g,cpu:{of_each}x0/32c/64g"


class AlloXAlpha(Study):
    """Alpha from 0.1 to 1 where users differ, and every user alone on a tenth of the machines."""

    name: ClassVar[str] = "allox-alpha"
    paper: ClassVar[str] = "Le, Sun, Chowdhury, Liu: AlloX, Compute Allocation in Hybrid Clusters (EuroSys 2020)"
    figure: ClassVar[str] = "Section 6: what the fairness knob alpha costs in average JCT"
    what: ClassVar[str] = (
        "AlloX on 20 GPUs and 20 CPU nodes, jobs like those of its simulator, estimates off by a tenth. Users must differ for fairness to "
        "matter, so the first of ten submits ten times as much as the last (the original's users submit alike). The worst user is the one "
        "whose mean JCT is largest against what it has alone on a tenth of the machines; below 1 nobody loses by sharing. The paper's "
        "curve is not published as numbers: its shape is held against."
    )

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "the average JCT is lower at alpha 1 than at alpha 0.1": ClaimTerms("alpha 0.1", "none"),
        "the worst user fares better at alpha 0.1 than at alpha 1": ClaimTerms("alpha 1", "none"),
        "at alpha 0.1 nobody loses much by sharing": ClaimTerms("the worst user's JCT alone on its part", "10 %"),
    }

    def cases(self, scale: Scale) -> list[Case]:
        jobs, alphas, seeds = (3000, _ALPHAS, (0, 1, 2)) if scale == "full" else (600, (0.1, 0.5, 1.0), (0,))
        base = allox_setting(jobs, skew=1.0)
        together = Grid(base, tuple(PolicyChoice("allox", {"alpha": alpha}, f"alpha {alpha:g}") for alpha in alphas), seeds=seeds)
        tenth = replace(base, cluster=machines(2))
        found = together.cases()
        for user in USERS:
            alone = PolicyChoice("allox", {"alpha": 1.0}, f"{user} alone")
            found += Grid(tenth.with_value("trace.only", user), (alone,), seeds=seeds).cases()
        return found

    def read(self, sweep: Sweep) -> pl.DataFrame:
        """Mean over seeds of mean JCT and of the worst user's JCT against its own alone, a row per alpha."""
        rows = []
        for case in sweep.cases:
            jobs = sweep.jobs(case)
            rows += [
                {"policy": case.policy, "seed": case.axes["seed"], "user": user, "jct": jct, "jobs": count}
                for user, jct, count in jobs.group_by("user").agg(pl.col("jct").mean(), count=pl.len()).iter_rows()
            ]
        frame = pl.DataFrame(rows)
        alone = frame.filter(pl.col("policy").str.ends_with("alone")).select("user", "seed", alone="jct")
        shared = frame.filter(pl.col("policy").str.starts_with("alpha")).join(alone, on=["user", "seed"])
        per_run = shared.group_by("policy", "seed").agg(
            jct_mean=(pl.col("jct") * pl.col("jobs")).sum() / pl.col("jobs").sum(),
            worst=(pl.col("jct") / pl.col("alone")).max(),
            losing=(pl.col("jct") > 1.05 * pl.col("alone")).sum(),
        )
        alpha = pl.col("policy").str.strip_prefix("alpha ").cast(pl.Float64).alias("alpha")
        return per_run.group_by("policy").agg(pl.col("jct_mean", "worst", "losing").mean()).with_columns(alpha).sort("alpha")

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        fair, fast = results.row(0, named=True), results.row(-1, named=True)
        return [
            Claim(
                "the average JCT is lower at alpha 1 than at alpha 0.1",
                "lower",
                f"{fast['jct_mean']:.1f} s against {fair['jct_mean']:.1f} s",
                fast["jct_mean"] < fair["jct_mean"],
            ),
            Claim(
                "the worst user fares better at alpha 0.1 than at alpha 1",
                "better",
                f"{fair['worst']:.2f} against {fast['worst']:.2f} times its JCT alone",
                fair["worst"] < fast["worst"],
            ),
            Claim(
                "at alpha 0.1 nobody loses much by sharing",
                "fair",
                f"{fair['losing']:.1f} of 10 users more than 5 % above their JCT alone; {fast['losing']:.1f} at alpha 1",
                fair["worst"] < 1.1,
            ),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        return results.select(
            "alpha",
            pl.col("jct_mean").alias("mean JCT s"),
            pl.col("worst").alias("worst user's JCT over its JCT alone"),
            pl.col("losing").alias("users 5 % worse off than alone"),
        )

    def charts(self, sweep: Sweep) -> list[Chart]:
        found = self.read(sweep)
        x, y = floats(found["jct_mean"].to_numpy()), floats(found["worst"].to_numpy())
        names = tuple(f"{alpha:g}" for alpha in found["alpha"].to_list())
        layers = (Line("alpha", x, y, colour=0), Points("alpha", x, y, colour=0, texts=names))
        panel = Panel(Axis("mean JCT", "s"), Axis("worst user's JCT over its JCT alone"), layers)
        return [Chart("allox-alpha", "Mean JCT against fairness, by alpha", (panel,))]


class AlloXBaselines(Study):
    """AlloX, SJF, SRPT, three forms of DRF and equal shares from a calm to an overfull cluster."""

    name: ClassVar[str] = "allox-baselines"
    paper: ClassVar[str] = "Le, Sun, Chowdhury, Liu: AlloX, Compute Allocation in Hybrid Clusters (EuroSys 2020)"
    figure: ClassVar[str] = "Section 6: average JCT of AlloX and its baselines against load"
    what: ClassVar[str] = (
        "AlloX and the baselines of its paper on 20 GPUs and 20 CPU nodes, jobs like those of its simulator from ten users that "
        "submit alike, estimates off by a tenth, nothing profiled. The baselines are what the paper means by them, not the slips of its "
        "simulator; those are in the regime irfsim. The paper's loads are not published, so the best gain over all of ours is compared."
    )
    load: ClassVar[str] = RATE
    load_unit: ClassVar[str] = "jobs/h"

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "with alpha 1 AlloX has the lowest average JCT of those that do not preempt": ClaimTerms(
            "the best of SJF, DRF, DRF extended, DRF-FIFO and ES", "none, at every load"
        ),
        "with alpha 0.5 it is below all schedulers that share fairly": ClaimTerms(
            "the best of DRF, DRF extended, DRF-FIFO and ES", "none, at every load"
        ),
        "SRPT, which preempts and moves for nothing, is ahead in a calm cluster": ClaimTerms(
            "AlloX with alpha 1", "none, at the lowest load"
        ),
    }

    def cases(self, scale: Scale) -> list[Case]:
        jobs, rates = (3000, (1200.0, 1800.0, 2400.0, 3000.0)) if scale == "full" else (250, (1200.0, 3000.0))
        return Grid(allox_setting(jobs), _POLICIES, vary={RATE: rates}).cases()

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        jct = {rate: dict(rows.select("policy", "jct_mean").iter_rows()) for (rate,), rows in results.group_by(RATE)}
        fastest = min(min(found[name] for name in ("sjf", *_FAIR)) / found["allox alpha=1"] for found in jct.values())
        fair = min(min(found[name] for name in _FAIR) / found["allox alpha=0.5"] for found in jct.values())
        against = {rate: found["allox alpha=1"] / found["srpt"] for rate, found in jct.items()}
        calm, full = min(against), max(against)
        gain = max(1 - found["allox alpha=0.5"] / found["drf-fifo"] for found in jct.values())
        entries = [
            Claim(
                "with alpha 1 AlloX has the lowest average JCT of those that do not preempt",
                "lowest",
                f"the next one is at least {fastest:.2f} times as high",
                fastest > 1,
            ),
            Claim(
                "with alpha 0.5 it is below all schedulers that share fairly",
                "below",
                f"the next one is at least {fair:.2f} times as high",
                fair > 1,
            ),
            Claim(
                "SRPT, which preempts and moves for nothing, is ahead in a calm cluster",
                "ahead",
                f"AlloX is {against[calm]:.2f} times as high at {calm:g} jobs/h, {against[full]:.2f} times at {full:g}",
                against[calm] > 1,
            ),
        ]
        if scale == "full":
            entries.append(
                Claim.number("average JCT, DRF-FIFO over AlloX at the load where that is most", 1 / (1 - _PUBLISHED_GAIN), 1 / (1 - gain))
            )
        return entries

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        return results.rename({RATE: "jobs/h"}).pivot("policy", index="jobs/h", values="jct_mean")
