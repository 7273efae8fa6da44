"""``gantline experiment run|check``: many runs described by a file that can be run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from gantline.cli.console import Form, say
from gantline.cli.run_options import Workers
from gantline.core.errors import UsageError

if TYPE_CHECKING:
    from gantline.lab.experiment.experiment import Experiment
    from gantline.lab.experiment.grid import Case

app = App(
    name="experiment",
    help_epilogue="""The format is in docs/experiments.md. Example:

  gantline experiment run las.yaml -o results""",
)

ExperimentFile = Annotated[Path, Parameter(help="The experiment, a YAML file.")]
Code = Annotated[
    list[str] | None,
    Parameter(
        name=["--policy", "--placement", "--performance"],
        negative="",
        help="What the experiment names of a Python file, FILE.py:NAME: code is loaded from here alone.",
    ),
]


@app.command
def run(
    file: ExperimentFile,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"], help="The folder of the results; one that exists is gone on with.")],
    code: Code = None,
    workers: Workers = None,
    keep_runs: Annotated[bool, Parameter(negative="", help="Store every run whole, for 'gantline report'.")] = False,
    output: Annotated[Form, Parameter(name="--output")] = "table",
) -> int:
    """Run an experiment: its sweep, its comparison, its figures."""
    from gantline.cli.compare import show_comparisons
    from gantline.cli.means_table import show_means
    from gantline.cli.sweep import show_results
    from gantline.cli.sweeping import report_failures, run_watched, write_figures
    from gantline.lab.experiment.charts import charts_of
    from gantline.lab.experiment.compare import compare
    from gantline.lab.experiment.comparison_files import store_comparisons
    from gantline.lab.experiment.experiment import write_experiment
    from gantline.lab.experiment.remarks import usable

    experiment, cases = _read(file, code)
    sweep = usable(run_watched(cases, out, workers, keep_runs=keep_runs))
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
def check(file: ExperimentFile, /, *, code: Code = None) -> None:
    """Check an experiment without running it."""
    experiment, cases = _read(file, code)
    print(f"{experiment.title or file.name}: {len(cases)} runs of {len(experiment.grid.policies)} policies")


def _read(file: Path, code: list[str] | None) -> tuple[Experiment, list[Case]]:
    """The experiment and its runs; the file may be somebody else's, so it names no code that the command line does not name."""
    from gantline.lab.experiment.experiment_file import read_experiment
    from gantline.traces.files.policies import code_named
    from gantline.traces.files.python_file import only_given

    given = code_named(*code or (), same_file=True)
    with only_given(given):
        experiment = read_experiment(file)
        cases = experiment.grid.cases()
    for one in given.unused:
        raise UsageError(f"the experiment names no '{one}'", where="--policy", fix="leave it out")
    return experiment, list(cases)
