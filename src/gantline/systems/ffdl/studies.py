"""FfDL's elastic optimizer (Saxena et al., MASCOTS 2020): the batch size follows the number of GPUs, or stays as it is."""

from __future__ import annotations

import polars as pl

from gantline.lab.experiment.reproduction import RATE, Case, Claim, Grid, PolicyChoice, Scale, Study, claim_terms, elastic_setting

_RATES = (5, 60)
_ADAPTIVE, _FIXED = "adaptive batch", "fixed batch"


class FfdlBatch(Study):
    """The dynamic program over batch and GPUs, and over GPUs alone."""

    name = "ffdl-batch"
    paper = "Saxena et al.: Effective Elastic Scaling of Deep Learning Workloads (MASCOTS 2020)"
    figure = "Jobs completed and average completion time, elastic scaling with and without a batch that follows"
    what = (
        "40 GPUs (5x8), jobs of 300 to 30,000 s on one GPU with batches from their own (16 to 64) up to 16 times that, 4 times on one GPU; "
        "half of them exchange ten times as much per step as the others. Poisson arrivals over four hours at a low and at a high rate, "
        "30 s for every start and change; jobs completed within six hours. The paper's jobs are not published."
    )
    load = RATE
    load_unit = "jobs/h"

    terms = claim_terms(
        {
            "at high load more jobs are completed": ("the fixed batch", "at least 1.1 times, in every seed"),
            "at low load no fewer are": ("the fixed batch", "none, in every seed"),
            "those that complete take less time": ("the fixed batch", "none, at both loads"),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        policies = (PolicyChoice("ffdl", {"batch": "adaptive"}, _ADAPTIVE), PolicyChoice("ffdl", {"batch": "fixed"}, _FIXED))
        seeds = (0, 1, 2, 3, 4) if scale == "full" else (0,)
        found = []
        for rate in _RATES:
            hours = 4 if scale == "full" else 3
            base = elastic_setting(cluster="gpu:5x8", curves="steps", shortest=300, longest=30_000, jobs=hours * rate)
            base = base.with_value("costs", "30").with_value("round", None).with_value("until", 6 * 3600.0)
            found += Grid(base, policies, seeds=seeds, vary={RATE: (rate,)}).cases()
        return found

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        low, high = _RATES
        done = {(row[0], int(row[1]), int(row[2])): int(row[3]) for row in results.select("policy", RATE, "seed", "completed").iter_rows()}
        seeds = sorted({seed for _, _, seed in done})
        more = [done[_ADAPTIVE, high, seed] / done[_FIXED, high, seed] for seed in seeds]
        few = [done[_ADAPTIVE, low, seed] - done[_FIXED, low, seed] for seed in seeds]
        sooner = [row["sooner"] for row in self.table(results).iter_rows(named=True)]
        return [
            Claim(
                "at high load more jobs are completed",
                "up to 2 times as many",
                f"{min(more):.2f} to {max(more):.2f} times as many",
                min(more) > 1.1,
            ),
            Claim("at low load no fewer are", "as many", f"{min(few):+d} to {max(few):+d} jobs", min(few) >= 0),
            Claim(
                "those that complete take less time",
                "up to 10 times less",
                f"{min(sooner):.2f} to {max(sooner):.2f} times less",
                min(sooner) > 1.0,
            ),
            Claim.number("jobs completed at high load, at most", 2, max(more)),
            Claim.number("time to complete, shorter at most", 10, max(sooner)),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        means = results.group_by("policy", RATE).agg(pl.col("completed", "jct_mean").mean()).pivot("policy", index=RATE)
        return means.select(
            pl.col(RATE).alias("jobs/h"),
            *(pl.col(f"completed_{name}").alias(f"completed, {name}") for name in (_ADAPTIVE, _FIXED)),
            *(pl.col(f"jct_mean_{name}").alias(f"JCT s, {name}") for name in (_ADAPTIVE, _FIXED)),
            sooner=pl.col(f"jct_mean_{_FIXED}") / pl.col(f"jct_mean_{_ADAPTIVE}"),
        ).sort("jobs/h")
