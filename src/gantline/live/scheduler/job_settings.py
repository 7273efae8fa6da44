"""Changes a job that has not ended: its name, priority, queue, time limit or estimate, checked as if it were submitted anew."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from gantline.core.errors import NotFoundError, RefusedError, UsageError, near
from gantline.core.inputs import Input, SetJob
from gantline.live.jobs.spec import JobSpec
from gantline.live.jobs.spec_file import spec_of
from gantline.live.scheduler.job_registry import Job
from gantline.live.scheduler.loop_thread import settle
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store.records import Entry
from gantline.live.wall_time import Message


def change_jobs(scheduler: Scheduler, ids: Sequence[str], changes: Mapping[str, Any], user: str = "") -> None:
    """Change what is given (name, priority, queue, time limit, estimate) of all of these jobs, or of none if one cannot be changed.

    The journal and the registry change together, and the next view shows it.
    """
    if not changes:
        raise UsageError("nothing is to be changed", where="set", fix="give --priority, --queue, --name, --time-limit or --estimate")
    future: Future[None] = Future()
    changed: list[tuple[Job, JobSpec]] = []

    def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
        changed.extend(_checked(scheduler, id, changes) for id in ids)
        inputs, entries = scheduler.requests.queue_for(changed[0][1].queue, user, at) if "queue" in changes else ((), ())
        records = [Entry("job", _plain({"id": job.id, **_facts(job, new)})) for job, new in changed]
        about = [{"time": at, "job": job.id, "event": "set", "user": user, "changes": dict(changes)} for job, _ in changed]
        inputs = [*inputs, *(_input(job, new, changes, at) for job, new in changed)]
        return inputs, [*entries, *records, *(Entry("event", one) for one in about)]

    def done(error: BaseException | None) -> None:
        if error is None:
            for job, new in changed:
                facts = _facts(job, new)
                job.spec, job.launch, job.asked = facts["spec"], facts["launch"], facts["asked"]
                scheduler.endings.limit_changed(job)
        settle(future, error, None)

    def show() -> None:
        for id in ids:
            scheduler.observer.touch(scheduler.registry[id])
        scheduler.republish()

    scheduler.post(Message((), done, open_, alone=True))
    scheduler.thread.wait(future)
    scheduler.ask(show)


def _checked(scheduler: Scheduler, id: str, changes: Mapping[str, Any]) -> tuple[Job, JobSpec]:
    """A job and its specification with the changes; refused where it cannot be changed so."""
    if id not in scheduler.registry:
        raise NotFoundError(f"no job '{id}'", where="set", fix=near(id, scheduler.registry.jobs))
    job = scheduler.registry[id]
    if job.ended:
        raise RefusedError(f"job '{id}' has ended: it {job.state}", where="set", fix="submit it again")
    if "queue" in changes and job.state not in ("pending", "held"):
        raise RefusedError(f"job '{id}' is {job.state}: only one that waits changes its queue", where="set", fix="requeue it first")
    return job, spec_of(_changed_spec(job.spec, changes))


def _changed_spec(spec: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    found = {**spec, **{key: value for key, value in changes.items() if key != "time_limit"}}
    if "time_limit" in changes:
        found["limits"] = {**dict(spec.get("limits", {})), "time": changes["time_limit"]}
    return found


def _facts(job: Job, new: JobSpec) -> dict[str, Any]:
    """The registry's fields for a job with that specification; its place in an array stays."""
    values = new.to_submit(job.id, job.submitted).job
    asked = {
        **job.asked,
        "priority": float(values.get("priority", 0.0)),
        **({"estimate": values["estimate"]} if "estimate" in values else {}),
    }
    launch = replace(job.launch, time_limit=new.launch().time_limit)
    return {"spec": new.to_json(), "launch": launch, "asked": asked, "name": new.name}


def _input(job: Job, new: JobSpec, changes: Mapping[str, Any], at: float) -> SetJob:
    """The engine's input for this change: a time limit is the estimate of a job that has no other."""
    values = new.to_submit(job.id, at).job
    estimate = values.get("estimate") if {"estimate", "time_limit"} & set(changes) else None
    return SetJob(
        at, job.id,
        float(values.get("priority", 0.0)) if "priority" in changes else None,
        str(values.get("queue", "")) if "queue" in changes else None,
        estimate if estimate is not None and math.isfinite(estimate) and estimate != job.asked.get("estimate") else None,
    )  # fmt: skip


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    return {**record, "launch": record["launch"].to_json()}
