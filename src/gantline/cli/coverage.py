"""``gantline coverage``: how often verdicts, intervals and the overload guard are right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import say
from gantline.core.errors import UsageError

app = App(
    name="coverage",
    help_epilogue="""Examples:

  gantline coverage -o docs/coverage.md
  gantline coverage --seeds 60 --tables 30 --runs 10 --histories 5""",
)


@app.default
def coverage(
    *,
    seeds: Annotated[int, Parameter(help="Seeds of the population that tables are drawn from.")] = 400,
    tables: Annotated[int, Parameter(help="Tables, or intervals, drawn for each number.")] = 100,
    runs: Annotated[int, Parameter(help="Runs for each number about steady states.")] = 24,
    histories: Annotated[int, Parameter(help="Histories for each number about what-if.")] = 10,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"], help="Write the page here instead of printing it.")] = None,
) -> None:
    """Measure verdicts on policies that are equal and on some that are not, and print the page of the documentation."""
    from gantline.lab.experiment.coverage.page import Effort, coverage_page
    from gantline.lab.experiment.whole_files import write_text

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
