"""Running many settings while a person watches: progress, what to do after Ctrl-C, which runs failed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from gantline.cli.console import Column, Sheet, printable, say, show
from gantline.cli.options import Backends
from gantline.cli.progress import runs_of_a_sweep
from gantline.lab.experiment.grid import Case
from gantline.lab.experiment.messages import notes_of, warnings_of
from gantline.lab.experiment.records import DONE, Outcome
from gantline.lab.experiment.results import SHOWN, means_of, spread
from gantline.lab.experiment.sweep import Sweep, run_sweep, with_common_warmup
from gantline.lab.report.figures import Chart
from gantline.lab.report.labels import speller
from gantline.lab.report.metrics import BY_KEY
from gantline.lab.report.run_warnings import is_broken

_PASSING = "gantline-runs-"  # folders of temporary files that are gone afterwards


def run_watched(
    cases: Sequence[Case], folder: Path, where: Backends | int | None, *, keep_runs: bool = False, limit: float = math.inf
) -> Sweep:
    """Run what is not there yet, with one warm-up for all policies where it is to be found; after Ctrl-C, say how to go on."""
    backends = where if isinstance(where, Backends) else Backends(workers=where)
    return with_common_warmup(cases, lambda some: _run_watched(some, folder, backends, keep_runs=keep_runs, limit=limit))


def _run_watched(cases: Sequence[Case], folder: Path, where: Backends, *, keep_runs: bool, limit: float) -> Sweep:
    if cases:
        jobs = cases[0].setting.trace.load(cases[0].setting.seed)  # a wrong file or setting would fail all runs, one after the other
        for text in jobs.notes:
            say(f"note: {printable(text)}")
    done = 0
    with runs_of_a_sweep() as show:

        def notice(finished: int, total: int, case: Case, outcome: Outcome) -> None:
            nonlocal done
            done = finished
            if show is not None:
                show(finished, total, case, outcome)

        try:
            sweep = run_sweep(cases, folder, backend=where.make(len(cases), limit), keep_runs=keep_runs, on_outcome=notice)
        except KeyboardInterrupt:
            kept = f" and kept in {folder}: the same command goes on from there" if _is_kept(folder) else "; --out would have kept them"
            say(f"stopped; {done} of {len(cases)} runs are done{kept}")
            raise
    if sweep.reused:
        say(f"{sweep.reused} of {len(cases)} runs were there already")
    return sweep


def report_failures(sweep: Sweep) -> int:
    """List the runs that failed or are in doubt, and what else a reader should know; the exit code says whether results can be used."""
    for case, message in sweep.failures:
        say(f"failed: {printable(case.name)}: {message}")
    if sweep.failures:
        kept = f"; details are in {sweep.folder / 'runs'}" if _is_kept(sweep.folder) else ""
        say(f"{len(sweep.failures)} of {len(sweep.cases)} runs failed{kept}")
    for text in warnings_of(sweep):
        say(f"warning: {printable(text)}")
    for text in notes_of(sweep):
        say(f"note: {printable(text)}")
    broken = any(is_broken(record.summary) for record in sweep.records if record.state == DONE)
    return 1 if sweep.failures or broken else 0


@contextmanager
def kept_or_not(folder: Path | None) -> Iterator[Path]:
    """The folder, or one that is gone afterwards."""
    if folder is not None:
        yield folder
        return
    with TemporaryDirectory(prefix=_PASSING) as name:
        yield Path(name)


def _is_kept(folder: Path) -> bool:
    """Whether a folder of runs is still there after the command."""
    return not any(place.name.startswith(_PASSING) and place.parent == Path(gettempdir()) for place in (folder, *folder.parents))


def write_figures(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Draw charts as PNG and SVG, where matplotlib is installed."""
    try:
        from gantline.lab.report.figures.with_matplotlib import save_each
    except ModuleNotFoundError:
        say("no figures, because matplotlib is not installed (pip install 'gantline[plot]')")
        return []
    folder.mkdir(parents=True, exist_ok=True)
    return [path for chart in charts for path in save_each(chart, [folder / f"{chart.name}.{form}" for form in ("png", "svg")])]


# How a sweep ends on the screen: a row per policy and place, means with their intervals.

BOUNDED = ("jct_mean", "jct_p95", "makespan")
"""Metrics whose interval is shown; the table for programs has all."""


def show_means(found: Sweep, metrics: Sequence[str] = ()) -> None:
    """Print means over seeds; where there are runs enough, the 95 % interval is beside each."""
    frame = means_of(found.results, metrics or SHOWN)
    shown = [BY_KEY[key] for key in metrics or SHOWN]
    places = frame.columns[: frame.columns.index("runs")]
    columns = [Column(name, right=frame[name].dtype.is_numeric()) for name in (*places, "runs")]
    rows = [[*(row[name] for name in places), f"{row['runs']}{row['mark']}"] for row in frame.iter_rows(named=True)]
    for metric in shown:
        write = speller(metric, frame[metric.key].to_list())
        bounds = [spread(row[f"{metric.key}_low"], row[f"{metric.key}_high"], write) for row in frame.iter_rows(named=True)]
        columns.append(Column(metric.key, True, title=metric.title.replace("percentile of ", ""), whole=True))
        for row, value in zip(rows, frame[metric.key]):
            row.append(write(value))
        if any(bounds) and metric.key in BOUNDED:
            columns.append(Column(f"{metric.key} interval", True, title="95 %", whole=True))
            for row, bound in zip(rows, bounds):
                row.append(bound)
    show(Sheet(tuple(columns), rows), "table")
    if frame["failed"].sum():
        say("note: failed runs are left out of the means")


def show_sweep(found: Sweep, form: str) -> None:
    """Print means for people, and for programs a row per run with everything."""
    if form == "table":
        show_means(found)
    else:
        show(Sheet.of_frame(found.results), form)
