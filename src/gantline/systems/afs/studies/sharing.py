"""AFS (Hwang et al., NSDI 2021), section 6: elastic sharing against rigid orders, and equal sharing beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.reproduction import RATE, Claim, ClaimTerms, Scale, Study, elastic_setting, mean_by

_RIGID = ("las", "tiresias", "srtf")
ELASTIC = ("afs", "equal-share")
PAPER = "Hwang et al.: Elastic Resource Sharing for Distributed Deep Learning (NSDI 2021)"
TERMS = {
    "AFS-L has a lower average JCT than LAS": ClaimTerms("LAS", "none, at every place of the table"),
    "and than SRTF, which knows lengths too": ClaimTerms("SRTF", "none, at every place of the table"),
    "and than Tiresias": ClaimTerms("Tiresias", "none, at every place of the table"),
    "plain equal sharing is close behind it": ClaimTerms("equal sharing", "0.85 to 1 of it, at every place of the table"),
}


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

    name: ClassVar[str] = "afs-sharing"
    paper: ClassVar[str] = PAPER
    figure: ClassVar[str] = "Section 6: average JCT of AFS-L against SRTF and Tiresias"
    what: ClassVar[str] = (
        "150 jobs on 64 GPUs (8x8), 600 to 200,000 s on one GPU (log-uniform), asking for 1 to 8 GPUs and able to use 16, parallel parts "
        "of 0.80 to 0.99 (Amdahl), Poisson arrivals, rounds of 60 s, 10 s for every start and change. The paper's jobs are not "
        "published, and its factors are its own; the claims here are inequalities for this workload, of means over the seeds. Rigid "
        "schedulers get the same jobs at the size they ask for."
    )
    load: ClassVar[str] = RATE
    load_unit: ClassVar[str] = "jobs/h"

    terms: ClassVar[Mapping[str, ClaimTerms]] = TERMS

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
        means = results.group_by("policy", RATE).agg(pl.col("jct_mean").mean()).sort(RATE, "policy")
        return means.pivot("policy", index=RATE, values="jct_mean").rename({RATE: "jobs/h"})
