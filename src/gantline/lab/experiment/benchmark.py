"""The public benchmark: every policy on five generated workloads, under the same rules, as one table per workload."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from gantline.core.errors import NotFoundError, near
from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.results import doubt_of
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.report.labels import UNKNOWN, best_of, spell
from gantline.lab.report.metrics import BY_KEY
from gantline.lab.report.metrics.catalogue import Metric
from gantline.lab.report.run_warnings import MARK
from gantline.policies.registry import make_policy, policy_names
from gantline.traces.files.clusters import read_cluster
from gantline.traces.generators.presets import benchmark_traces

SEEDS = (0, 1, 2)
RULES = {"placement": "consolidated:preferred", "costs": "30"}
OWN_RULES: dict[str, dict[str, Any]] = {"mixed": {"round": 300.0, "prices": "v100=0.74,p100=0.43,k80=0.135"}}
"""Where there are device types to choose from, decisions are few enough for policies that solve a program each time."""
ROUND = 60.0
SLOW = (*(f"gavel.max_min_fairness_{variant}" for variant in ("strategy_proof", "water_filling", "water_filling_perf")), "themis")
"""Policies that solve programs or hold auctions at length at every decision; one seed and stops that cost must do for them."""
TOO_SLOW = ("pollux", "adaptdl", "sia", "heet-like", "shockwave")
"""Policies that search or solve at such length that a run takes minutes: on request alone."""
CHOOSERS = ("gavel.", "allox", "drf", "es", "fs")
"""How the names of policies begin that are about choosing between device types or between CPUs and GPUs."""
ELASTIC = ("voda", "afs", "equal-share", "ffdl", "lyra", "optimus", "pollux", "adaptdl", "sia", "heet-like")
"""How the names of policies begin that are about jobs which grow and shrink."""
OF_DEADLINES = ("edf", "elasticflow")
FEWER = " (1 seed)"
"""Behind the name of a policy that ran with one seed alone."""
FREE = "jct_free"
"""The mean JCT of the same policy where stops cost nothing: what it owes to costs that are not charged."""
METRICS = ("jct_mean", "jct_p95", "slowdown_mean", "makespan", "utilization", "preemptions", "jain_users")
MORE_METRICS = ("deadline_misses", "money")
"""Shown only where there are deadlines or prices."""


@dataclass(frozen=True)
class BenchmarkTable:
    """The results of one workload: a row per policy, the mean of each metric over the seeds; `runs` says over how many."""

    workload: str
    rows: pl.DataFrame
    failures: tuple[tuple[str, str], ...]
    """Policies that could not run, and why."""


def obstacle(policy: str, workload: str) -> str:
    """Why a registered policy has no row in a workload's table; empty where it has one."""
    if policy == "recorded":
        return "it makes no decisions, but follows recorded ones"
    if "pairs" in make_policy(policy).needs:
        return "they need measured throughputs of jobs that share a device: `--throughputs`, with a trace that names rows of it"
    if "carbon" in make_policy(policy).needs:
        return "they follow a series of carbon intensity, which no workload has: `gantline simulate --carbon FILE.csv`"
    made = benchmark_traces()[workload]
    family = policy.split(".")[0]
    if policy in TOO_SLOW:
        return "a run of theirs takes minutes; they stand in a table on request: `--policy sia --workload mixed`"
    if policy.startswith(CHOOSERS[0]) or family.split("-")[0] in CHOOSERS:
        return "" if len(read_cluster(made.cluster).types) > 1 else "they are about choosing between device types, and here there is one"
    if family in ELASTIC:
        return "" if made.settings.elastic_share else "they are about jobs that grow and shrink, and here none does"
    if family in OF_DEADLINES:
        return "" if made.settings.deadline_share else "they are about deadlines, and here there are none"
    if policy == "sharing":
        return "they are about jobs that need a part of a GPU, and here each needs whole ones"
    return ""


def benchmark_cases(policies: Sequence[PolicyChoice], workloads: Sequence[str] = (), *, suited: bool = False) -> list[Case]:
    """The runs: every policy on every workload (all five, if none is named) with every seed; `suited`: only those without an obstacle."""
    known = benchmark_traces()
    cases = []
    for name in workloads or known:
        if name not in known:
            raise NotFoundError(f"no workload '{name}' in the benchmark", where="benchmark", fix=near(name, known))
        base = Setting(TraceSource(generator=name), known[name].cluster, "fifo", **rules_of(name))
        able = tuple(choice for choice in policies if not (suited and obstacle(choice.policy, name)))
        if not able:
            continue
        grid = Grid(base, able, seeds=SEEDS, vary={"costs": (RULES["costs"], "0")})
        made = [
            case
            for case in grid.cases()
            if case.setting.policy not in SLOW or (case.setting.seed, case.axes["costs"]) == (SEEDS[0], RULES["costs"])
        ]
        cases += [replace(case, axes={"workload": name, **case.axes}) for case in made]
    return cases


