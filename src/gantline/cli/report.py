"""``gantline report``: one offline page about stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import is_watched, say, show_text
from gantline.cli.figures import plotting
from gantline.core.errors import UsageError

app = App(
    name="report",
    help_epilogue="""'gantline simulate ... --out DIR' stores a run. Examples:

  gantline report runs/fifo runs/srtf -o report.html
  gantline report runs/srtf --chrome-trace srtf.json""",
)


@app.default
def report(
    *runs: Annotated[Path, Parameter(name="RUN", help="Directories of stored runs.")],
    out: Annotated[Path | None, Parameter(name=["--out", "-o"], help="The page, an .html file.")] = None,
    title: Annotated[str, Parameter(help="Its title.")] = "Gantline report",
    chrome_trace: Annotated[Path | None, Parameter(help="Also write one run as a trace for ui.perfetto.dev (JSON).")] = None,
) -> None:
    """Write one offline HTML page about one or several stored runs."""
    if not runs:
        raise UsageError("no run to report on", where="report", fix="name one or more run directories")
    if out is None and chrome_trace is None:
        raise UsageError("nowhere to write to", where="report", fix="add -o report.html")
    if chrome_trace is not None and len(runs) > 1:
        raise UsageError("a Chrome trace shows one run", where="--chrome-trace", fix="name one run directory")
    from gantline.report.rundir import read_run

    found = [read_run(run) for run in runs]
    if chrome_trace is not None:
        from gantline.report.chrome_trace import write_chrome_trace

        say(f"note: wrote {write_chrome_trace(found[0], chrome_trace)}")
    if out is None:
        return
    with plotting():
        from gantline.report.html import write_report

        write_report(found, out, title=title)
    if is_watched():
        from gantline.report.terminal import comparison, run_summary

        show_text(comparison(found) if len(found) > 1 else run_summary(found[0]))
    say(f"note: wrote {out}")
