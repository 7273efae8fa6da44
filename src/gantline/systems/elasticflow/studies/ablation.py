"""ElasticFlow (Gu et al., ASPLOS 2023), section 6: deadlines met with and without elasticity and admission, by size of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale, Study
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource

WHOLE, _OPEN, _GATED, _EDF = "elasticflow", "elasticflow, all let in", "edf, admission", "edf"
PAPER = "Gu et al.: ElasticFlow, An Elastic Serverless Training Platform for Distributed Deep Learning (ASPLOS 2023)"
POLICIES = (
    PolicyChoice("elasticflow", {"admission": "single"}, WHOLE),
    PolicyChoice("elasticflow", {"admission": "off"}, _OPEN),
    PolicyChoice("edf", {"admission": "single"}, _GATED),
    PolicyChoice("edf", {"admission": "off"}, _EDF),
)


class ElasticFlowAblation(Study):
    """ElasticFlow, each of its two parts alone, and neither, on 64, 128 and 256 GPUs."""

    name: ClassVar[str] = "elasticflow-ablation"
    paper: ClassVar[str] = PAPER
    figure: ClassVar[str] = "Section 6: deadline satisfactory ratio of ElasticFlow, its ablations and EDF"
    what: ClassVar[str] = (
        "The published trace of 195 jobs with its table of speeds on 64, 128 and 256 GPUs, every start and change of size 30 s. All "
        "policies stop at the knee of a job's curve; in the artifact EDF goes beyond it, pays no overhead and loses most of its deadlines "
        "to that."
    )
    needs: ClassVar[str] = "trace_195.csv.gz"
    needs_from: ClassVar[str] = "the repository pkusys/ElasticFlow, with its table of A100 speeds beside it as A100.csv"

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "ElasticFlow meets more deadlines than EDF": ClaimTerms("EDF", "none, on every cluster"),
        "on 128 GPUs so many times more than a baseline": ClaimTerms("EDF", "within the published range, which is over all baselines"),
        "and no fewer than with one of its two parts left out": ClaimTerms(
            "the better of elasticity alone and admission alone", "none; strictly more on the smallest cluster"
        ),
        "each part alone is better than neither": ClaimTerms("EDF", "none, on every cluster"),
    }

    def cases(self, scale: Scale) -> list[Case]:
        path = self.needed()
        settings: dict[str, Any] = {"throughputs": str(self.beside("A100.csv"))} | ({} if scale == "full" else {"first": 120})
        source = TraceSource(file=str(path), format="elasticflow", settings=settings)
        clusters = ("a100:8x8", "a100:16x8", "a100:32x8") if scale == "full" else ("a100:8x8", "a100:16x8")
        return Grid(Setting(source, clusters[0], "elasticflow", costs="30"), POLICIES, vary={"cluster": clusters}).cases()

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        rows = {row["GPUs"]: row for row in self.table(results).iter_rows(named=True)}
        over = {gpus: row[WHOLE] / row[_EDF] for gpus, row in rows.items()}
        parts = {gpus: min(row[WHOLE] - row[_OPEN], row[WHOLE] - row[_GATED]) for gpus, row in rows.items()}
        both = {gpus: min(row[_OPEN], row[_GATED]) / row[_EDF] for gpus, row in rows.items()}
        smallest = min(rows)
        return [
            Claim(
                "ElasticFlow meets more deadlines than EDF",
                "more",
                ", ".join(f"{ratio:.2f} times on {gpus} GPUs" for gpus, ratio in over.items()),
                min(over.values()) > 1.0,
            ),
            Claim(
                "on 128 GPUs so many times more than a baseline",
                "1.46 to 7.65 times",
                f"{over[128]:.2f} times EDF",
                1.46 <= over[128] <= 7.65,
            ),
            Claim(
                "and no fewer than with one of its two parts left out",
                "more",
                ", ".join(f"{100 * more:+.1f} points on {gpus} GPUs" for gpus, more in parts.items()),
                min(parts.values()) >= 0.0 and parts[smallest] > 0.0,
            ),
            Claim(
                "each part alone is better than neither",
                "better",
                f"at least {min(both.values()):.2f} times as many",
                min(both.values()) > 1.0,
            ),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        met = results.select(
            pl.col("cluster").str.extract(r"(\d+)x8").cast(pl.Int64).mul(8).alias("GPUs"),
            "policy",
            (1.0 - pl.col("deadline_misses") / pl.col("deadlines")).alias("met"),
        )
        return met.pivot("policy", index="GPUs", values="met").sort("GPUs")
