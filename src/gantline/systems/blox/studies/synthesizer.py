"""Blox (Agarwal et al., EuroSys 2024), Figures 14 and 15: the synthesizer under changing load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.reproduction import Claim, ClaimTerms, Scale, Study
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import Sweep
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.report.figures import Chart, boxes_over_seeds

_RULES = ("accept-all", "load-limit:1.2", "load-limit:1.4")
_OURS = "synthesizer"
_MATCHES = "the synthesizer matches the best fixed combination"
_EVERY_SEED = "it does so with every seed"
_MATTERS = "the choice matters"
_WITHIN, _APART = 0.03, 0.1


class _Synthesizer(Study):
    """Nine fixed combinations and the synthesizer that chooses from them, seed by seed."""

    paper: ClassVar[str] = "Agarwal et al.: Blox, A Modular Toolkit for Deep Learning Schedulers (EuroSys 2024)"
    load: ClassVar[str] = "seed"
    kind: ClassVar[str]

    terms: ClassVar[Mapping[str, ClaimTerms]] = {
        _MATCHES: ClaimTerms("the best of nine in each seed, mean of the ratios", "3 %"),
        _EVERY_SEED: ClaimTerms("the best of nine in that seed", "3 %"),
        _MATTERS: ClaimTerms("the worst of nine against the best, means over seeds", "at least 10 % apart"),
    }

    def cases(self, scale: Scale) -> list[Case]:
        hours, seeds = (60, tuple(range(10))) if scale == "full" else (16, (0,))
        source = TraceSource(generator="blox-changing", settings={"kind": self.kind, "hours": hours})
        base = Setting(source, "16x4" if scale == "full" else "8x4", "fifo", regime="blox")
        fixed = Grid(base, tuple(map(PolicyChoice, ("fifo", "las", "srtf"))), vary={"admission": _RULES, "trace.seed": seeds})
        ours = PolicyChoice(_OURS, {"compat": "blox", "every": 10}, _OURS)
        return [*fixed.cases(), *Grid(base, (ours,), vary={"admission": _RULES[:1], "trace.seed": seeds}).cases()]

    def read(self, sweep: Sweep) -> pl.DataFrame:
        """A row per run: which combination, which seed, and its mean JCT against that of the best fixed combination of the seed."""
        behind = pl.when(pl.col("admission") == _RULES[0]).then(pl.lit("")).otherwise(" " + pl.col("admission"))
        found = super().read(sweep).with_columns(combination=pl.col("policy") + behind)
        best = pl.col("jct_mean").filter(pl.col("policy") != _OURS).min().over("trace.seed")
        return found.with_columns(ratio=pl.col("jct_mean") / best)

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        ours = results.filter(pl.col("policy") == _OURS)["ratio"].to_list()
        mean, worst = sum(ours) / len(ours), max(ours)
        fixed = self.table(results).filter(pl.col("combination") != _OURS)["JCT h"].to_list()
        apart = max(fixed) / min(fixed) - 1
        return [
            Claim(_MATCHES, "matches", f"{100 * (mean - 1):+.2f} %", mean <= 1 + _WITHIN),
            Claim(_EVERY_SEED, "one trace", f"at most {100 * (worst - 1):+.2f} %, {len(ours)} seeds", worst <= 1 + _WITHIN),
            Claim(_MATTERS, "differ", f"{100 * apart:.0f} % apart", apart >= _APART),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        means = results.group_by("combination", maintain_order=True).agg(pl.col("jct_mean").mean() / 3600, pl.col("ratio").mean())
        return means.rename({"jct_mean": "JCT h", "ratio": "against the best fixed"}).sort("JCT h", maintain_order=True)

    def charts(self, sweep: Sweep) -> list[Chart]:
        return [boxes_over_seeds(self.read(sweep).select(name="combination", value="jct_mean"))]


class BloxSynthesizerDual(_Synthesizer):
    """Figure 14."""

    name: ClassVar[str] = "blox-synthesizer-dual"
    figure: ClassVar[str] = "Figure 14: the synthesizer under a load that rises and falls"
    what: ClassVar[str] = (
        "FIFO, LAS and SRTF with all jobs admitted and behind limits of 1.2 and 1.4 times the cluster, and the synthesizer that "
        "chooses from these nine every ten rounds, on 64 GPUs. Long jobs all the time, short ones at four times their rate for "
        "six hours of every ten. The paper's traces are not published, nor do its generators of them run: these are made after "
        "their description."
    )
    kind: ClassVar[str] = "dual"


class BloxSynthesizerSmallLarge(_Synthesizer):
    """Figure 15."""

    name: ClassVar[str] = "blox-synthesizer-small-large"
    figure: ClassVar[str] = "Figure 15: the synthesizer under bursts of short jobs"
    what: ClassVar[str] = (
        "The same ten on 64 GPUs. Long jobs all the time, short ones all at once every four hours. The paper's traces are not published, "
        "nor do its generators of them run: these are made after their description."
    )
    kind: ClassVar[str] = "small-large"
