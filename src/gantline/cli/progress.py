"""Bars on stderr while long work runs and a person watches; silence otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gantline.lab.experiment.grid import Case
from gantline.lab.experiment.records import FAILED, Outcome
from gantline.lab.experiment.sweep import OnOutcome

Tick = Callable[[float, int, int], None]


@contextmanager
def _bar(*more: ProgressColumn) -> Iterator[Progress | None]:
    """A bar with what it is about and how far it is; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *more)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar


@contextmanager
def simulated_jobs(total: int, verb: str = "simulating") -> Iterator[Tick | None]:
    """A callback for `simulate(on_progress=...)`."""
    with _bar(TextColumn("jobs ended"), TimeRemainingColumn()) as bar:
        if bar is None:
            yield None
            return
        task, step, shown = bar.add_task(verb, total=total), max(total // 500, 1), 0

        def tick(now: float, arrived: int, active: int) -> None:
            nonlocal shown
            if arrived - active >= shown + step:  # a run may report every decision, and a bar takes longer than one
                shown = arrived - active
                bar.update(task, completed=shown)

        yield tick


@contextmanager
def counted(title: str) -> Iterator[Callable[..., None] | None]:
    """A callback that is given how many are done, of how many, and what the present one is called."""
    with _bar(TimeElapsedColumn(), TimeRemainingColumn()) as bar:
        if bar is None:
            yield None
            return
        task = bar.add_task(title, total=None)
        yield lambda done, total, name=title: bar.update(task, completed=done, total=total, description=name)


@contextmanager
def runs_of_a_sweep() -> Iterator[OnOutcome | None]:
    """A callback for `run_sweep(on_outcome=...)`; runs that failed are named above the bar."""
    with _bar(TimeElapsedColumn(), TimeRemainingColumn()) as bar:
        if bar is None:
            yield None
            return
        task = bar.add_task("running", total=None)

        def show(done: int, total: int, case: Case, outcome: Outcome) -> None:
            bar.update(task, completed=done, total=total)
            if outcome.state == FAILED:
                bar.console.print(f"failed: {case.name}: {outcome.message}", style="red", markup=False, highlight=False)

        yield show
