"""Queues that jobs name: known, created on demand, or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gantline.core.errors import NotFoundError, near
from gantline.core.inputs import Input, SetQueue
from gantline.core.queues import Queue, known_names
from gantline.live.records import Entry


def made_for(tree: Mapping[str, Queue], unknown: str, queue: str, user: str, at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
    """What enters before a job of this queue: nothing where the tree has the queue; else the queue, or the job is refused."""
    known = known_names(tree)
    if queue in known:
        return (), ()
    if unknown == "refuse":
        names = near(queue, known - {""}) if len(known) > 1 else "there is none yet"
        raise NotFoundError(f"no queue '{queue}'", where="queue", fix=f"{names}; an operator makes one: gantline queue set {queue}")
    event = {"time": at, "event": "queue-created", "queue": queue, "user": user}
    return [SetQueue(at, queue)], [Entry("queue", {"name": queue}), Entry("event", event)]
