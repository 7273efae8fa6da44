"""``gantline plot``: one figure of stored runs, or of a sweep, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.arguments import settings_of
from gantline.cli.console import say
from gantline.cli.figures import RUN_FIGURES, SWEEP_FIGURES, chart_of_runs, check_figure, plotting
from gantline.core.errors import UsageError

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
    figure: Annotated[str, Parameter(name="FIGURE", help="A figure from the lists below.")],
    *folders: Annotated[Path, Parameter(name="DIR", help="Directories of stored runs, or the folder of one sweep.")],
    out: Annotated[Path, Parameter(name=["--out", "-o"], help="The file: .png, .svg or .pdf.")],
    by: Annotated[str, Parameter(help="gantt: what colours mean, job or user; load: the axis, if it is not 'load'.")] = "",
    metric: Annotated[
        list[str] | None, Parameter(negative="", help="load, seeds: what to show; pareto: give two. By default jct_mean, ...")
    ] = None,
    where: Annotated[
        list[str] | None, Parameter(negative="", help="Figures of sweeps: runs with this value of an axis only, load=0.9; may be repeated.")
    ] = None,
    size: Annotated[str | None, Parameter(help="Inches: 5x3, or a width, 3.33.")] = None,
    font: Annotated[float | None, Parameter(help="Points of the text.")] = None,
    title: Annotated[str | None, Parameter(help="Another title; '' for none.")] = None,
    preset: Annotated[str, Parameter(help="column (of a two-column paper), text (both columns) or slide.", show_default=False)] = "",
    dark: Annotated[bool, Parameter(negative="", help="Light on dark.")] = False,
) -> None:
    """Write a figure of stored runs or of a sweep as PNG, SVG or PDF."""
    check_figure(figure, by, metric or (), where or ())
    if not folders:
        raise UsageError("nothing to draw", where=f"plot {figure}", fix="name one or more run directories, or the folder of a sweep")
    from gantline.traces.files.python_file import only_given

    with plotting(), only_given():  # the runs may be somebody else's
        from gantline.lab.report.figures import DARK, LIGHT
        from gantline.lab.report.figures.with_matplotlib import Look, save

        if figure in SWEEP_FIGURES:
            from gantline.lab.experiment.charts import chart_of_sweep
            from gantline.lab.experiment.folder import read_results

            if len(folders) > 1:
                raise UsageError("shows one sweep", where=f"plot {figure}", fix="name one folder")
            chart = chart_of_sweep(figure, read_results(folders[0]), by, metric or (), settings_of(where, "--where"))
        else:
            from gantline.lab.experiment.folder import is_sweep, runs_in
            from gantline.lab.report.rundir import read_run

            if figure == "jct-cdf" and len(folders) == 1 and is_sweep(folders[0]):  # which keeps the jobs of its runs in any case
                from gantline.lab.experiment.completion_times import completion_times
                from gantline.lab.experiment.sweep import read_sweep

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
