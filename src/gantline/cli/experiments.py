"""``gantline compare``: several policies on the same jobs, paired differences, a verdict in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.arguments import time_of
from gantline.cli.console import Column, Form, Sheet, say, show, show_json
from gantline.cli.many_runs import kept_or_not, report_failures, run_watched, show_sweep, write_figures
from gantline.cli.options import HERE, Backends, Limit, Policies, RunOptions, Seeds, TraceName, Workers, numbers_of, seeds_of, varied_of
from gantline.core.errors import UsageError
from gantline.lab.experiment.api import compared, usual_seeds
from gantline.lab.experiment.charts import charts_of
from gantline.lab.experiment.compare import METRICS, Comparison, differences_of, sentences_of, store_comparisons
from gantline.lab.experiment.compare import compare as compare_runs
from gantline.lab.experiment.experiment import Experiment, read_experiment, write_experiment
from gantline.lab.experiment.grid import Case, Grid, policies_of
from gantline.lab.experiment.messages import truth_known, usable
from gantline.lab.experiment.saturation import Saturation, find_saturation, runner
from gantline.lab.report.labels import spell
from gantline.lab.report.metrics import BY_KEY
from gantline.lab.report.run_warnings import MARK
from gantline.traces.files.policies import code_named
from gantline.traces.files.python_file import only_given

compare_app = App(
    name="compare",
    help_epilogue="""Of a generator there are five seeds, which are paired; of a file one run: numbers without a verdict. Examples:

  gantline compare jobs.csv --cluster 32x4 --policy fifo,srtf,las
  gantline compare philly --trace-set jobs=2000 --trace-set gpus=128 --trace-set load=0.9 --cluster 16x8 --policy fifo,las --seeds 10""",
)


@compare_app.default
def compare(
    trace: TraceName,
    /,
    *,
    policy: Policies,
    options: RunOptions,
    against: str = "",
    metric: list[str] | None = None,
    seeds: Seeds = None,
    confidence: float = 0.95,
    workers: Workers = None,
    out: Path | None = None,
    output: Form = "table",
) -> int:
    """Compare policies on the same jobs.

    Args:
        against: The policy to compare with; by default the first.
        metric: What to compare: jct_mean, jct_p95, makespan, utilization, ...; may be repeated.
        confidence: Of the intervals, 0.99 at most; levels above 0.95 need ten seeds.
        out: Keep runs, differences, pairs and figures in this folder.
    """
    base = options.base(trace)
    chosen = seeds_of(seeds, usual_seeds(base))
    with kept_or_not(out) as folder:
        run = partial(run_watched, folder=folder, where=workers)
        found = compared(base, policies_of(policy), chosen, run, against, metric or METRICS, confidence)
        if found.left_out:
            say(f"warning: {found.left_out}")
        if out is not None:
            store_comparisons(found.comparisons, out)
            write_figures(charts_of(found.runs.results), out / "figures")
        show_comparisons(found.comparisons, output)
        for sentence in truth_known(found.runs):
            say(f"note: {sentence}")
        return report_failures(found.runs)


def show_comparisons(found: Sequence[Comparison], form: str) -> None:
    """Print differences and verdicts: a table and sentences for people, everything for programs."""
    frame, sentences = differences_of(found), sentences_of(found)
    if form == "json":
        show_json({"verdicts": sentences, "differences": frame.to_dicts()})
        return
    if form == "csv":
        show(Sheet.of_frame(frame), form)
        return
    level = f"{100 * found[0].differences[0].change.confidence:g} %" if found[0].differences else "interval"
    names = ("policy", "against", "metric", "its value", "theirs", "change", level, "p, together", "over")
    rows = [
        [
            *comparison.place.values(),
            item.policy + (MARK if item.doubts else ""),
            item.against + (MARK if item.doubts_against else ""),
            BY_KEY[item.metric].title,
            spell(BY_KEY[item.metric], item.value),
            spell(BY_KEY[item.metric], item.value_against),
            f"{100 * item.change.value:+.1f} %" if math.isfinite(item.change.value) else "–",
            f"{100 * item.change.low:+.1f}..{100 * item.change.high:+.1f} %" if item.change.known else "",
            f"{item.p:.2g}" if math.isfinite(item.p) else "",
            f"{item.change.samples} {item.over}" if item.over else "one run",
        ]
        for comparison in found
        for item in comparison.differences
    ]
    columns = [Column(name) for name in found[0].place] + [Column(name, right=name in names[3:8]) for name in names]
    show(Sheet(tuple(columns), rows), form)
    print()
    for sentence in sentences:
        print(sentence)


# ``gantline sweep``: policies x loads x seeds x any parameter, in parallel, resumable.

sweep_app = App(
    name="sweep",
    help_epilogue="""Run the same command again to go on after a stop: what is done is not done twice. Examples:

  gantline sweep jobs.csv --cluster 32x4 --policy fifo,srtf,las --load 0.8,1,1.2 --out results
  gantline sweep philly --trace-set jobs=2000 --trace-set gpus=128 --cluster 16x8 --policy srtf,las --load 0.7,0.9 --seeds 5 --out results
  gantline sweep jobs.csv --cluster 32x4 --policy tiresias --vary 'tiresias.limits=3600;3600,36000' --vary round=60,300 --out results""",
)


@sweep_app.default
def sweep(
    trace: TraceName,
    /,
    *,
    policy: Policies,
    options: RunOptions,
    out: Path,
    load: str | None = None,
    seeds: Seeds = None,
    vary: list[str] | None = None,
    where: Backends = HERE,
    limit: Limit = "inf",
    keep_runs: bool = False,
    output: Form = "table",
) -> int:
    """Run every combination of policies, loads, seeds and other values.

    Args:
        out: The folder of the results; one that exists is gone on with.
        load: Loads: factors on the arrivals of a file, or the generator's load (0.7,0.9); some have --vary
            trace.jobs_per_hour.
        vary: Another axis, such as round=60,300, trace.jobs=..., POLICY.PARAMETER=...; may be repeated.
        keep_runs: Store every run whole, for 'gantline report'.
    """
    grid = Grid(options.base(trace), policies_of(policy), numbers_of(load, "--load"), seeds_of(seeds, 1), varied_of(vary))
    grid.refuse_values_beside_axes()
    most = time_of(limit, "--limit", above=True) or math.inf
    found = usable(run_watched(grid.cases(), out, where, keep_runs=keep_runs, limit=most))
    write_experiment(Experiment(grid, title=f"sweep of {trace}"), out / "experiment.yaml")
    write_figures(charts_of(found.results), out / "figures")
    show_sweep(found, output)
    say(f"results are in {out / 'results.parquet'}")
    return report_failures(found)


# ``gantline experiment run|check``: many runs described by a file that can be run again.

experiment_app = App(
    name="experiment",
    help_epilogue="""The format is in docs/experiments.md. Example:

  gantline experiment run las.yaml -o results""",
)

ExperimentFile = Annotated[Path, Parameter(help="The experiment, a YAML file.")]
Code = Annotated[
    list[str] | None,
    Parameter(
        name=["--policy", "--placement", "--performance"],
        help="What the experiment names of a Python file, FILE.py:NAME: code is loaded from here alone.",
    ),
]


@experiment_app.command
def run(
    file: ExperimentFile,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    code: Code = None,
    workers: Workers = None,
    keep_runs: bool = False,
    output: Annotated[Form, Parameter(name="--output")] = "table",
) -> int:
    """Run an experiment: its sweep, its comparison, its figures.

    Args:
        keep_runs: Store every run whole, for 'gantline report'.
        out: The folder of the results; one that exists is gone on with.
    """
    experiment, cases = _read(file, code)
    sweep = usable(run_watched(cases, out, workers, keep_runs=keep_runs))
    write_experiment(experiment, out / "experiment.yaml")
    write_figures(charts_of(sweep.results), out / "figures")
    if len({case.policy for case in sweep.cases}) > 1:
        found = compare_runs(sweep, against=experiment.against, metrics=experiment.metrics, confidence=experiment.confidence)
        store_comparisons(found, out)
        show_comparisons(found, output)
    else:
        show_sweep(sweep, output)
    say(f"results are in {out}")
    return report_failures(sweep)


@experiment_app.command
def check(file: ExperimentFile, /, *, code: Code = None) -> None:
    """Check an experiment without running it."""
    experiment, cases = _read(file, code)
    print(f"{experiment.title or file.name}: {len(cases)} runs of {len(experiment.grid.policies)} policies")


def _read(file: Path, code: list[str] | None) -> tuple[Experiment, list[Case]]:
    """The experiment and its runs; the file may be somebody else's, so it names no code that the command line does not name."""
    given = code_named(*code or (), same_file=True)
    with only_given(given):
        experiment = read_experiment(file)
        cases = experiment.grid.cases()
    for one in given.unused:
        raise UsageError(f"the experiment names no '{one}'", where="--policy", fix="leave it out")
    return experiment, list(cases)


