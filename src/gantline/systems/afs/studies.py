"""AFS (Hwang et al., NSDI 2021), section 6: elastic sharing against rigid orders, on jobs of our own and of Microsoft's clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from gantline.lab.experiment.reproduction import (
    RATE,
    Case,
    Claim,
    Grid,
    PolicyChoice,
    Scale,
    Setting,
    Study,
    TraceSource,
    claim_terms,
    elastic_setting,
    mean_by,
    mean_by_policy,
)

_RIGID = ("las", "tiresias", "srtf")
ELASTIC = ("afs", "equal-share")
PAPER = "Hwang et al.: Elastic Resource Sharing for Distributed Deep Learning (NSDI 2021)"
TERMS = claim_terms(
    {
        "AFS-L has a lower average JCT than LAS": ("LAS", "none, at every place of the table"),
        "and than SRTF, which knows lengths too": ("SRTF", "none, at every place of the table"),
        "and than Tiresias": ("Tiresias", "none, at every place of the table"),
        "plain equal sharing is close behind it": ("equal sharing", "0.85 to 1 of it, at every place of the table"),
    }
)


def claims_of(fields: Mapping[str, str], worst: Mapping[str, float], least: float) -> list[Claim]:
    """The claims from what was found of each other scheduler, the largest part of it that AFS-L takes, and the least of equal sharing."""
    return [
        Claim("AFS-L has a lower average JCT than LAS", "lower", fields["las"], worst["las"] < 1.0),
        Claim("and than SRTF, which knows lengths too", "lower", fields["srtf"], worst["srtf"] < 1.0),
        Claim("and than Tiresias", "lower", fields["tiresias"], worst["tiresias"] < 1.0),
        Claim("plain equal sharing is close behind it", "behind", fields["equal-share"], 0.85 <= least <= worst["equal-share"] < 1.0),
    ]


class AfsSharing(Study):
    """AFS-L and equal sharing of elastic jobs; LAS, Tiresias and SRTF on the same jobs at the size they ask for."""

    name = "afs-sharing"
    paper = PAPER
    figure = "Section 6: average JCT of AFS-L against SRTF and Tiresias"
    what = (
        "150 jobs on 64 GPUs (8x8), 600 to 200,000 s on one GPU (log-uniform), asking for 1 to 8 GPUs and able to use 16, parallel parts "
        "of 0.80 to 0.99 (Amdahl), Poisson arrivals, rounds of 60 s, 10 s for every start and change. The paper's jobs are not "
        "published, and its factors are its own; the claims here are inequalities for this workload, of means over the seeds. Rigid "
        "schedulers get the same jobs at the size they ask for."
    )
    load = RATE
    load_unit = "jobs/h"

    terms = TERMS

    def cases(self, scale: Scale) -> list[Case]:
        seeds = (0, 1, 2, 3, 4) if scale == "full" else (0,)
        rates = {RATE: (60, 120)}
        rigid = Grid(elastic_setting(rigid=True), tuple(map(PolicyChoice, _RIGID)), seeds=seeds, vary=rates)
        elastic = Grid(elastic_setting(), tuple(map(PolicyChoice, ELASTIC)), seeds=seeds, vary=rates)
        return [*rigid.cases(), *elastic.cases()]

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        mean = mean_by(results, RATE)
        places = sorted({place for _, place in mean})
        loads = sorted({rate for rate, _ in places})
        worst, fields = {}, {}
        for other in ("las", "srtf", "tiresias", "equal-share"):
            one = [mean["afs", place] / mean[other, place] for place in places]
            sums = [[sum(mean[name, place] for place in places if place[0] == rate) for name in ("afs", other)] for rate in loads]
            by_load = [ours / theirs for ours, theirs in sums]
            worst[other], least = max(by_load), min(by_load)  # equal sharing is the last
            fields[other] = (
                f"{', '.join(f'{ratio:.2f}' for ratio in by_load)} of it by load; {min(one):.2f} to {max(one):.2f} in single runs"
            )
        return claims_of(fields, worst, least)

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        return mean_by_policy(results, RATE).rename({RATE: "jobs/h"})


# AFS (Hwang et al., NSDI 2021) on jobs of Microsoft's clusters: elastic sharing against rigid orders, and equal sharing beside it.

_RIGID_ORDERS = ("las", "srtf", "tiresias")
_CLUSTERS = ("03", "06")


class AfsClusters(Study):
    """AFS-L and equal sharing of elastic jobs; LAS, SRTF and Tiresias on the same jobs at the size they ask for."""

    name = "afs-clusters"
    paper = PAPER
    figure = "Section 6: average JCT of AFS-L against SRTF and Tiresias, on production traces"
    what = (
        "The first 300 jobs of Microsoft's clusters 03 and 06 on 64 GPUs (8x8), rounds of 60 s, 10 s for every start and change. "
        "Models and iterations are drawn five times as ElasticFlow's generator draws them, speeds at 1 to 64 GPUs are its measured "
        "A100 table; rigid schedulers get the same jobs at the size they asked for. Numbers are means over the draws. On 128 GPUs, "
        "where little waits, AFS-L is at 0.7 to 0.8 of the others."
    )
    needs = "raw_cluster03.csv.gz"
    needs_from = "the repository microsoft/elasticflow-traces (and raw_cluster06.csv.gz), with ElasticFlow's A100.csv"

    terms = TERMS

    def cases(self, scale: Scale) -> list[Case]:
        path = self.needed()
        seeds = (0, 1, 2, 3, 4) if scale == "full" else (0,)
        found: list[Case] = []
        for cluster in _CLUSTERS:
            for names, rigid in ((_RIGID_ORDERS, True), (ELASTIC, False)):
                settings = {"throughputs": str(self.file_of("A100.csv")), "first": 300, "rigid": rigid}
                source = TraceSource(file=str(path.with_name(f"raw_cluster{cluster}.csv.gz")), format="elasticflow", settings=settings)
                base = Setting(source, "a100:8x8", "afs", round=60.0, costs="10")
                grid = Grid(base, tuple(map(PolicyChoice, names)), vary={"trace.seed": seeds})
                found += [replace(case, axes={"jobs of": cluster, **case.axes}) for case in grid.cases()]
        return found

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        rows = self.table(results).to_dicts()
        part = {other: {row["cluster"]: row["afs"] / row[other] for row in rows} for other in (*_RIGID_ORDERS, "equal-share")}
        fields = {other: ", ".join(f"{ratio:.2f} on {place}" for place, ratio in found.items()) for other, found in part.items()}
        worst = {other: max(found.values()) for other, found in part.items()}
        return claims_of(fields, worst, min(part["equal-share"].values()))

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        return mean_by_policy(results, "jobs of").rename({"jobs of": "cluster"}).select("cluster", *ELASTIC, *_RIGID_ORDERS)
