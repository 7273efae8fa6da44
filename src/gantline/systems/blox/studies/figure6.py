"""Blox (Agarwal et al., EuroSys 2024), Figures 6 and 7: schedulers against load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale, Study
from gantline.systems.blox.studies.workload import LOAD, blox_setting, figure_table

_LOADS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
_PUBLISHED_JCT = 15.75  # hours, below saturation, where every job starts within a round
_PUBLISHED_RESPONSE = (448, 455)  # seconds, likewise


class BloxFigure6(Study):
    """FIFO, LAS (which is what the released Tiresias does) and SRTF over 1 to 9 jobs per hour."""

    name: ClassVar[str] = "blox-fig6"
    paper: ClassVar[str] = "Agarwal et al.: Blox, A Modular Toolkit for Deep Learning Schedulers (EuroSys 2024)"
    figure: ClassVar[str] = "Figures 6 and 7: average JCT and responsiveness against load"
    what: ClassVar[str] = (
        "FIFO, LAS and SRTF on 128 GPUs (32x4), rounds of 300 s, Poisson arrivals of 1 to 9 jobs/h, jobs 3000 to 4000 tracked, one GPU "
        "per job, in Blox' own way of counting time. The paper's figure gives shapes; numbers below saturation are those of its released "
        "program. Beyond 7.6 jobs/h LAS and SRTF outlive the 12,000 arrivals, so that their averages are lower bounds. Optimus is left "
        "out: the program multiplies its speed by a number that depends on the load."
    )
    load: ClassVar[str] = LOAD
    load_unit: ClassVar[str] = "jobs/h"

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "up to 6 jobs/h all schedulers have the same average JCT": ClaimTerms("the three schedulers with each other", "1 %"),
        "beyond saturation LAS has a higher average JCT than FIFO": ClaimTerms("FIFO", "none, at 8 and at 9 jobs/h"),
        "LAS keeps the best responsiveness": ClaimTerms("the better of FIFO and SRTF", "none, at 8 and at 9 jobs/h"),
        "FIFO has the worst responsiveness": ClaimTerms("the worse of LAS and SRTF", "none, at 8 and at 9 jobs/h"),
        "average JCT up to 6 jobs/h": ClaimTerms("the released program", "0.02 h"),
        "responsiveness up to 6 jobs/h": ClaimTerms("the released program", "1 s beyond its range"),
    }

    def cases(self, scale: Scale) -> list[Case]:
        loads = _LOADS if scale == "full" else (4.0, 9.0)
        policies = (PolicyChoice("fifo"), PolicyChoice("las"), PolicyChoice("srtf"))
        return Grid(blox_setting(scale), policies, vary={LOAD: loads}).cases()

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        calm, busy = results.filter(pl.col(LOAD) <= 6), results.filter(pl.col(LOAD) >= 8)
        found = [self._alike(calm)]
        if scale == "full":
            found += self._numbers(calm)
        return [*found, *self._saturated(busy)]

    def _alike(self, calm: pl.DataFrame) -> Claim:
        spreads = calm.group_by(LOAD).agg(spread=pl.col("jct_mean").max() / pl.col("jct_mean").min() - 1)["spread"]
        most = max(spreads.to_list())
        return Claim(
            "up to 6 jobs/h all schedulers have the same average JCT", "the same", f"at most {100 * most:.2f} % apart", most < 0.01
        )

    def _numbers(self, calm: pl.DataFrame) -> list[Claim]:
        hours = calm["jct_mean"] / 3600
        low, high = float(hours.min()), float(hours.max())  # type: ignore[arg-type]
        first, last = float(calm["responsiveness_mean"].min()), float(calm["responsiveness_mean"].max())  # type: ignore[arg-type]
        near = abs(low - _PUBLISHED_JCT) < 0.02 and abs(high - _PUBLISHED_JCT) < 0.02
        within = first >= _PUBLISHED_RESPONSE[0] and last <= _PUBLISHED_RESPONSE[1]
        return [
            Claim(
                "average JCT up to 6 jobs/h", f"{_PUBLISHED_JCT} h (released program)", f"{low:.2f} to {high:.2f} h", near, is_number=True
            ),
            Claim(
                "responsiveness up to 6 jobs/h", "449 to 454 s (released program)", f"{first:.0f} to {last:.0f} s", within, is_number=True
            ),
        ]

    def _saturated(self, busy: pl.DataFrame) -> list[Claim]:
        """What happens beyond 7.6 jobs/h, where more work arrives than 128 GPUs can do."""
        by = {name: rows.sort(LOAD) for (name,), rows in busy.group_by("policy")}
        jct = {name: (rows["jct_mean"] / 3600).to_list() for name, rows in by.items()}
        wait = {name: rows["responsiveness_mean"].to_list() for name, rows in by.items()}
        worse = all(las > fifo for las, fifo in zip(jct["las"], jct["fifo"]))
        prompt = all(las < min(fifo, srtf) for las, fifo, srtf in zip(wait["las"], wait["fifo"], wait["srtf"]))
        last = all(fifo > max(las, srtf) for las, fifo, srtf in zip(wait["las"], wait["fifo"], wait["srtf"]))
        shown = {name: ", ".join(f"{hours:.1f}" for hours in values) for name, values in jct.items()}
        waits = {name: ", ".join(f"{seconds:.0f}" for seconds in values) for name, values in wait.items()}
        return [
            Claim(
                "beyond saturation LAS has a higher average JCT than FIFO", "higher", f"{shown['las']} h against {shown['fifo']} h", worse
            ),
            Claim("LAS keeps the best responsiveness", "best", f"{waits['las']} s; SRTF {waits['srtf']} s", prompt),
            Claim("FIFO has the worst responsiveness", "worst", f"{waits['fifo']} s", last),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        return figure_table(results, "policy")
