"""Elastic-Tiresias (Wu et al., TPDS 2022): what elasticity adds to Tiresias, and what the cost of a resize takes away again."""

from __future__ import annotations

from itertools import pairwise

import polars as pl

from gantline.lab.experiment.reproduction import (
    RATE,
    Case,
    Claim,
    Grid,
    PolicyChoice,
    Scale,
    Study,
    Sweep,
    claim_terms,
    elastic_setting,
    mean_by_policy,
)

_COSTS = (1, 30, 120)
_PLAIN, _GROWS = "voda.tiresias", "voda.elastic_tiresias"


class ElasticTiresiasStudy(Study):
    """Tiresias and Elastic-Tiresias where a change of size takes 1, 30 and 120 s."""

    name = "elastic-tiresias"
    paper = "Wu et al.: Elastic Deep Learning in Multi-Tenant GPU Clusters (TPDS 2022)"
    figure = "Average JCT of Elastic-Tiresias over Tiresias by the cost of a resize"
    what = (
        "150 jobs on 64 GPUs (8x8), 300 to 60,000 s on one GPU (log-uniform), asking for 1 to 8 GPUs and able to use 16, parallel parts "
        "of 0.80 to 0.99 (Amdahl), Poisson arrivals of 60 jobs/h. A resume after a preemption takes 30 s for both; a change of size takes "
        "1 s (a stop-free resize as EDL has it), 30 s (stop and resume) or 120 s, and a job grows only if that saves it more than 30 s. "
        "The paper's jobs are not published."
    )

    terms = claim_terms(
        {
            "Elastic-Tiresias has a lower average JCT than Tiresias": ("Tiresias", "none, at every cost"),
            "its gain falls as a resize takes longer": ("the next shorter resize", "none: strictly falling"),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        seeds = (0, 1, 2, 3, 4) if scale == "full" else (0,)
        base = elastic_setting(shortest=300, longest=60_000, jobs=150 if scale == "full" else 60).with_value(RATE, 60)
        policies = (PolicyChoice(_PLAIN), PolicyChoice(_GROWS, {"resize_cost": 30.0}, _GROWS))
        costs = [f"resume=30,resize={seconds},move={seconds}" for seconds in _COSTS]
        return Grid(base.with_value("round", None), policies, seeds=seeds, vary={"costs": costs}).cases()

    def read(self, sweep: Sweep) -> pl.DataFrame:
        results = super().read(sweep)
        return results.with_columns(pl.col("costs").str.extract(r"resize=(\d+)").cast(pl.Int64).alias("resize s"))

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        rows = self.table(results).iter_rows(named=True)
        gain = {row["resize s"]: row["gain"] for row in rows}
        text = ", ".join(f"{100 * value:.0f} % at {cost} s" for cost, value in gain.items())
        falls = all(gain[low] > gain[high] for low, high in pairwise(_COSTS))
        return [
            Claim("Elastic-Tiresias has a lower average JCT than Tiresias", "lower", text, min(gain.values()) > 0.0),
            Claim("its gain falls as a resize takes longer", "falls", text, falls),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        means = mean_by_policy(results, "resize s")
        return means.select("resize s", _PLAIN, _GROWS, gain=1.0 - pl.col(_GROWS) / pl.col(_PLAIN))
