"""``gantline report``: one offline page about stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.arguments import finite_time_of, window_of
from gantline.cli.console import chart_width, is_watched, say, show_text
from gantline.cli.outputs import check_page_target
from gantline.core.errors import UsageError
from gantline.lab.experiment.folder import is_sweep, runs_in
from gantline.lab.experiment.sweep import read_sweep
from gantline.lab.report.chrome_trace import write_chrome_trace
from gantline.lab.report.html import write_report
from gantline.lab.report.metrics import Measuring, Window
from gantline.lab.report.rundir import read_run
from gantline.lab.report.terminal import comparison, run_summary
from gantline.traces.files.device_tables import read_prices
from gantline.traces.files.python_file import only_given

app = App(
    name="report",
    help_epilogue="""'gantline simulate ... --out DIR' stores a run. Examples:

  gantline report runs/fifo runs/srtf -o report.html
  gantline report runs/* -o report.html --warmup 1d --prices v100=0.74,k80=0.135
  gantline report runs/srtf --chrome-trace srtf.json
  gantline report sweep -o sweep.html
  gantline report ~/.gantline -o past.html""",
)


@app.default
def report(
    *runs: Annotated[Path, Parameter(name="RUN")],
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    title: str = "Gantline report",
    track: str | None = None,
    warmup: str = "0",
    prices: str | None = None,
    watts: str | None = None,
    chrome_trace: Path | None = None,
) -> None:
    """Write one offline HTML page about one or several stored runs, or about a sweep.

    Args:
        title: Its title.
        track: Measure jobs LO:HI only; by default those that the run tracked.
        warmup: Leave out jobs that arrive earlier than this after the first.
        prices: Money per device-hour: v100=0.74,k80=0.135, or a CSV or JSON file.
        watts: Mean power of a held device: v100=250,k80=150, or a CSV or JSON file.
        chrome_trace: Also write one run as a trace for ui.perfetto.dev (JSON).
        runs: Directories of stored runs, the folder of a sweep, or that of a service.
        out: The page, an .html file.
    """
    if not runs:
        raise UsageError("no run to report on", where="report", fix="name one or more run directories")
    if out is None and chrome_trace is None:
        raise UsageError("nowhere to write to", where="report", fix="add -o report.html")
    if chrome_trace is not None and len(runs) > 1:
        raise UsageError("a Chrome trace shows one run", where="--chrome-trace", fix="name one run directory")
    with only_given():  # the runs may be somebody else's
        _report(runs, out, title, track, warmup, prices, watts, chrome_trace)


def _report(
    runs: tuple[Path, ...], out: Path | None, title: str, track: str | None, warmup: str, prices: str | None, watts: str | None,
    chrome_trace: Path | None,
) -> None:  # fmt: skip
    check_page_target(out, "--out")
    if out is not None and len(runs) == 1 and is_sweep(runs[0]) and not (track or warmup != "0" or prices or watts or chrome_trace):
        read_sweep(runs[0]).report(out, title=title)
        say(f"note: wrote {out}")
        return

    found = [read_run(run) for folder in runs for run in runs_in(folder)]
    if chrome_trace is not None:
        say(f"note: wrote {write_chrome_trace(found[0], chrome_trace)}")
    if out is None:
        return
    measure_with = _measure(track, warmup, prices, watts)
    write_report(found, out, title=title, measure_with=measure_with)
    if is_watched():
        measures = [measure_with(run) for run in found]
        show_text(comparison(found, measures) if len(found) > 1 else run_summary(found[0], measures[0], chart_width()))
    say(f"note: wrote {out}")


def _measure(track: str | None, warmup: str, prices: str | None, watts: str | None) -> Measuring:
    """How to measure a run: which jobs count, what devices cost and draw."""
    cost = read_prices(prices, "--prices") or None
    power = read_prices(watts, "--watts") or None
    low, high = window_of(track) or (0, None)
    delay = finite_time_of(warmup, "--warmup") or 0.0
    window = Window(low, high, delay) if track or delay else None
    return Measuring(window, cost, power)
