"""Lyra (Li et al., EuroSys 2023), section 7: what loans and elasticity are worth, and which jobs a reclaim stops."""

from __future__ import annotations

from typing import Any

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
    mean_by_policy,
)

_PARTS: dict[str, dict[str, Any]] = {
    "neither": {"loans": "none", "elastic": False},
    "loans": {"elastic": False},
    "elastic": {"loans": "none"},
    "both": {},
}
_CALLED_BACK = "0:8,2h:5"
_RULES = ("cheapest", "fewest", "random")


class LyraLoans(Study):
    """Lyra without its parts, and the three ways to choose the servers that go back."""

    name = "lyra-loans"
    paper = "Li et al.: Lyra: Elastic Scheduling for Deep Learning Clusters (EuroSys 2023)"
    figure = "Section 7: queueing with and without loans and elasticity; jobs stopped when servers are called back"
    what = (
        "8 training servers and 8 inference servers of 8 GPUs of one speed; the inference cluster needs 35 % of them at night and 95 % at "
        "its peak. 250 jobs of 1 to 16 GPUs, lognormal durations (median 40 min, at most 12 h), three in ten able to use twice their "
        "request, linear speed-up; 60 s to resume, 10 s to resize. The load is that on the training servers alone. For the second "
        "question all 8 inference servers are on loan, the load is 6, and three are called back after two hours. The paper's trace is not "
        "published, its loaned GPUs are slower, and its reclaims larger."
    )
    load = "load"

    terms = claim_terms(
        {
            "loans reduce queueing": ("neither", "none, at every load"),
            "so does elasticity": ("neither", "none, at every load"),
            "both together reduce it more than either alone": ("the better of loans and elasticity", "none, at every load"),
            "calling back the cheapest servers stops fewer jobs than the other rules": (
                "the better of random and fewest jobs",
                "none, sum over the runs",
            ),
        }
    )

    def cases(self, scale: Scale) -> list[Case]:
        source = TraceSource(
            generator="generic",
            settings={
                "jobs": 250 if scale == "full" else 100,
                "gpus": 64,
                "load": 1.2,
                "sizes": "1:0.45,2:0.15,4:0.15,8:0.15,16:0.1",
                "durations": "lognormal(median=40m, sigma=1.4)",
                "longest": "12h",
                "elastic_share": 0.3,
                "elastic_range": "1-2",
            },
        )
        base = Setting(source, "gpu:8x8,gpu:8x8@inference", "lyra", costs="resume=60,resize=10,move=30")
        parts = tuple(PolicyChoice("lyra", settings, name) for name, settings in _PARTS.items())
        rules = tuple(PolicyChoice("lyra", {"reclaim": rule, "loans": _CALLED_BACK}, f"reclaim {rule}") for rule in _RULES)
        queues = Grid(base, parts, loads=(1.0, 1.3) if scale == "full" else (1.3,), seeds=(0, 1, 2) if scale == "full" else (0,))
        recalled = base.with_value("until", 2 * 3600.0 + 60.0)
        called = Grid(recalled, rules, loads=(6.0,), seeds=tuple(range(8)) if scale == "full" else (1,))
        return [*queues.cases(), *called.cases()]

    def claims(self, results: pl.DataFrame, scale: Scale) -> list[Claim]:
        rows = list(self.table(results).iter_rows(named=True))
        minutes = {name: ", ".join(f"{row[name] / 60:.1f}" for row in rows) for name in _PARTS}
        called = {rule: results.filter(pl.col("policy") == f"reclaim {rule}")["preemptions"] for rule in _RULES}
        stopped, runs = {rule: counts.sum() for rule, counts in called.items()}, len(called["cheapest"])
        return [
            Claim(
                "loans reduce queueing",
                "lower",
                f"{minutes['loans']} min on average by load, {minutes['neither']} without",
                all(row["loans"] < row["neither"] for row in rows),
            ),
            Claim(
                "so does elasticity",
                "lower",
                f"{minutes['elastic']} min by load, {minutes['neither']} without",
                all(row["elastic"] < row["neither"] for row in rows),
            ),
            Claim(
                "both together reduce it more than either alone",
                "lower",
                f"{minutes['both']} min by load",
                all(row["both"] < min(row["elastic"], row["loans"]) for row in rows),
            ),
            Claim(
                "calling back the cheapest servers stops fewer jobs than the other rules",
                "fewer",
                f"{stopped['cheapest']:.0f} in {runs} runs, {stopped['random']:.0f} at random, {stopped['fewest']:.0f} by fewest jobs",
                stopped["cheapest"] < min(stopped["random"], stopped["fewest"]),
            ),
            Claim.number(
                "queueing, neither over both, mean of the loads", 1.53, sum(row["neither"] / row["both"] for row in rows) / len(rows)
            ),
        ]

    def table(self, results: pl.DataFrame) -> pl.DataFrame:
        parts = results.filter(pl.col("policy").is_in(list(_PARTS)))
        return mean_by_policy(parts, "load", "queueing_mean").select("load", *_PARTS)
