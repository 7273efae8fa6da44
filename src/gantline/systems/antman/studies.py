"""AntMan (Xiao et al., OSDI 2020), sections 3.3 and 5: guests for whom the guaranteed jobs pay nothing."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from gantline.lab.experiment.reproduction import Case, Claim, Grid, PolicyChoice, Scale, Setting, Study, Sweep, TraceSource, claim_terms

_ALONE, _ANTMAN, _PACKED = "without guests", "antman", "no protection"
_UNNOTICED = "guaranteed jobs end as if there were no guests"
_EACH = "no guaranteed job runs longer than alone"
_NEEDED = "without protection they do not"
_FOR_FREE = "guests get work done for free"
_WITHIN = 0.03


class AntManGuests(Study):
    """Guaranteed jobs with and without guests, and with guests whose shares nothing bounds."""

    name = "antman-guests"
    paper = "Xiao et al.: AntMan: Dynamic Scaling on GPU Clusters for Deep Learning (OSDI 2020)"
    figure = "Sections 3.3 and 5: guaranteed jobs as fast as alone, opportunistic jobs on what they leave idle"
    what = (
        "64 GPUs in nodes of 8, jobs of 1 to 8 GPUs and 20 minutes to 8 hours, seven in ten guaranteed; these use 30 to 70 % of their "
        "GPUs, every second one 90 % for half an hour in every hour. Three runs: the guaranteed jobs alone, AntMan, and AntMan with a "
        "tolerance so large that no guest is ever held back, as under plain packing. The paper's trace is not published; that packed "
        "kernels slow a host down by 2.5 times the excess is our figure."
    )
    load = "jobs/h"

    terms = claim_terms(
        {
            _UNNOTICED: ("the same jobs without guests", "mean JCT within 3 %"),
            _EACH: ("the same jobs without guests", "the longest run within 3 %"),
            _NEEDED: ("the same jobs without guests", "run times at least 1.5 times as long on average"),
            _FOR_FREE: ("the GPU-hours of the guaranteed jobs", "at least a tenth of them beside, before the last one ends"),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        full = scale == "full"
        settings = {"jobs": 120 if full else 40, "jobs_per_hour": 24 if full else 40}
        base = Setting(TraceSource(generator="antman", settings=settings), "8x8", "antman", performance="guests")
        alone = replace(base, trace=TraceSource(generator="antman", settings={**settings, "guests": False}))
        seeds = tuple(range(3)) if full else (0,)
        free = PolicyChoice("antman", {"tolerance": 1e9, "step": 1.0}, _PACKED)
        return [
            *Grid(alone, (PolicyChoice("antman", {}, _ALONE),), seeds=seeds).cases(),
            *Grid(base, (PolicyChoice("antman"), free), seeds=seeds).cases(),
        ]

    def read(self, sweep: Sweep) -> pl.DataFrame:
        """A row per run: means over the guaranteed jobs, and what guests did by the end of the last of these."""
        rows = []
        for case in sweep.cases:
            jobs = sweep.jobs(case).with_columns(hours=pl.col("duration") * pl.col("gpus") / 3600.0)
            hosts = jobs.filter(pl.col("job").str.starts_with("host"))
            last, run = hosts["finish"].max(), (pl.col("finish") - pl.col("first_start")) / pl.col("duration")
            free = jobs.filter(pl.col("job").str.starts_with("guest") & (pl.col("finish") <= last))["hours"].sum()
            facts = hosts.select(jct_mean=pl.col("jct").mean(), run=run.mean(), longest=run.max(), hours=pl.col("hours").sum())
            rows.append(facts.with_columns(policy=pl.lit(case.policy), free=pl.lit(float(free))))
        return pl.concat(rows)

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        row = {name: values.mean().row(0, named=True) for (name,), values in results.group_by("policy")}
        longer = row[_ANTMAN]["jct_mean"] / row[_ALONE]["jct_mean"] - 1
        worst = max(results.filter(pl.col("policy") == _ANTMAN)["longest"].to_list())
        packed, share = row[_PACKED]["run"], row[_ANTMAN]["free"] / row[_ANTMAN]["hours"]
        return [
            Claim(_UNNOTICED, "within 3 %", f"{100 * longer:+.1f} % mean JCT", longer <= _WITHIN),
            Claim(_EACH, "within 3 %", f"{worst:.3f} times its duration at most", worst <= 1 + _WITHIN),
            Claim(_NEEDED, "2 to 5 times", f"{packed:.2f} times their duration", packed >= 1.5),
            Claim(_FOR_FREE, "a third more compute in use", f"{100 * share:.0f} % of the guaranteed jobs' GPU-hours", share >= 0.1),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        return results.group_by("policy", maintain_order=True).agg(
            pl.col("jct_mean").mean().alias("guaranteed: mean JCT s"),
            pl.col("run").mean().alias("run time / duration"),
            pl.col("longest").max().alias("longest"),
            pl.col("free").mean().alias("guests: GPU-hours done"),
        )
