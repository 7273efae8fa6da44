"""Where tasks run: the interface between a sweep and what runs its tasks.

A backend takes tasks and yields an outcome for each, in any order, as they end: in this process, in worker processes of this machine
(`workers`), or on a Ray cluster (`ray_backend`), from which files of the result are sent back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Protocol

from gantline.core.errors import UsageError
from gantline.lab.experiment.outcome import Outcome
from gantline.lab.experiment.task import Task, perform


class Backend(Protocol):
    """Runs tasks."""

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Yield one outcome per task as they end; closing the iterator stops what still runs."""


class InThisProcess:
    """One task after the other, here."""

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        for task in tasks:
            yield perform(task)


def choose_backend(workers: int, limit: float = math.inf) -> Backend:
    """This process for one worker, else that many worker processes; only those can be ended after `limit` seconds."""
    from gantline.lab.experiment.workers import WorkerProcesses

    if workers < 1:
        raise UsageError(f"{workers} workers cannot run anything", where="--workers", fix="give at least 1")
    return InThisProcess() if workers == 1 and math.isinf(limit) else WorkerProcesses(workers, limit)


def outcomes(backend: Backend, tasks: Sequence[Task]) -> Iterator[Outcome]:
    """All outcomes; leaving early, by an error or by Ctrl-C, stops the backend."""
    with closing(backend.run(tasks)) as stream:  # type: ignore[type-var]
        yield from stream


@contextmanager
def kept_backend(workers: int) -> Iterator[Backend]:
    """The same, with processes that stay from one batch of tasks to the next."""
    backend = choose_backend(workers)
    with backend if isinstance(backend, AbstractContextManager) else nullcontext():
        yield backend
