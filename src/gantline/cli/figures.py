"""Figures by name, and the message where no plotting library is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gantline.core.errors import NotFoundError, UsageError, near

if TYPE_CHECKING:
    from gantline.lab.report.figures import Chart
    from gantline.traces.trace import Trace

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
    from gantline.lab.report import figures

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
        from gantline.lab.report.figures import duration_cdf, hours_of_day, size_shares
        from gantline.lab.report.figures.with_matplotlib import save

    folder.mkdir(parents=True, exist_ok=True)
    frame = trace.frame
    charts = (size_shares(frame["gpus"], frame["duration"]), duration_cdf(frame["duration"]), hours_of_day(frame["arrival"]))
    return [save(chart, folder / f"{chart.name}.png") for chart in charts]
