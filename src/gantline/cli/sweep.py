"""``gantline sweep``: policies x loads x seeds x any parameter, in parallel, resumable."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from gantline.cli.arguments import time_of
from gantline.cli.console import Column, Form, Sheet, say, show
from gantline.cli.run_options import HERE, Backends, Limit, Policies, RunOptions, Seeds, numbers_of, seeds_of, varied_of
from gantline.cli.trace_options import TraceName

if TYPE_CHECKING:
    from gantline.lab.experiment.sweep import Sweep

SHOWN = ("jct_mean", "jct_p95", "makespan", "utilization", "preemptions")

app = App(
    name="sweep",
    help_epilogue="""Run the same command again to go on after a stop: what is done is not done twice. Examples:

  gantline sweep jobs.csv --cluster 32x4 --policy fifo,srtf,las --load 0.8,1,1.2 --out results
  gantline sweep philly --trace-set jobs=2000 --trace-set gpus=128 --cluster 16x8 --policy srtf,las --load 0.7,0.9 --seeds 5 --out results
  gantline sweep jobs.csv --cluster 32x4 --policy tiresias --vary 'tiresias.limits=3600;3600,36000' --vary round=60,300 --out results""",
)


@app.default
def sweep(
    trace: TraceName,
    /,
    *,
    policy: Policies,
    options: RunOptions,
    out: Annotated[Path, Parameter(help="The folder of the results; one that exists is gone on with.")],
    load: Annotated[
        str | None,
        Parameter(
            help="Loads: factors on the arrivals of a file, or the generator's load (0.7,0.9); some have --vary trace.jobs_per_hour."
        ),
    ] = None,
    seeds: Seeds = None,
    vary: Annotated[
        list[str] | None,
        Parameter(negative="", help="Another axis, such as round=60,300, trace.jobs=..., POLICY.PARAMETER=...; may be repeated."),
    ] = None,
    where: Backends = HERE,
    limit: Limit = "inf",
    keep_runs: Annotated[bool, Parameter(negative="", help="Store every run whole, for 'gantline report'.")] = False,
    output: Form = "table",
) -> int:
    """Run every combination of policies, loads, seeds and other values."""
    from gantline.cli.means_table import show_means
    from gantline.cli.sweeping import report_failures, run_watched, write_figures
    from gantline.lab.experiment.charts import charts_of
    from gantline.lab.experiment.experiment import Experiment, write_experiment
    from gantline.lab.experiment.grid import Grid, policies_of
    from gantline.lab.experiment.remarks import usable

    grid = Grid(options.base(trace), policies_of(policy), numbers_of(load, "--load"), seeds_of(seeds, 1), varied_of(vary))
    grid.refuse_values_beside_axes()
    most = time_of(limit, "--limit", above=True) or math.inf
    found = usable(run_watched(grid.cases(), out, where, keep_runs=keep_runs, limit=most))
    write_experiment(Experiment(grid, title=f"sweep of {trace}"), out / "experiment.yaml")
    write_figures(charts_of(found.results), out / "figures")
    if output == "table":
        show_means(found)
    else:
        show_results(found, output)
    say(f"results are in {out / 'results.parquet'}")
    return report_failures(found)


def show_results(found: Sweep, form: str) -> None:
    """Print a row per run: for people the axes and a few metrics, for programs everything."""
    import polars as pl

    from gantline.lab.report.doubts import MARK
    from gantline.lab.report.metrics import BY_KEY
    from gantline.lab.report.numbers import spell

    frame = found.results
    if form != "table":
        show(Sheet(tuple(Column(name) for name in frame.columns), frame.rows()), form)
        return
    axes = list(dict.fromkeys(name for case in found.cases for name in [*case.axes, *case.parameters]))
    columns = [Column(name, right=frame[name].dtype.is_numeric()) for name in ("policy", *axes)]
    columns += [Column(BY_KEY[key].title, True, lambda value, key=key: spell(BY_KEY[key], value)) for key in SHOWN]  # type: ignore[misc]
    columns.append(Column("state"))
    doubtful = pl.col("doubts").fill_null("") != ""
    state = pl.when(doubtful).then(pl.concat_str(pl.col("state"), pl.lit(f"{MARK} "), pl.col("doubts"))).otherwise(pl.col("state"))
    show(Sheet(tuple(columns), frame.select("policy", *axes, *SHOWN, state.alias("state")).rows()), form)
