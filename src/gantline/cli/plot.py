"""``gantline plot``: one figure of stored runs as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from gantline.cli.console import say
from gantline.cli.figures import FIGURES, chart_of, plotting
from gantline.core.errors import UsageError

_LIST = "\n".join(f"  {name.ljust(10)}{told}" for name, told in FIGURES.items())
app = App(name="plot", help_epilogue=f"Figures:\n\n{_LIST}\n\n'gantline simulate ... --out DIR' stores a run.")


@app.default
def plot(
    figure: Annotated[str, Parameter(name="FIGURE", help="A figure from the list below.")],
    *runs: Annotated[Path, Parameter(name="RUN", help="Directories of stored runs.")],
    out: Annotated[Path, Parameter(name=["--out", "-o"], help="The file: .png, .svg or .pdf.")],
    by: Annotated[Literal["job", "user"], Parameter(help="What the colours of a Gantt chart mean.")] = "job",
    dark: Annotated[bool, Parameter(negative="", help="Light on dark.")] = False,
) -> None:
    """Write a figure of stored runs as PNG, SVG or PDF."""
    if not runs:
        raise UsageError("no run to draw", where=f"plot {figure}", fix="name one or more run directories")
    from gantline.report.rundir import read_run

    with plotting():
        from gantline.report.figures import DARK, LIGHT
        from gantline.report.figures.with_matplotlib import save

        chart = chart_of(figure, [read_run(run) for run in runs], by)
        save(chart, out, theme=DARK if dark else LIGHT)
    say(f"note: wrote {out}")
