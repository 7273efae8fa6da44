"""ElasticFlow (Gu et al., ASPLOS 2023), section 6: deadlines met with and without elasticity and admission."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from gantline.lab.experiment.reproduction import (
    Case,
    Claim,
    Grid,
    PolicyChoice,
    Scale,
    Setting,
    Study,
    TraceSource,
    claim_terms,
    mean_by_policy,
)

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

    name = "elasticflow-ablation"
    paper = PAPER
    figure = "Section 6: deadline satisfactory ratio of ElasticFlow, its ablations and EDF"
    what = (
        "The published trace of 195 jobs with its table of speeds on 64, 128 and 256 GPUs, every start and change of size 30 s. All "
        "policies stop at the knee of a job's curve; in the artifact EDF goes beyond it, pays no overhead and loses most of its deadlines "
        "to that."
    )
    needs = "trace_195.csv.gz"
    needs_from = "the repository pkusys/ElasticFlow, with its table of A100 speeds beside it as A100.csv"

    terms = claim_terms(
        {
            "ElasticFlow meets more deadlines than EDF": ("EDF", "none, on every cluster"),
            "on 128 GPUs so many times more than a baseline": ("EDF", "within the published range, which is over all baselines"),
            "and no fewer than with one of its two parts left out": (
                "the better of elasticity alone and admission alone",
                "none; strictly more on the smallest cluster",
            ),
            "each part alone is better than neither": ("EDF", "none, on every cluster"),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        path = self.needed()
        settings: dict[str, Any] = {"throughputs": str(self.file_of("A100.csv"))} | ({} if scale == "full" else {"first": 120})
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


# ElasticFlow (Gu et al., ASPLOS 2023) on jobs of Microsoft's clusters: deadlines met with and without its two parts.

_OTHERS = {"edf": "than EDF", "edf, admission": "than EDF with admission", "elasticflow, all let in": "than elasticity without admission"}
_CLUSTERS = ("03", "06")


class ElasticFlowClusters(Study):
    """ElasticFlow, each of its two parts alone, and neither, on two real clusters' jobs."""

    name = "elasticflow-clusters"
    paper = PAPER
    figure = "Section 6: deadline satisfactory ratio of ElasticFlow, its ablations and EDF, on production traces"
    what = (
        "The first 300 jobs of Microsoft's clusters 03 and 06 on 64, 128 and 256 GPUs, as ElasticFlow's own simulator counts (slots of "
        "240 s), with newcomers one by one and all policies stopping at the knee. Models, iterations and deadlines are drawn five "
        "times as its generator draws them; numbers are means over the draws, and all are judged by the ends that the simulator "
        "records. Cluster 10 is left out: it is so idle that its EDF, which pays no overhead in that simulator, is ahead of all others."
    )
    needs = "raw_cluster03.csv.gz"
    needs_from = "the repository microsoft/elasticflow-traces (and raw_cluster06.csv.gz), with ElasticFlow's A100.csv"

    terms = claim_terms(
        {
            "ElasticFlow meets more deadlines than EDF": ("EDF", "none, on every cluster"),
            "ElasticFlow meets more deadlines than EDF with admission": ("EDF with admission", "none, on every cluster"),
            "ElasticFlow meets more deadlines than elasticity without admission": (
                "ElasticFlow without admission",
                "none, on every cluster",
            ),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        path = self.needed()
        jobs, seeds = (300, (0, 1, 2, 3, 4)) if scale == "full" else (100, (0,))
        sizes = ("a100:8x8", "a100:16x8", "a100:32x8")[: 3 if scale == "full" else 2]
        found: list[Case] = []
        for cluster in _CLUSTERS:
            settings = {"throughputs": str(self.file_of("A100.csv")), "first": jobs}
            source = TraceSource(file=str(path.with_name(f"raw_cluster{cluster}.csv.gz")), format="elasticflow", settings=settings)
            base = Setting(source, "a100:8x8", "elasticflow", regime="elasticflow", round=240.0)
            grid = Grid(base, POLICIES, vary={"cluster": sizes, "trace.seed": seeds})
            found += [replace(case, axes={"jobs of": cluster, **case.axes}) for case in grid.cases()]
        return found

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        rows = self.table(results).to_dicts()
        found = []
        for other, words in _OTHERS.items():
            more = {row["cluster and GPUs"]: row[WHOLE] - row[other] for row in rows}
            text = ", ".join(f"{100 * points:+.0f} on {place}" for place, points in more.items())
            found.append(Claim(f"ElasticFlow meets more deadlines {words}", "more", f"points: {text}", min(more.values()) > 0.0))
        return found

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        gpus = pl.col("cluster").str.extract(r"(\d+)x8").cast(pl.Int64).mul(8)
        place = pl.format("{}: {}", pl.col("jobs of"), gpus.cast(pl.String).str.zfill(3))
        met = results.select(
            place.alias("cluster and GPUs"), "policy", (1.0 - pl.col("deadline_misses") / pl.col("deadlines")).alias("met")
        )
        return mean_by_policy(met, "cluster and GPUs", "met").select("cluster and GPUs", WHOLE, *list(_OTHERS)[::-1])