def rules_of(workload: str) -> dict[str, Any]:
    """How its runs are made."""
    return {"round": ROUND, **RULES, **OWN_RULES.get(workload, {})}


def all_policies() -> tuple[PolicyChoice, ...]:
    """Every registered policy with its defaults, and AlloX without backfilling behind its gangs."""
    return (*(PolicyChoice(name) for name in policy_names()), PolicyChoice("allox", {"fill": "false"}))


def hopeless(results: pl.DataFrame) -> set[tuple[str, str]]:
    """Workloads and policies of which a run failed, so that other seeds need not be tried."""
    return set(results.filter(pl.col("state") == "failed").select("workload", "policy").iter_rows())


def tables_of(results: pl.DataFrame) -> list[BenchmarkTable]:
    """A table per workload, the lowest mean JCT first."""
    found = []
    for (workload,), group in results.group_by("workload", maintain_order=True):
        done = group.filter(pl.col("state") == "done")
        charged, free = (done.filter(pl.col("costs") == float(costs)) for costs in (RULES["costs"], "0"))
        unpaid = free.group_by("policy").agg(pl.col("jct_mean").mean().alias(FREE))
        whole = charged.group_by("policy", maintain_order=True).agg(
            pl.len().alias("runs"),
            pl.col("doubts"),
            *(pl.col(key).mean() for key in (*METRICS, *MORE_METRICS)),
        )
        whole = whole.with_columns(doubts=pl.Series([doubt_of(text) for text in whole["doubts"].to_list()], dtype=pl.String))
        enough = (pl.col("runs") == len(SEEDS)) | pl.col("policy").is_in(SLOW)
        counted = whole.filter(enough).join(unpaid, on="policy", how="left").sort("jct_mean", "policy")
        failed = group.filter(pl.col("state") == "failed").unique("policy", keep="first", maintain_order=True)
        found.append(BenchmarkTable(str(workload), counted, tuple(failed.select("policy", "message").rows())))
    return found


def shown_metrics(table: BenchmarkTable) -> list[Metric]:
    """The metrics worth a column: deadlines and money only where there are some."""
    more = [BY_KEY[key] for key in MORE_METRICS if (table.rows[key].fill_nan(0.0) > 0).any()]
    charged, *others = (BY_KEY[key] for key in METRICS)
    return [charged, replace(charged, key=FREE, title="Mean JCT if stops were free"), *others, *more]


def row_texts(table: BenchmarkTable) -> dict[str, list[str]]:
    """Each policy's row as it is printed; what is best in a column is bold, among policies that ran with every seed and are in no doubt."""
    metrics = shown_metrics(table)
    doubtful = [index for index, (text, runs) in enumerate(table.rows.select("doubts", "runs").rows()) if text or runs < len(SEEDS)]
    best = [best_of(metric, table.rows[metric.key].fill_null(math.nan).to_list(), doubtful) for metric in metrics]
    texts = {}
    for index, row in enumerate(table.rows.iter_rows(named=True)):
        values = [math.nan if row[metric.key] is None else row[metric.key] for metric in metrics]
        cells = [spell(metric, value) if math.isfinite(value) else UNKNOWN for metric, value in zip(metrics, values)]
        name = row["policy"] + (MARK if row["doubts"] else "") + (FEWER if row["runs"] < len(SEEDS) else "")
        texts[name] = [f"**{cell}**" if index in winners else cell for winners, cell in zip(best, cells)]
    return texts


# The benchmark as a page of the documentation.

