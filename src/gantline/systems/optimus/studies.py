"""Optimus (Peng et al., EuroSys 2018), section 6: parameter servers and workers by marginal gain, or by dominant shares."""

from __future__ import annotations

import polars as pl

from gantline.lab.experiment.reproduction import RATE, Case, Claim, Grid, PolicyChoice, Scale, Study, claim_terms, elastic_setting

_PUBLISHED = 2.39


class OptimusDrfStudy(Study):
    """Optimus with everything fitted online, and DRF, on the same cluster."""

    name = "optimus-drf"
    paper = "Peng et al.: Optimus: An Efficient Dynamic Resource Scheduler for Deep Learning Clusters (EuroSys 2018)"
    figure = "Section 6: average JCT and makespan of Optimus and DRF"
    what = (
        "40 jobs with parameter servers on 16 nodes of 4 GPUs, 32 CPUs and 96 GB, 1 to 17 hours on one server and one worker "
        "(log-uniform), half of them synchronous; speeds are those of ResNet-50 in the paper, each term times 0.5 to 2, and 20 to 100 "
        "epochs. Nodes are joined by 1 Gb/s, and servers and workers on one node exchange at 10 GB/s. Decisions every 600 s, 30 s for "
        "every change. DRF balances its tasks over the nodes, as Kubernetes does by default. Optimus knows six short runs of "
        "each job and what the job reports, both off by 2 %. The paper's jobs are not published; network and seats of DRF are our "
        "assumption (with blocks for both and no links, DRF's mean JCT was 1.30 and 1.25 times Optimus')."
    )
    load = RATE
    load_unit = "jobs/h"

    terms = claim_terms(
        {
            "Optimus has a lower average JCT than DRF": ("DRF", "none, at both loads"),
            "and a shorter makespan": ("DRF", "none, at both loads"),
            "equal blocks on few nodes beat balanced seats": ("Optimus with balanced seats", "none, at both loads"),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        jobs, links = 40 if scale == "full" else 16, "links:10/0.125/0.125"
        base = elastic_setting(cluster=f"gpu:16x4/32c/96g,{links}", curves="servers", jobs=jobs, most=32, shortest=3600, longest=60_000)
        base = base.with_value("round", None).with_value("costs", "30").with_value("trace.sizes", "1:0.5,2:0.3,4:0.2")
        seeds = (0, 1, 2, 3, 4) if scale == "full" else (0,)
        balanced = {"seats": "spread"}
        drf, apart = PolicyChoice("optimus.drf", balanced, "DRF"), PolicyChoice("optimus", balanced, "optimus, balanced")
        return Grid(base, (PolicyChoice("optimus"), drf, apart), seeds=seeds, vary={RATE: (4, 8)}).cases()

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        rows = list(self.table(results).iter_rows(named=True))
        jct, apart = ([row[f"JCT s, {name}"] / row["JCT s, optimus"] for row in rows] for name in ("DRF", "optimus, balanced"))
        span = [row["makespan s, DRF"] / row["makespan s, optimus"] for row in rows]
        without = ", ".join(f"{ratio:.2f} times" for ratio in apart)
        text = ", ".join(f"{ratio:.2f} times" for ratio in jct)
        claims = [
            Claim("Optimus has a lower average JCT than DRF", "lower", f"DRF's is {text} as high", min(jct) > 1.0),
            Claim("and a shorter makespan", "shorter", f"{', '.join(f'{ratio:.2f} times' for ratio in span)}", min(span) > 1.0),
            Claim("equal blocks on few nodes beat balanced seats", "lower JCT", f"{without} as high without", min(apart) > 1.0),
        ]
        if scale == "full":
            claims += [
                Claim.number("average JCT, DRF over Optimus, mean of the loads", _PUBLISHED, sum(jct) / len(jct)),
                Claim.number("makespan, DRF over Optimus, mean of the loads", 1.63, sum(span) / len(span)),
            ]
        return claims

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        means = results.group_by("policy", RATE).agg(pl.col("jct_mean", "makespan").mean()).pivot("policy", index=RATE).sort(RATE)
        names = ("optimus", "DRF", "optimus, balanced")
        return means.select(
            pl.col(RATE).alias("jobs/h"),
            *(pl.col(f"jct_mean_{name}").alias(f"JCT s, {name}") for name in names),
            *(pl.col(f"makespan_{name}").alias(f"makespan s, {name}") for name in names),
        )
