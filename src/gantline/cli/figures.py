"""Figures by name, and the message for those who have no plotting library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gantline.core.errors import NotFoundError, UsageError, near

if TYPE_CHECKING:
    from gantline.report.figures import Chart
    from gantline.workload.trace import Trace

#: figure -> what it shows
FIGURES = {
    "jct-cdf": "distribution of job completion times",
    "timeline": "waiting jobs and utilisation over time",
    "gantt": "who held which device when (one run)",
    "fairness": "what each user received of what he asked for",
}


@contextmanager
def plotting() -> Iterator[None]:
    """Say what to install where the plotting libraries are missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("matplotlib", "plotly"):
            raise
        raise UsageError(f"figures need {error.name}", fix="pip install 'gantline[plot]'") from None


def chart_of(name: str, runs: Sequence[Any], by: str) -> Chart:
    """One figure of stored runs."""
    if name not in FIGURES:
        raise NotFoundError(f"no figure '{name}'", where="plot", fix=near(name, FIGURES))
    from gantline.report.figures import fairness_per_user, gantt, jct_cdf, queue_and_utilisation

    if name == "gantt":
        if len(runs) != 1:
            raise UsageError("a Gantt chart shows one run", where="plot gantt", fix="name one run directory")
        return gantt(runs[0], colour_by="user" if by == "user" else "job")
    return {"jct-cdf": jct_cdf, "timeline": queue_and_utilisation, "fairness": fairness_per_user}[name](runs)


def save_trace_figures(trace: Trace, folder: Path) -> list[Path]:
    """Sizes, durations and hours of the day of a trace, as PNG files in a folder."""
    with plotting():
        from gantline.report.figures import duration_cdf, hours_of_day, size_shares
        from gantline.report.figures.with_matplotlib import save

    folder.mkdir(parents=True, exist_ok=True)
    frame = trace.frame
    charts = (size_shares(frame["gpus"], frame["duration"]), duration_cdf(frame["duration"]), hours_of_day(frame["arrival"]))
    return [save(chart, folder / f"{chart.name}.png") for chart in charts]
