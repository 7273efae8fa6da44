"""``gantline benchmark``: every policy on the five workloads of the public benchmark."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.arguments import time_of
from gantline.cli.console import say
from gantline.cli.run_options import Limit, Workers

app = App(
    name="benchmark",
    help_epilogue="""Examples:

  gantline benchmark --workload swarm --policy fifo,srtf
  gantline benchmark --also ./mine.py:Mine
  gantline benchmark -o docs/benchmark.md""",
)


@app.default
def benchmark(
    *,
    policy: Annotated[
        list[str] | None, Parameter(name="--policy", negative="", help="Only these policies; by default all registered.")
    ] = None,
    also: Annotated[list[str] | None, Parameter(negative="", help="A policy besides, such as ./mine.py:Mine; may be repeated.")] = None,
    workload: Annotated[list[str] | None, Parameter(negative="", help="Only these workloads: steady, bursty, gangs, swarm, mixed.")] = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"], help="Write the page here instead of printing the tables.")] = None,
    runs: Annotated[Path | None, Parameter(help="Keep the runs in this folder; the same command goes on after a stop.")] = None,
    workers: Workers = None,
    limit: Limit = "1200",
) -> int:
    """Run the public benchmark and print its tables, or write its page."""
    import polars as pl

    from gantline.cli.sweeping import kept_or_not, run_watched
    from gantline.lab.experiment.benchmark import SEEDS, all_policies, benchmark_cases, hopeless, tables_of
    from gantline.lab.experiment.benchmark_page import benchmark_page, table_section
    from gantline.lab.experiment.grid import policies_of
    from gantline.lab.experiment.whole_files import write_text

    chosen = (policies_of(policy) if policy else all_policies()) + policies_of(also or [])
    cases = benchmark_cases(chosen, workload or (), suited=policy is None)
    most = time_of(limit, "--limit", above=True) or math.inf
    with kept_or_not(runs) as folder:
        first = run_watched([case for case in cases if case.setting.seed == SEEDS[0]], folder, workers, limit=most).results
        given_up = hopeless(first)
        rest = [case for case in cases if (case.axes["workload"], case.policy) not in given_up]
        failed = first.filter(pl.col("state") == "failed")
        tables = tables_of(pl.concat([run_watched(rest, folder, workers, limit=most).results, failed], how="diagonal_relaxed"))
    if out is None:
        for table in tables:
            print(table_section(table))
    else:
        write_text(out, benchmark_page(tables))
        say(f"wrote {out}")
    return 0 if any(table.rows.height for table in tables) else 1
