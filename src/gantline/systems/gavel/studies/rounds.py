"""Gavel, Figure 13: how much is lost by dividing time in rounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale
from gantline.systems.gavel.studies.workload import LOAD, GavelStudy, hours, table_of

_LENGTHS = (360, 720, 1440, 2880)


class GavelRounds(GavelStudy):
    """Rounds of 6, 12, 24 and 48 minutes against shares that are met exactly."""

    name: ClassVar[str] = "gavel-rounds"
    figure: ClassVar[str] = "Figure 13: average JCT with rounds of 6 to 48 minutes and with an ideal mechanism"
    what: ClassVar[str] = (
        "Gavel LAS on the continuous trace of jobs of one GPU. Ideal: no rounds, every job gets exactly its shares of time, computed at "
        "every arrival and every finish. The program's own ideal mode fails with an error, so no numbers are published but the figure's "
        "shape. Rules as repaired: the program computes shares at most every 1,920 s, which hides the length of its rounds. Among equal "
        "optima those that waste nothing (tie=efficient): rounds give left-over devices to somebody, ideal shares cannot. "
        "With the artifact's spacing only one of the three claims holds, and with the default tie rule (central) ideal is 6 % behind the "
        "rounds."
    )

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "6-minute rounds are nearly ideal": ClaimTerms("ideal shares", "5 %, at every load"),
        "48-minute rounds cost more": ClaimTerms("6-minute rounds", "none"),
        "the longer the rounds, the more they cost": ClaimTerms("the next shorter rounds", "none: never falling"),
    }

    def cases(self, scale: Scale) -> list[Case]:
        jobs, track = (2000, (800, 1200)) if scale == "full" else (90, (30, 60))
        base = self.setting(scale, {"jobs": jobs}, track=track)
        vary = {LOAD: (4.0, 4.8, 5.2) if scale == "full" else (1.0, 1.3)}
        found = []
        for length in _LENGTHS:
            policy = PolicyChoice("gavel.max_min_fairness_perf", {"tie": "efficient"}, f"rounds of {length // 60} min")
            found += Grid(base.with_value("round", length), (policy,), vary=vary).cases()
        ideal = PolicyChoice("gavel.max_min_fairness_perf", {"ideal": True, "tie": "efficient"}, "ideal")
        return found + Grid(base, (ideal,), vary=vary).cases()

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        found = hours(results, LOAD)
        ideal = found["ideal"]
        loss = [max(found[f"rounds of {length // 60} min"][load] / ideal[load] - 1 for load in ideal) for length in _LENGTHS]
        shown = ", ".join(f"{100 * part:+.1f} %" for part in loss)
        return [
            Claim("6-minute rounds are nearly ideal", "close to ideal", f"{100 * loss[0]:+.1f} % at most", abs(loss[0]) < 0.05),
            Claim("48-minute rounds cost more", "more", f"{100 * loss[-1]:+.1f} % at most", loss[-1] > loss[0]),
            Claim("the longer the rounds, the more they cost", "growing with the length", shown, loss == sorted(loss)),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        return table_of(results, LOAD)
