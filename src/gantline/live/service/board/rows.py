"""A job as one row of the board, and the part of it that other users may see."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, TypeAlias

from gantline.live.view import JobView

Row: TypeAlias = tuple[Any, ...]
Wall: TypeAlias = Callable[[float | None], float | None]

#: the columns of a row, in order
COLUMNS: Final = (
    "key", "id", "name", "user", "queue", "state", "reason", "why", "gpus", "min_gpus", "max_gpus", "held", "priority",
    "submitted", "started", "ended", "restarts", "resizes", "failures", "exit_code", "array", "epoch", "estimate",
    "done", "total", "throughput", "loss",
)  # fmt: skip
KEY, USER, STATE, SUBMITTED, ENDED = (COLUMNS.index(name) for name in ("key", "user", "state", "submitted", "ended"))
RUNS: Final = frozenset({"starting", "running", "resizing", "preempting"})
_PUBLIC: Final = frozenset({"key", "state", "gpus", "min_gpus", "max_gpus", "held"})
_OTHERS: Final = {**dict.fromkeys(("id", "name", "user", "queue", "array"), "-"), "reason": "", "why": ""}
_HIDDEN: Final = tuple((name in _PUBLIC, _OTHERS.get(name)) for name in COLUMNS)

#: what a row is made of: a view that differs in nothing of this, as one that only ran for another second, gives the same row
shown_of = attrgetter(
    "id", "name", "user", "queue", "state", "reason", "why", "gpus", "min_gpus", "max_gpus", "devices", "priority",
    "submitted", "started", "finished", "restarts", "resizes", "failures", "exit_code", "array", "epoch", "estimate", "progress",
)  # fmt: skip


def row_of(job: JobView, key: int, wall: Wall) -> Row:
    """The row of a job; times are seconds since 1970."""
    value = job.progress.get
    return (
        key, job.id, job.name, job.user, job.queue, job.state, job.reason, job.why, job.gpus, job.min_gpus, job.max_gpus,
        len(job.devices), job.priority, wall(job.submitted), wall(job.started), wall(job.finished), job.restarts, job.resizes,
        job.failures, job.exit_code, job.array, job.epoch, job.estimate, value("done"), value("total"), value("throughput"), value("loss"),
    )  # fmt: skip


def hidden(row: Row) -> Row:
    """The row of a job of another user: that it is there, how large it is and what it holds, and nothing else."""
    return tuple(value if public else blank for value, (public, blank) in zip(row, _HIDDEN))
