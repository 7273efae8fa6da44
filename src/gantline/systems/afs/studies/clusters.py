"""AFS (Hwang et al., NSDI 2021) on jobs of Microsoft's clusters: elastic sharing against rigid orders, and equal sharing beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale, Study
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource
from gantline.systems.afs.studies.sharing import ELASTIC, PAPER, TERMS, claims_of

_RIGID = ("las", "srtf", "tiresias")
_CLUSTERS = ("03", "06")


class AfsClusters(Study):
    """AFS-L and equal sharing of elastic jobs; LAS, SRTF and Tiresias on the same jobs at the size they ask for."""

    name: ClassVar[str] = "afs-clusters"
    paper: ClassVar[str] = PAPER
    figure: ClassVar[str] = "Section 6: average JCT of AFS-L against SRTF and Tiresias, on production traces"
    what: ClassVar[str] = (
        "The first 300 jobs of Microsoft's clusters 03 and 06 on 64 GPUs (8x8), rounds of 60 s, 10 s for every start and change. "
        "Models and iterations are drawn five times as ElasticFlow's generator draws them, speeds at 1 to 64 GPUs are its measured "
        "A100 table; rigid schedulers get the same jobs at the size they asked for. Numbers are means over the draws. On 128 GPUs, "
        "where little waits, AFS-L is at 0.7 to 0.8 of the others."
    )
    needs: ClassVar[str] = "raw_cluster03.csv.gz"
    needs_from: ClassVar[str] = "the repository microsoft/elasticflow-traces (and raw_cluster06.csv.gz), with ElasticFlow's A100.csv"

    terms: ClassVar[Mapping[str, ClaimTerms]] = TERMS

    def cases(self, scale: Scale) -> list[Case]:
        path = self.needed()
        seeds = (0, 1, 2, 3, 4) if scale == "full" else (0,)
        found: list[Case] = []
        for cluster in _CLUSTERS:
            for names, rigid in ((_RIGID, True), (ELASTIC, False)):
                settings = {"throughputs": str(self.beside("A100.csv")), "first": 300, "rigid": rigid}
                source = TraceSource(file=str(path.with_name(f"raw_cluster{cluster}.csv.gz")), format="elasticflow", settings=settings)
                base = Setting(source, "a100:8x8", "afs", round=60.0, costs="10")
                grid = Grid(base, tuple(map(PolicyChoice, names)), vary={"trace.seed": seeds})
                found += [replace(case, axes={"jobs of": cluster, **case.axes}) for case in grid.cases()]
        return found

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        rows = self.table(results).to_dicts()
        part = {other: {row["cluster"]: row["afs"] / row[other] for row in rows} for other in (*_RIGID, "equal-share")}
        fields = {other: ", ".join(f"{ratio:.2f} on {place}" for place, ratio in found.items()) for other, found in part.items()}
        worst = {other: max(found.values()) for other, found in part.items()}
        return claims_of(fields, worst, min(part["equal-share"].values()))

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        means = results.group_by("jobs of", "policy").agg(pl.col("jct_mean").mean())
        order = (*ELASTIC, *_RIGID)
        return (
            means.pivot("policy", index="jobs of", values="jct_mean")
            .sort("jobs of")
            .rename({"jobs of": "cluster"})
            .select("cluster", *order)
        )
