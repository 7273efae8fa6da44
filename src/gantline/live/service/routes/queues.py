"""Queues: how many devices each may have, and how much it weighs."""

from __future__ import annotations

import math
from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router
from gantline.live.spec_parts import is_queue
from gantline.live.store import QueueRow

router = Router(tags=["queues"])


class NewQueue(BaseModel):
    """Limits of a queue."""

    model_config = ConfigDict(extra="forbid")
    quota: Annotated[float, Field(ge=0, le=1e9)] | None = None
    borrow: Annotated[float, Field(ge=0, le=1e9)] | Literal["inf"] = 0.0
    weight: Annotated[float, Field(gt=0, le=1e9)] = 1.0


@router.at("GET", "/v1/queues", Role.VIEWER)
def list_queues(here: Here) -> dict[str, Any]:
    """Queues that were set or are used, with their jobs by state and the devices they hold."""
    known = {row.name: row for row in here.service.store.queues()}
    jobs = [job for job in here.scheduler.view().jobs.values() if job.finished is None or job.queue in known]
    found = []
    for name in sorted({*known, *(job.queue for job in jobs)}):
        row = known.get(name, QueueRow(name))
        states = Counter(job.state for job in jobs if job.queue == name)
        held = sum(len(job.devices) for job in jobs if job.queue == name)
        quota = row.quota if math.isfinite(row.quota) else None
        borrow = None if quota is None else row.borrow if math.isfinite(row.borrow) else "inf"
        found.append({"name": name, "quota": quota, "borrow": borrow, "weight": row.weight, "gpus": held, "jobs": dict(states)})
    return {"queues": found}


@router.at("PUT", "/v1/queues/{name:path}", Role.OPERATOR)
def set_queue(name: str, new: NewQueue, here: Here) -> dict[str, Any]:
    """Make a queue, or change it: what it is promised (none: no quota), how much more it may borrow ("inf": no limit), its weight."""
    if not is_queue(name):
        raise UsageError(f"{name[:64]!r} is not a queue", where="queue", fix="write names with slashes between them: research/nlp")
    quota, borrow = math.inf if new.quota is None else new.quota, float(new.borrow)
    if borrow and new.quota is None:
        raise UsageError(f"queue '{name[:64]}' would borrow {borrow:g} beyond no quota", where="queue", fix="give it a quota too")
    here.scheduler.queue(name, weight=new.weight, quota=quota, borrow=borrow)
    with here.service.store.transaction() as write:
        write.queue(QueueRow(name, new.weight, quota, borrow))
    here.note("queue", queue=name, **new.model_dump())
    return {"name": name, **new.model_dump()}


@router.at("DELETE", "/v1/queues/{name:path}", Role.OPERATOR)
def drop_queue(name: str, here: Here) -> dict[str, Any]:
    """Remove the queue; its jobs stay, without its limits."""
    known = [row.name for row in here.service.store.queues()]
    if name not in known:
        raise NotFoundError(f"no queue '{name[:64]}'", where="queue", fix=near(name[:64], known) if known else "none is set")
    here.scheduler.drop_queue(name)
    with here.service.store.transaction() as write:
        write.drop_queue(name)
    here.note("queue-dropped", queue=name)
    return {"name": name}
