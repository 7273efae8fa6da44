"""A bar on stderr while a long simulation runs and a person watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Tick = Callable[[float, int, int], None]


@contextmanager
def simulated_jobs(total: int, verb: str = "simulating") -> Iterator[Tick | None]:
    """A callback for `simulate(on_progress=...)`; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("jobs ended"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, step, shown = bar.add_task(verb, total=total), max(total // 500, 1), 0

        def tick(now: float, arrived: int, active: int) -> None:
            nonlocal shown
            if arrived - active >= shown + step:  # a run may report every decision, and a bar takes longer than one
                shown = arrived - active
                bar.update(task, completed=shown)

        yield tick


@contextmanager
def stories() -> Iterator[Callable[[int, int, str], None] | None]:
    """A callback for `check_policy(on_story=...)`; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with Progress(BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda number, total, name: bar.update(task, completed=number, total=total, description=name)
