"""Blox (Agarwal et al., EuroSys 2024), Figures 12 and 13: LAS behind admission control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.charts import points_against
from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale, Study
from gantline.lab.experiment.sweep import Sweep
from gantline.lab.report.figures import Chart, jct_against_load
from gantline.systems.blox.studies.workload import LOAD, blox_setting, figure_table

_RULES = ("accept-all", "load-limit:1.0", "load-limit:1.2", "load-limit:1.4")
_PUBLISHED_GAIN = 0.15


class BloxFigure12(Study):
    """LAS with every job admitted, and with a limit of 1.0, 1.2 and 1.4 times the cluster."""

    name: ClassVar[str] = "blox-fig12"
    paper: ClassVar[str] = "Agarwal et al.: Blox, A Modular Toolkit for Deep Learning Schedulers (EuroSys 2024)"
    figure: ClassVar[str] = "Figures 12 and 13: LAS with admission control"
    what: ClassVar[str] = (
        "LAS on the workload of Figure 6 at 6 to 9 jobs/h, with all jobs admitted and with jobs let in while the demand of those inside is "
        "at most 1.0, 1.2 and 1.4 times the cluster. The paper's arrivals are not published; saturation is at 7.6 jobs/h here."
    )
    load: ClassVar[str] = LOAD
    load_unit: ClassVar[str] = "jobs/h"

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        "below saturation admission control changes nothing": ClaimTerms("accept-all", "1 %"),
        "beyond saturation some limit above 1 has the best average JCT": ClaimTerms("accept-all and limit 1.0", "none"),
        "the price is responsiveness": ClaimTerms("accept-all", "none"),
        "the limit with the best average JCT": ClaimTerms("the paper's figure", "none: one of four"),
        "1.2x improves the average JCT of LAS": ClaimTerms("accept-all", "10 % of the gain"),
    }

    def cases(self, scale: Scale) -> list[Case]:
        loads = (6.0, 7.0, 8.0, 9.0) if scale == "full" else (4.0, 9.0)
        return Grid(blox_setting(scale), (PolicyChoice("las"),), vary={LOAD: loads, "admission": _RULES}).cases()

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        busy = 8.0 if scale == "full" else 9.0
        rows = results.filter(pl.col(LOAD) == busy)
        jct, wait = (dict(rows.select("admission", metric).iter_rows()) for metric in ("jct_mean", "responsiveness_mean"))
        gain = {rule: 1 - jct[rule] / jct["accept-all"] for rule in _RULES}
        calm = results.filter(pl.col(LOAD) <= 6).group_by(LOAD).agg(spread=pl.col("jct_mean").max() / pl.col("jct_mean").min() - 1)
        spread = max(calm["spread"].to_list())
        best = max(_RULES, key=lambda rule: gain[rule])
        found = [
            Claim("below saturation admission control changes nothing", "nothing", f"at most {100 * spread:.2f} % apart", spread < 0.01),
            Claim(
                "beyond saturation some limit above 1 has the best average JCT",
                "1.2x",
                f"{best.removeprefix('load-limit:')}x, {100 * gain[best]:.0f} % below accept-all",
                best in _RULES[2:] and gain[best] > 0,
            ),
            Claim(
                "the price is responsiveness",
                "worse",
                f"{wait['load-limit:1.2']:.0f} s with 1.2x against {wait['accept-all']:.0f} s",
                wait["load-limit:1.2"] > wait["accept-all"],
            ),
        ]
        if scale == "full":
            limit = best.removeprefix("load-limit:")
            found += [
                Claim("the limit with the best average JCT", "1.2x", f"{limit}x at {busy:g} jobs/h", limit == "1.2", is_number=True),
                Claim.number("1.2x improves the average JCT of LAS", 100 * _PUBLISHED_GAIN, 100 * gain["load-limit:1.2"], "%"),
            ]
        return found

    def charts(self, sweep: Sweep) -> list[Chart]:
        points = points_against(sweep.results.with_columns(policy="admission"), LOAD)
        return [jct_against_load(points, "load", self.load_unit)]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        return figure_table(results, "admission")
