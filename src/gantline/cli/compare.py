"""``gantline compare``: several policies on the same jobs, paired differences, a verdict in words."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from gantline.cli.console import Column, Form, Sheet, say, show, show_json
from gantline.cli.run_options import Policies, RunOptions, Seeds, Workers, seeds_of
from gantline.cli.trace_options import TraceName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantline.lab.experiment.compare import Comparison

_SEEDS_OF_A_GENERATOR = 5

app = App(
    name="compare",
    help_epilogue="""Of a generator there are five seeds, which are paired; of a file one run: numbers without a verdict. Examples:

  gantline compare jobs.csv --cluster 32x4 --policy fifo,srtf,las
  gantline compare philly --trace-set jobs=2000 --trace-set gpus=128 --trace-set load=0.9 --cluster 16x8 --policy fifo,las --seeds 10""",
)


@app.default
def compare(
    trace: TraceName,
    /,
    *,
    policy: Policies,
    options: RunOptions,
    against: Annotated[str, Parameter(help="The policy to compare with; by default the first.")] = "",
    metric: Annotated[
        list[str] | None, Parameter(negative="", help="What to compare: jct_mean, jct_p95, makespan, utilization, ...; may be repeated.")
    ] = None,
    seeds: Seeds = None,
    confidence: Annotated[float, Parameter(help="Of the intervals, 0.99 at most; levels above 0.95 need ten seeds.")] = 0.95,
    workers: Workers = None,
    out: Annotated[Path | None, Parameter(help="Keep runs, differences, pairs and figures in this folder.")] = None,
    output: Form = "table",
) -> int:
    """Compare policies on the same jobs."""
    from gantline.cli.sweeping import kept_or_not, report_failures, run_watched, write_figures
    from gantline.lab.experiment.charts import charts_of
    from gantline.lab.experiment.compare import METRICS, check_asked
    from gantline.lab.experiment.compare import compare as compare_runs
    from gantline.lab.experiment.comparison_files import store_comparisons
    from gantline.lab.experiment.grid import Grid, policies_of
    from gantline.lab.experiment.history import check_against, with_what_happened
    from gantline.lab.experiment.knowledge import truth_known
    from gantline.lab.experiment.remarks import usable

    base = options.base(trace)
    grid = Grid(base, policies_of(policy), seeds=seeds_of(seeds, _SEEDS_OF_A_GENERATOR if base.trace.generator else 1))
    check_against(against, grid.policies)
    check_asked(metric or METRICS, confidence)
    with kept_or_not(out) as folder:
        sweep, left_out = with_what_happened(usable(run_watched(grid.cases(), folder, workers)), base)
        if left_out:
            say(f"warning: {left_out}")
        found = compare_runs(sweep, against=against, metrics=metric or METRICS, confidence=confidence)
        if out is not None:
            store_comparisons(found, out)
            write_figures(charts_of(sweep.results), out / "figures")
        show_comparisons(found, output)
        for sentence in truth_known(sweep):
            say(f"note: {sentence}")
        return report_failures(sweep)


def show_comparisons(found: Sequence[Comparison], form: str) -> None:
    """Print differences and verdicts: a table and sentences for people, everything for programs."""
    from gantline.lab.experiment.comparison_files import differences_of, sentences_of
    from gantline.lab.report.doubts import MARK
    from gantline.lab.report.metrics import BY_KEY
    from gantline.lab.report.numbers import spell

    frame, sentences = differences_of(found), sentences_of(found)
    if form == "json":
        show_json({"verdicts": sentences, "differences": frame.to_dicts()})
        return
    if form == "csv":
        show(Sheet(tuple(Column(name) for name in frame.columns), frame.rows()), form)
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
