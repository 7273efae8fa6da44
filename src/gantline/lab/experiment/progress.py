"""Progress on stderr with the time left, when a person watches; silence otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gantline.lab.experiment.grid import Case
from gantline.lab.experiment.records import FAILED, Outcome
from gantline.lab.experiment.sweep import OnOutcome


@contextmanager
def progress(title: str) -> Iterator[OnOutcome | None]:
    """A bar that a sweep moves; None, to be given to the sweep as it is, where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task(title, total=None)

        def show(done: int, total: int, case: Case, outcome: Outcome) -> None:
            bar.update(line, completed=done, total=total)
            if outcome.state == FAILED:
                bar.console.print(f"failed: {case.name}: {outcome.message}", style="red", markup=False, highlight=False)

        yield show
