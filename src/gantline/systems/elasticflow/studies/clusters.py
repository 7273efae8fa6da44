"""ElasticFlow (Gu et al., ASPLOS 2023) on jobs of Microsoft's clusters: deadlines met with and without its two parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale, Study
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource
from gantline.systems.elasticflow.studies.ablation import PAPER, POLICIES, WHOLE

_OTHERS = {"edf": "than EDF", "edf, admission": "than EDF with admission", "elasticflow, all let in": "than elasticity without admission"}
_CLUSTERS = ("03", "06")


class ElasticFlowClusters(Study):
    """ElasticFlow, each of its two parts alone, and neither, on two real clusters' jobs."""

    name: ClassVar[str] = "elasticflow-clusters"
    paper: ClassVar[str] = PAPER
    figure: ClassVar[str] = "Section 6: deadline satisfactory ratio of ElasticFlow, its ablations and EDF, on production traces"
    what: ClassVar[str] = (
        "The first 300 jobs of Microsoft's clusters 03 and 06 on 64, 128 and 256 GPUs, as ElasticFlow's own simulator counts (slots of "
        "240 s), with newcomers one by one and all policies stopping at the knee. Models, iterations and deadlines are drawn five "
        "times as its generator draws them; numbers are means over the draws, and all are judged by the ends that the simulator "
        "records. Cluster 10 is left out: it is so idle that its EDF, which pays no overhead in that simulator, is ahead of all others."
    )
    needs: ClassVar[str] = "raw_cluster03.csv.gz"
    needs_from: ClassVar[str] = "the repository microsoft/elasticflow-traces (and raw_cluster06.csv.gz), with ElasticFlow's A100.csv"

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "ElasticFlow meets more deadlines than EDF": ClaimTerms("EDF", "none, on every cluster"),
        "ElasticFlow meets more deadlines than EDF with admission": ClaimTerms("EDF with admission", "none, on every cluster"),
        "ElasticFlow meets more deadlines than elasticity without admission": ClaimTerms(
            "ElasticFlow without admission", "none, on every cluster"
        ),
    }

    def cases(self, scale: Scale) -> list[Case]:
        path = self.needed()
        jobs, seeds = (300, (0, 1, 2, 3, 4)) if scale == "full" else (100, (0,))
        sizes = ("a100:8x8", "a100:16x8", "a100:32x8")[: 3 if scale == "full" else 2]
        found: list[Case] = []
        for cluster in _CLUSTERS:
            settings = {"throughputs": str(self.beside("A100.csv")), "first": jobs}
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
        means = met.group_by("cluster and GPUs", "policy").agg(pl.col("met").mean())
        order = [WHOLE, *list(_OTHERS)[::-1]]
        return means.pivot("policy", index="cluster and GPUs", values="met").sort("cluster and GPUs").select("cluster and GPUs", *order)