_HEAD = """\
# Benchmark

{answer}

The three lowest mean JCTs on each of five generated workloads, and FIFO's; (!) marks a policy that reaches no steady state,
(1 seed) one whose decisions are too slow for more. Every registered policy runs with its defaults where it applies, under the same
rules, so that a new policy can be placed in the tables below. The workloads are settings, not files; `gantline trace generate` draws
them by name.

<!-- not run: it takes minutes and writes into the documentation -->
```console
$ gantline benchmark -o docs/benchmark.md
```

writes this page anew, and

<!-- not run: it takes minutes -->
```console
$ gantline benchmark --also ./mine.py:Mine
```

prints the tables with a row for a policy of yours. `--workload swarm` runs one of them.

Rules: a decision every {round:g} s (`mixed`: {longer:g} s), placement `{placement}`, {costs} s lost at every start, resume, resize
and move (in one column nothing is lost: what a policy owes to stops that cost nothing), true durations known to policies that
ask for them (`--estimates oracle`), in `mixed` prices of {prices} per device-hour. Numbers are means over the seeds {seeds}; the best of a
column is bold, which is a number and no verdict: `gantline compare` has intervals. Metrics are defined in [Metrics](metrics.md).
Policies differ in what they need and in what they are for: one that is made for fairness or for deadlines should not be judged by its mean
JCT.
"""


def benchmark_page(tables: Sequence[BenchmarkTable]) -> str:
    """The whole page."""
    seeds = ", ".join(map(str, SEEDS[:-1])) + f" and {SEEDS[-1]}"
    own = OWN_RULES["mixed"]
    head = _HEAD.format(
        answer=_answer(tables), round=ROUND, longer=own["round"], prices=own["prices"].replace(",", ", "), seeds=seeds, **RULES
    )
    return "\n".join([head, *(table_section(table) for table in tables), *_absent(tables)])


def _answer(tables: Sequence[BenchmarkTable]) -> str:
    """The best three policies of each workload, and FIFO."""
    lines = ["| workload | lowest mean JCTs | FIFO |", "|---|---|---:|"]
    for table in tables:
        found = {name: cells[0].strip("*") for name, cells in row_texts(table).items()}
        best = [f"`{name.split()[0]}`{name[len(name.split()[0]) :]} {jct}" for name, jct in found.items()]
        fifo = next((jct for name, jct in found.items() if name.split()[0] == "fifo"), UNKNOWN)
        lines.append(f"| {table.workload} | {', '.join(best[:3])} | {fifo} |")
    return "\n".join(lines)


def table_section(table: BenchmarkTable) -> str:
    """One workload: what it is, the table, and the policies that could not run."""
    made = benchmark_traces()[table.workload]
    titles = [metric.title for metric in shown_metrics(table)]
    lines = [f"## {made.name}", "", f"{made.summary[:1].upper()}{made.summary[1:]}. Cluster `{made.cluster}`.", ""]
    lines += ["| policy | " + " | ".join(titles) + " |", "|---|" + "---:|" * len(titles)]
    lines += [benchmark_row(policy, cells) for policy, cells in row_texts(table).items()]
    slow = [f"`{policy}`" for policy in SLOW if policy in table.rows["policy"]]
    if slow:
        text = f"Of seed {SEEDS[0]} alone and only with stops that cost, because their decisions take long: {', '.join(slow)}."
        lines += ["", f"{text} One seed is not compared with means of {len(SEEDS)}: such a row is never best."]
    doubts: dict[str, list[str]] = {}
    for policy, text in table.rows.select("policy", "doubts").rows():
        doubts.setdefault(text, []).append(f"`{policy}`")
    lines += [line for text, names in doubts.items() if text for line in ("", f"Marked (!) and never best: {', '.join(names)}; {text}.")]
    for message in dict.fromkeys(message for _, message in table.failures):
        names = ", ".join(f"`{policy}`" for policy, reason in table.failures if reason == message)
        lines += ["", f"Not in the table: {names} ({message})."]
    return "\n".join(lines) + "\n"


def _absent(tables: Sequence[BenchmarkTable]) -> list[str]:
    """Registered policies that some table does not have, by the reason."""
    reasons: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for choice in all_policies():
        obstacles = {table.workload: obstacle(choice.policy, table.workload) for table in tables}
        for reason in dict.fromkeys(filter(None, obstacles.values())):
            where = tuple(name for name, found in obstacles.items() if found == reason)
            reasons.setdefault((reason, where), []).append(choice.title)
    if not reasons:
        return []
    lines = ["## Which policy is missing from which table", ""]
    for (reason, where), names in reasons.items():
        place = "no table" if len(where) == len(tables) else "not in " + ", ".join(f"`{name}`" for name in where)
        lines.append(f"* In {place}:" if place == "no table" else f"* {place.capitalize()}:")
        lines[-1] += f" {', '.join(f'`{name}`' for name in names)}; {reason}."
    return ["\n".join(lines) + "\n"]


def benchmark_row(policy: str, cells: Sequence[str]) -> str:
    """A row of the table."""
    return f"| {policy} | " + " | ".join(cells) + " |"
