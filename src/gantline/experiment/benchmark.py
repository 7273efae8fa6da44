"""The public benchmark: every policy on five generated workloads, under the same rules, as a table to stand in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from gantline.core.errors import NotFoundError, near
from gantline.experiment.grid import Case, Grid, PolicyChoice
from gantline.experiment.setting import Setting
from gantline.experiment.source import TraceSource
from gantline.files.clusters import read_cluster
from gantline.report.doubts import MARK
from gantline.report.metrics import BY_KEY
from gantline.report.numbers import UNKNOWN, best_of, spell

SEEDS = (0, 1, 2)
RULES = {"placement": "consolidated:preferred", "costs": "30"}
OWN_RULES: dict[str, dict[str, Any]] = {"mixed": {"round": 300.0, "prices": "v100=0.74,p100=0.43,k80=0.135"}}
"""Where there are device types to choose from, decisions are few enough for policies that solve a program each time."""
ROUND = 60.0
SLOW = tuple(f"gavel.max_min_fairness_{way}" for way in ("strategy_proof", "water_filling", "water_filling_perf"))
"""Policies that solve a program per job at every decision; one seed must do for them."""
CHOOSERS = ("gavel.", "allox", "drf", "es", "fs")
"""How the names of policies begin that are about choosing between device types or between CPUs and GPUs."""
METRICS = ("jct_mean", "jct_p95", "slowdown_mean", "makespan", "utilisation", "preemptions", "jain_users")
MORE_METRICS = ("deadline_misses", "money")
"""Shown where they say something."""


@dataclass(frozen=True)
class BenchmarkTable:
    """The results of one workload: a row per policy, the mean of each metric over the seeds."""

    workload: str
    rows: pl.DataFrame
    failures: tuple[tuple[str, str], ...]
    """Policies that could not run, and why."""


def obstacle(policy: str, workload: str) -> str:
    """Why a registered policy has no row in a workload's table; empty where it has one."""
    from gantline.policies.registry import make_policy
    from gantline.workload.generators.benchmark import benchmark_traces

    if policy == "recorded":
        return "it makes no decisions, but follows recorded ones"
    if "pairs" in make_policy(policy).needs:
        return "they need measured throughputs of jobs that share a device: `--throughputs`, with a trace that names rows of it"
    if policy.startswith(CHOOSERS[0]) or policy.split(".")[0].split("-")[0] in CHOOSERS:
        kinds = read_cluster(benchmark_traces()[workload].cluster).types
        return "" if len(kinds) > 1 else "they are about choosing between device types, and here there is one"
    return ""


def benchmark_cases(policies: Sequence[PolicyChoice], workloads: Sequence[str] = (), *, suited: bool = False) -> list[Case]:
    """The runs: every policy on every workload (all five, if none is named) with every seed; `suited`: where nothing stands in its way."""
    from gantline.workload.generators.benchmark import benchmark_traces

    known = benchmark_traces()
    cases = []
    for name in workloads or known:
        if name not in known:
            raise NotFoundError(f"no workload '{name}' in the benchmark", where="benchmark", fix=near(name, known))
        base = Setting(TraceSource(generator=name), known[name].cluster, "fifo", **rules_of(name))
        able = tuple(choice for choice in policies if not (suited and obstacle(choice.policy, name)))
        if not able:
            continue
        grid = Grid(base, able, seeds=SEEDS)
        made = [case for case in grid.cases() if case.setting.seed == SEEDS[0] or case.setting.policy not in SLOW]
        cases += [replace(case, axes={"workload": name, **case.axes}) for case in made]
    return cases


def rules_of(workload: str) -> dict[str, Any]:
    """How its runs are made."""
    return {"round": ROUND, **RULES, **OWN_RULES.get(workload, {})}


def all_policies() -> tuple[PolicyChoice, ...]:
    """Every registered policy with its defaults."""
    from gantline.policies.registry import policy_names

    return tuple(PolicyChoice(name) for name in policy_names())


def hopeless(results: pl.DataFrame) -> set[tuple[str, str]]:
    """Workloads and policies of which a run failed, so that other seeds need not be tried."""
    return set(results.filter(pl.col("state") == "failed").select("workload", "policy").iter_rows())


def tables_of(results: pl.DataFrame) -> list[BenchmarkTable]:
    """A table per workload, the lowest mean JCT first."""
    found = []
    for (workload,), group in results.group_by("workload", maintain_order=True):
        done = group.filter(pl.col("state") == "done")
        whole = done.group_by("policy", maintain_order=True).agg(
            pl.len().alias("runs"),
            pl.col("doubts").filter(pl.col("doubts") != "").first().fill_null("").alias("doubts"),
            *(pl.col(key).mean() for key in (*METRICS, *MORE_METRICS)),
        )
        enough = (pl.col("runs") == len(SEEDS)) | pl.col("policy").is_in(SLOW)
        counted = whole.filter(enough).sort("jct_mean", "policy").drop("runs")
        failed = group.filter(pl.col("state") == "failed").unique("policy", keep="first", maintain_order=True)
        found.append(BenchmarkTable(str(workload), counted, tuple(failed.select("policy", "message").rows())))
    return found


def shown_metrics(table: BenchmarkTable) -> list[str]:
    """The metrics worth a column: deadlines and money only where there are some."""
    return [*METRICS, *(key for key in MORE_METRICS if (table.rows[key].fill_nan(0.0) > 0).any())]


def row_texts(table: BenchmarkTable) -> dict[str, list[str]]:
    """Each policy's row as it is printed; what is best in a column is bold."""
    keys = shown_metrics(table)
    doubtful = [index for index, told in enumerate(table.rows["doubts"]) if told]
    best = {key: best_of(BY_KEY[key], table.rows[key].to_list(), doubtful) for key in keys}
    texts = {}
    for index, row in enumerate(table.rows.iter_rows(named=True)):
        cells = [UNKNOWN if not math.isfinite(row[key]) else spell(BY_KEY[key], row[key]) for key in keys]
        name = row["policy"] + (MARK if row["doubts"] else "")
        texts[name] = [f"**{cell}**" if index in best[key] else cell for key, cell in zip(keys, cells)]
    return texts
