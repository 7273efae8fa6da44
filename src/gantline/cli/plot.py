"""``gantline plot``: one figure of stored runs, or of a sweep, as a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from gantline.cli.arguments import settings_of
from gantline.cli.console import say
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.lab.experiment.charts import chart_of_sweep, completion_times
from gantline.lab.experiment.folder import is_sweep, read_results, runs_in
from gantline.lab.experiment.sweep import read_sweep
from gantline.lab.report import figures
from gantline.lab.report.figures import DARK, LIGHT, Chart, duration_cdf, hours_of_day, size_shares
from gantline.lab.report.rundir import read_run
from gantline.traces.files.python_file import only_given
from gantline.traces.trace import Trace

# Figures by name, and the message where no plotting library is installed.

#: figure -> what it shows
RUN_FIGURES = {
    "jct-cdf": "distribution of job completion times",
    "timeline": "waiting jobs and utilization over time",
    "fragmentation": "free GPUs that no waiting job could use, over time",
    "gantt": "which job held which device when (one run)",
    "fairness": "what each user received of what he asked for",
    "progress": "work done and machines held by each user over time (one run)",
}
SWEEP_FIGURES = {
    "load": "a metric against load (or another axis, --by), with intervals over seeds",
    "seeds": "the spread of a metric over seeds, a box per policy",
    "pareto": "two metrics against each other, and which policies no other one beats",
}
FIGURES = RUN_FIGURES | SWEEP_FIGURES
_BY = ("gantt", "load")
_METRICS = {"load": 1, "seeds": 1, "pareto": 2}
"""How many metrics a figure shows."""


@contextmanager
def plotting() -> Iterator[None]:
    """Say what to install where the plotting libraries are missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "matplotlib":
            raise
        raise UsageError(f"figures need {error.name}", fix="pip install 'gantline[plot]'") from None


def check_figure(name: str, by: str, metrics: Sequence[str], where: Sequence[str]) -> None:
    """Refuse an unknown figure, and options that it does not read."""
    if name not in FIGURES:
        raise NotFoundError(f"no figure '{name}'", where="plot", fix=near(name, FIGURES))
    if by and name not in _BY:
        raise UsageError(f"{name} does not read it", where="--by", fix=f"leave it out; it is for {' and '.join(_BY)}")
    if where and name not in SWEEP_FIGURES:
        raise UsageError(f"{name} does not read it", where="--where", fix="leave it out; it is for figures of sweeps")
    most = _METRICS.get(name, 0)
    if len(metrics) > most:
        fix = f"give {most}" if most else f"leave it out; it is for {', '.join(_METRICS)}"
        given = "1 is" if len(metrics) == 1 else f"{len(metrics)} are"
        raise UsageError(f"{name} shows {most or 'none'} of them, and {given} given", where="--metric", fix=fix)
    if len(set(metrics)) < len(metrics):
        raise UsageError(f"'{metrics[0]}' is named twice", where="--metric", fix="name two that differ")


def chart_of_runs(name: str, runs: Sequence[Any], by: str) -> Chart:
    """One figure of stored runs."""
    if name == "gantt":
        if len(runs) != 1:
            raise UsageError("a Gantt chart shows one run", where="plot gantt", fix="name one run directory")
        if by not in ("", "job", "user"):
            raise UsageError(f"colours cannot mean '{by}'", where="--by", fix="write job or user")
        return figures.gantt(runs[0], colour_by="user" if by == "user" else "job")
    if name == "progress":
        if len(runs) != 1:
            raise UsageError("progress is drawn for one run", where="plot progress", fix="name one run directory")
        return figures.progress_per_user(runs[0])
    drawn: dict[str, Callable[[Sequence[Any]], Chart]] = {
        "jct-cdf": figures.jct_cdf,
        "timeline": figures.queue_and_utilization,
        "fragmentation": figures.fragmentation_over_time,
        "fairness": figures.fairness_per_user,
    }
    return drawn[name](runs)


def save_trace_figures(trace: Trace, folder: Path) -> list[Path]:
    """Sizes, durations and hours of the day of a trace, as PNG files in a folder."""
    with plotting():
        from gantline.lab.report.figures.with_matplotlib import save

    folder.mkdir(parents=True, exist_ok=True)
    frame = trace.frame
    charts = (size_shares(frame["gpus"], frame["duration"]), duration_cdf(frame["duration"]), hours_of_day(frame["arrival"]))
    return [save(chart, folder / f"{chart.name}.png") for chart in charts]


_MOST = 8  # curves that a figure can hold


def _listed(figures: dict[str, str]) -> str:
    return "\n".join(f"  {name.ljust(15)}{text}" for name, text in figures.items())


app = App(
    name="plot",
    help_epilogue=f"""Figures of runs ('gantline simulate ... --out DIR' stores one):

{_listed(RUN_FIGURES)}

Figures of a sweep (the folder of 'gantline sweep', 'compare' or 'experiment run'):

{_listed(SWEEP_FIGURES)}""",
)


@app.default
def plot(
    figure: Annotated[str, Parameter(name="FIGURE")],
    *folders: Annotated[Path, Parameter(name="DIR")],
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    by: str = "",
    metric: list[str] | None = None,
    where: list[str] | None = None,
    size: str | None = None,
    font: float | None = None,
    title: str | None = None,
    preset: str = "",
    dark: bool = False,
) -> None:
    """Write a figure of stored runs or of a sweep as PNG, SVG or PDF.

    Args:
        by: gantt: what colours mean, job or user; load: the axis, if it is not 'load'.
        metric: load, seeds: what to show; pareto: give two. By default jct_mean, ...
        where: Figures of sweeps: runs with this value of an axis only, load=0.9; may be repeated.
        size: Inches: 5x3, or a width, 3.33.
        font: Points of the text.
        title: Another title; '' for none.
        dark: Light on dark.
        figure: A figure from the lists below.
        folders: Directories of stored runs, or the folder of one sweep.
        out: The file: .png, .svg or .pdf.
        preset: column (of a two-column paper), text (both columns) or slide.
    """
    check_figure(figure, by, metric or (), where or ())
    if not folders:
        raise UsageError("nothing to draw", where=f"plot {figure}", fix="name one or more run directories, or the folder of a sweep")
    with plotting(), only_given():  # the runs may be somebody else's
        from gantline.lab.report.figures.with_matplotlib import Look, save

        if figure in SWEEP_FIGURES:
            if len(folders) > 1:
                raise UsageError("shows one sweep", where=f"plot {figure}", fix="name one folder")
            chart = chart_of_sweep(figure, read_results(folders[0]), by, metric or (), settings_of(where, "--where"))
        else:
            if figure == "jct-cdf" and len(folders) == 1 and is_sweep(folders[0]):  # which keeps the jobs of its runs in any case
                save(completion_times(read_sweep(folders[0])), out, theme=DARK if dark else LIGHT, look=Look.of(size, font, title, preset))
                say(f"note: wrote {out}")
                return
            runs = [run for folder in folders for run in runs_in(folder)]
            if any(map(is_sweep, folders)) and figure in ("gantt", "progress") and len(runs) > 1:
                raise UsageError("shows one run", where=f"plot {figure}", fix=f"name one of {folders[0] / 'by-name'}")
            if len(runs) > _MOST:
                say(f"warning: {figure} shows {_MOST} runs, and {len(runs)} are named: the first ones are drawn")
            chart = chart_of_runs(figure, [read_run(run) for run in runs[:_MOST]], by)
        save(chart, out, theme=DARK if dark else LIGHT, look=Look.of(size, font, title, preset))
    say(f"note: wrote {out}")
