"""Queues that jobs name: known, made on the spot, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gantline.core.errors import NotFoundError, near
from gantline.core.inputs import Input, SetQueue
from gantline.core.queues import known_names
from gantline.runtime.records import Entry

if TYPE_CHECKING:
    from gantline.runtime.scheduler import Scheduler

UNKNOWN = ("refuse", "create")
"""What can become of a job that names a queue which does not exist."""


def made_for(scheduler: Scheduler, queue: str, user: str, at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
    """What enters before a job of this queue: nothing where the queue exists; else the queue, or the job is refused."""
    known = known_names(scheduler.loop.state.tables.queue_tree)
    if queue in known:
        return (), ()
    if scheduler.setup.unknown_queues == "refuse":
        names = near(queue, known - {""}) if len(known) > 1 else "there is none yet"
        raise NotFoundError(f"no queue '{queue}'", where="queue", fix=f"{names}; an operator makes one: gantline queue set {queue}")
    told = {"time": at, "event": "queue-created", "queue": queue, "user": user}
    return [SetQueue(at, queue)], [Entry("queue", {"name": queue}), Entry("event", told)]
