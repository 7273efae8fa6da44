"""The public benchmark: every policy on five generated workloads, under the same rules, as a table to stand in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from gantline.core.errors import NotFoundError, near
from gantline.experiment.grid import Case, Grid, PolicyChoice
from gantline.experiment.setting import Setting
from gantline.experiment.source import TraceSource
from gantline.report.metrics import BY_KEY
from gantline.report.numbers import UNKNOWN, best_of, spell

SEEDS = (0, 1, 2)
RULES = {"placement": "consolidated:preferred", "round": 60.0, "costs": "30"}
METRICS = ("jct_mean", "jct_p95", "slowdown_mean", "makespan", "utilisation", "preemptions", "jain_users")
DEADLINES = "deadline_misses"


@dataclass(frozen=True)
class BenchmarkTable:
    """The results of one workload: a row per policy, the mean of each metric over the seeds."""

    workload: str
    rows: pl.DataFrame
    failures: tuple[tuple[str, str], ...]
    """Policies that could not run, and why."""


def benchmark_cases(policies: Sequence[PolicyChoice], workloads: Sequence[str] = ()) -> list[Case]:
    """The runs: every policy on every workload (all five, if none is named) with every seed."""
    from gantline.workload.generators.benchmark import benchmark_traces

    known = benchmark_traces()
    cases = []
    for name in workloads or known:
        if name not in known:
            raise NotFoundError(f"no workload '{name}' in the benchmark", where="benchmark", fix=near(name, known))
        base = Setting(TraceSource(generator=name), known[name].cluster, "fifo", **RULES)  # type: ignore[arg-type]
        grid = Grid(base, tuple(policies), seeds=SEEDS)
        cases += [replace(case, axes={"workload": name, **case.axes}) for case in grid.cases()]
    return cases


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
            pl.len().alias("runs"), *(pl.col(key).mean() for key in (*METRICS, DEADLINES))
        )
        counted = whole.filter(pl.col("runs") == len(SEEDS)).sort("jct_mean", "policy").drop("runs")
        failed = group.filter(pl.col("state") == "failed").unique("policy", keep="first", maintain_order=True)
        found.append(BenchmarkTable(str(workload), counted, tuple(failed.select("policy", "message").rows())))
    return found


def shown_metrics(table: BenchmarkTable) -> list[str]:
    """The metrics worth a column: deadlines only where there are some."""
    return [*METRICS, DEADLINES] if (table.rows[DEADLINES] > 0).any() else list(METRICS)


def row_texts(table: BenchmarkTable) -> dict[str, list[str]]:
    """Each policy's row as it is printed; what is best in a column is bold."""
    keys = shown_metrics(table)
    best = {key: best_of(BY_KEY[key], table.rows[key].to_list()) for key in keys}
    texts = {}
    for index, row in enumerate(table.rows.iter_rows(named=True)):
        cells = [UNKNOWN if not math.isfinite(row[key]) else spell(BY_KEY[key], row[key]) for key in keys]
        texts[row["policy"]] = [f"**{cell}**" if index in best[key] else cell for key, cell in zip(keys, cells)]
    return texts
