"""``gantline reproduce NAME``: a published figure, run again."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from cyclopts import App, Parameter

from gantline.cli.arguments import time_of
from gantline.cli.console import Form, Sheet, say, show
from gantline.cli.many_runs import kept_or_not, report_failures, run_watched, write_figures
from gantline.cli.options import HERE, Backends, Limit, Workers
from gantline.core.errors import UsageError
from gantline.lab.experiment.benchmark import SEEDS, all_policies, benchmark_cases, benchmark_page, hopeless, table_section, tables_of
from gantline.lab.experiment.coverage.page import Effort, coverage_page
from gantline.lab.experiment.grid import policies_of
from gantline.lab.experiment.reproduction import Reproduction, Study, find_study, judge, section, study_names
from gantline.lab.experiment.reproduction import page as page_of
from gantline.lab.whole_files import write_frame, write_text

Data = Annotated[
    Path | None,
    Parameter(env_var="GANTLINE_DATA", help="A folder with published files that a study needs (also: the variable GANTLINE_DATA)."),
]

reproduce_app = App(
    name="reproduce",
    help_epilogue="""Examples:

  gantline reproduce list
  gantline reproduce blox-fig6 --scale full -o blox-fig6
  gantline reproduce gavel-single --data gavel/simulator""",
)


@reproduce_app.command(name="list")
def list_studies(*, output: Form = "table") -> None:
    """List the figures that can be reproduced."""
    studies = [find_study(name) for name in study_names()]
    show(Sheet.of("name figure paper", [(study.name, study.figure, study.paper) for study in studies]), output)


@reproduce_app.default
def reproduce(
    name: str,
    /,
    *,
    scale: Literal["small", "full"] = "small",
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    page: Path | None = None,
    data: Data = None,
    where: Backends = HERE,
) -> int:
    """Run a published figure again; the exit code is 1 if its shape is not found.

    Args:
        name: A name from 'gantline reproduce list', or 'all'.
        scale: An excerpt in seconds, or everything in minutes.
        page: Write all verdicts as one Markdown page.
        out: Keep runs, claims, numbers and figures in this folder.
    """
    found = []
    with kept_or_not(out) as folder:
        for one in study_names() if name == "all" else [name]:
            study = find_study(one, data)
            if name == "all" and not study.ready:
                say(f"left out: {one} needs {study.needs} (--data FOLDER)")
                continue
            found.append(_run(study, scale, folder / one if name == "all" else folder, where, keep=out is not None))
            print(section(found[-1]))
    if page is not None:
        write_text(page, page_of(found))
        say(f"wrote {page}")
    return 0 if all(one.shape_holds for one in found) else 1


def _run(study: Study, scale: Literal["small", "full"], folder: Path, where: Backends, *, keep: bool) -> Reproduction:
    sweep = run_watched(study.cases(scale), folder, where)
    report_failures(sweep)
    found = judge(study, sweep, scale)
    if keep:
        write_frame(folder / "claims.parquet", pl.DataFrame([vars(claim) for claim in found.claims]))
        write_frame(folder / "table.parquet", found.table)
        write_text(folder / "report.md", section(found))
        write_figures(study.charts(sweep), folder / "figures")
    return found


# ``gantline benchmark``: every policy on the five workloads of the public benchmark.

benchmark_app = App(
    name="benchmark",
    help_epilogue="""Examples:

  gantline benchmark --workload swarm --policy fifo,srtf
  gantline benchmark --also ./mine.py:Mine
  gantline benchmark -o docs/benchmark.md""",
)


@benchmark_app.default
def benchmark(
    *,
    policy: Annotated[list[str] | None, Parameter(name="--policy")] = None,
    also: list[str] | None = None,
    workload: list[str] | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    runs: Path | None = None,
    workers: Workers = None,
    limit: Limit = "1200",
) -> int:
    """Run the public benchmark and print its tables, or write its page.

    Args:
        also: A policy besides, such as ./mine.py:Mine; may be repeated.
        workload: Only these workloads: steady, bursty, gangs, swarm, mixed.
        runs: Keep the runs in this folder; the same command goes on after a stop.
        policy: Only these policies; by default all registered.
        out: Write the page here instead of printing the tables.
    """
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


# ``gantline experiment coverage``: how often verdicts, intervals and the overload guard are right.

coverage_app = App(
    name="coverage",
    help_epilogue="""Examples:

  gantline experiment coverage -o docs/coverage.md
  gantline experiment coverage --seeds 60 --tables 30 --runs 10 --histories 5""",
)


@coverage_app.default
def coverage(
    *,
    seeds: int = 400,
    tables: int = 100,
    runs: int = 24,
    histories: int = 10,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
) -> None:
    """Measure how often verdicts and intervals are right. The page of the documentation is printed.

    Args:
        seeds: Seeds of the population that tables are drawn from.
        tables: Tables, or intervals, drawn for each number.
        runs: Runs for each number about steady states.
        histories: Histories for each number about what-if.
        out: Write the page here instead of printing it.
    """
    least = {"--seeds": (seeds, 40), "--tables": (tables, 1), "--runs": (runs, 4), "--histories": (histories, 1)}
    for flag, (given, fewest) in least.items():
        if given < fewest:
            raise UsageError(f"{given} are too few", where=flag, fix=f"give {fewest} or more")
    page = coverage_page(Effort(seeds, tables, runs, histories), say)
    if out is None:
        print(page)
    else:
        write_text(out, page)
        say(f"wrote {out}")