# ``gantline experiment saturate``: the load at which a policy no longer keeps up.

saturate_app = App(
    name="saturate",
    help_epilogue="""A load is a factor on the arrivals of a file, or what a generator calls its load. Examples:

  gantline experiment saturate steady --cluster 16x8 --policy fifo,srtf --between 0.3:1.1
  gantline experiment saturate blox --trace-set jobs=4000 --cluster 32x4 --policy las --by trace.jobs_per_hour --between 4:12""",
)


@saturate_app.default
def saturate(
    trace: TraceName,
    /,
    *,
    policy: Policies,
    options: RunOptions,
    between: str = "0.2:1.2",
    tolerance: float = 0.05,
    by: str = "load",
    seeds: Seeds = None,
    workers: Workers = None,
    out: Path | None = None,
    output: Form = "table",
) -> None:
    """Search for the load at which a policy saturates.

    Args:
        between: LOW:HIGH, a load that is sustained and one that is not.
        tolerance: How close the two may come, for every seed.
        by: What sets the load: load, trace.scale, trace.jobs_per_hour, ...
        out: Keep the runs in this folder; a search that was stopped goes on from there.
    """
    low, high = _range(between)
    base = options.base(trace)
    found = []
    with kept_or_not(out) as folder:
        for choice in policies_of(policy):
            run_all = runner(folder, lambda cases, place: run_watched(cases, place, workers))
            search = {"low": low, "high": high, "tolerance": tolerance, "seeds": seeds_of(seeds, 5), "by": by}
            found.append(find_saturation(base, choice, run_all, **search))  # type: ignore[arg-type]
    if output == "json":
        show_json([_as_json(one) for one in found])
        return
    columns = (
        Column("policy"),
        Column("load", True, lambda value: f"{value:g}"),
        Column("runs", True),
        Column("steady runs", True, lambda value: f"{100 * value:.0f} %"),
        Column("mean queue", True, lambda value: spell(BY_KEY["queue_mean"], value)),
        Column("mean JCT", True, lambda value: spell(BY_KEY["jct_mean"], value)),
    )
    show(Sheet(columns, [(one.policy, *row) for one in found for row in one.tried.rows()]), output)
    if output == "table":
        for one in found:
            print(one)


def _as_json(one: Saturation) -> dict[str, object]:
    """Plain values; bounds that are not known are null."""
    load = one.load
    known = {"load": load.value, "low": load.low, "high": load.high, "confidence": load.confidence, "seeds": load.samples}
    return {"policy": one.policy, **known, "below": one.below, "above": one.above, "tried": one.tried.to_dicts()}


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise UsageError(f"'{text}' is not a range of loads", where="--between", fix="write 0.2:1.2") from None
    return low, high


experiment_app.command(saturate_app)
experiment_app.command("gantline.cli.studies:coverage_app", name="coverage")
