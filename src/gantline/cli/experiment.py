"""``gantline experiment run|check``: many runs described by a file that can be run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import Form, say
from gantline.cli.run_options import Workers

app = App(
    name="experiment",
    help_epilogue="""The format is in docs/experiments.md. Example:

  gantline experiment run las.yaml -o results""",
)

ExperimentFile = Annotated[Path, Parameter(help="The experiment, a YAML file.")]


@app.command
def run(
    file: ExperimentFile,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"], help="The folder of the results; one that exists is gone on with.")],
    workers: Workers = None,
    keep_runs: Annotated[bool, Parameter(negative="", help="Store every run whole, for 'gantline report'.")] = False,
    output: Annotated[Form, Parameter(name="--output")] = "table",
) -> int:
    """Run an experiment: its sweep, its comparison, its figures."""
    from gantline.cli.compare import show_comparisons
    from gantline.cli.means_table import show_means
    from gantline.cli.sweep import show_results
    from gantline.cli.sweeping import report_failures, run_watched, write_figures
    from gantline.experiment.charts import charts_of
    from gantline.experiment.compare import compare
    from gantline.experiment.comparison_files import store_comparisons
    from gantline.experiment.experiment import write_experiment
    from gantline.experiment.experiment_file import read_experiment
    from gantline.experiment.remarks import usable

    experiment = read_experiment(file)
    sweep = usable(run_watched(experiment.grid.cases(), out, workers, keep_runs=keep_runs))
    write_experiment(experiment, out / "experiment.yaml")
    write_figures(charts_of(sweep.results), out / "figures")
    if len({case.policy for case in sweep.cases}) > 1:
        found = compare(sweep, against=experiment.against, metrics=experiment.metrics, confidence=experiment.confidence)
        store_comparisons(found, out)
        show_comparisons(found, output)
    else:
        show_results(sweep, output) if output != "table" else show_means(sweep)
    say(f"results are in {out}")
    return report_failures(sweep)


@app.command
def check(file: ExperimentFile, /) -> None:
    """Check an experiment without running it."""
    from gantline.experiment.experiment_file import read_experiment

    experiment = read_experiment(file)
    cases = experiment.grid.cases()
    print(f"{experiment.title or file.name}: {len(cases)} runs of {len(experiment.grid.policies)} policies")
