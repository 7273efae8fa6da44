"""AlloX (Le et al., EuroSys 2020), section 6: AlloX against the schedulers it is compared with, by load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale, Study
from gantline.systems.allox.studies.workload import RATE, allox_setting

_FAIR = ("drf", "drf-ext", "drf-fifo", "es")
_POLICIES = (
    PolicyChoice("allox", {"alpha": 1.0}, "allox alpha=1"),
    PolicyChoice("allox", {"alpha": 0.5}, "allox alpha=0.5"),
    PolicyChoice("allox.srpt", name="srpt"),
    PolicyChoice("allox.sjf", name="sjf"),
    *(PolicyChoice(policy) for policy in _FAIR),
)
_PUBLISHED_GAIN = 0.95


class AlloXBaselines(Study):
    """AlloX, SJF, SRPT, three forms of DRF and equal shares from a calm to an overfull cluster."""

    name: ClassVar[str] = "allox-baselines"
    paper: ClassVar[str] = "Le, Sun, Chowdhury, Liu: AlloX, Compute Allocation in Hybrid Clusters (EuroSys 2020)"
    figure: ClassVar[str] = "Section 6: average JCT of AlloX and its baselines against load"
    what: ClassVar[str] = (
        "AlloX and the baselines of its paper on 20 GPUs and 20 CPU nodes, jobs like those of its simulator from ten users that "
        "submit alike, estimates off by a tenth, nothing profiled. The baselines are what the paper means by them, not the slips of its "
        "simulator; those are in the regime irfsim. The paper's loads are not published, so the best gain over all of ours is compared."
    )
    load: ClassVar[str] = RATE
    load_unit: ClassVar[str] = "jobs/h"

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "with alpha 1 AlloX has the lowest average JCT of those that do not preempt": ClaimTerms(
            "the best of SJF, DRF, DRF extended, DRF-FIFO and ES", "none, at every load"
        ),
        "with alpha 0.5 it is below all schedulers that share fairly": ClaimTerms(
            "the best of DRF, DRF extended, DRF-FIFO and ES", "none, at every load"
        ),
        "SRPT, which preempts and moves for nothing, is ahead in a calm cluster": ClaimTerms(
            "AlloX with alpha 1", "none, at the lowest load"
        ),
    }

    def cases(self, scale: Scale) -> list[Case]:
        jobs, rates = (3000, (1200.0, 1800.0, 2400.0, 3000.0)) if scale == "full" else (250, (1200.0, 3000.0))
        return Grid(allox_setting(jobs), _POLICIES, vary={RATE: rates}).cases()

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        jct = {rate: dict(rows.select("policy", "jct_mean").iter_rows()) for (rate,), rows in results.group_by(RATE)}
        fastest = min(min(found[name] for name in ("sjf", *_FAIR)) / found["allox alpha=1"] for found in jct.values())
        fair = min(min(found[name] for name in _FAIR) / found["allox alpha=0.5"] for found in jct.values())
        against = {rate: found["allox alpha=1"] / found["srpt"] for rate, found in jct.items()}
        calm, full = min(against), max(against)
        gain = max(1 - found["allox alpha=0.5"] / found["drf-fifo"] for found in jct.values())
        entries = [
            Claim(
                "with alpha 1 AlloX has the lowest average JCT of those that do not preempt",
                "lowest",
                f"the next one is at least {fastest:.2f} times as high",
                fastest > 1,
            ),
            Claim(
                "with alpha 0.5 it is below all schedulers that share fairly",
                "below",
                f"the next one is at least {fair:.2f} times as high",
                fair > 1,
            ),
            Claim(
                "SRPT, which preempts and moves for nothing, is ahead in a calm cluster",
                "ahead",
                f"AlloX is {against[calm]:.2f} times as high at {calm:g} jobs/h, {against[full]:.2f} times at {full:g}",
                against[calm] > 1,
            ),
        ]
        if scale == "full":
            entries.append(
                Claim.number("average JCT, DRF-FIFO over AlloX at the load where that is most", 1 / (1 - _PUBLISHED_GAIN), 1 / (1 - gain))
            )
        return entries

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        return results.rename({RATE: "jobs/h"}).pivot("policy", index="jobs/h", values="jct_mean")
