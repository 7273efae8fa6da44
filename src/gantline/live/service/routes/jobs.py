"""Jobs: submit, see, act on."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any, Literal

from fastapi import Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from gantline.core.errors import NotFoundError, RefusedError, UsageError, near
from gantline.core.fields import human_seconds
from gantline.core.inputs import Action
from gantline.live.jobs.spec import JobSpec
from gantline.live.jobs.spec_file import check_promises, spec_of
from gantline.live.service.access import NoRightError, Role
from gantline.live.service.answers import large
from gantline.live.service.application import Here, Router
from gantline.live.service.context import Context, job_record
from gantline.live.service.job_output import MOST, broken_before, lost_output, read_log
from gantline.live.service.listing import Ordered, WantedJobs, page_of
from gantline.live.service.questions import OTHERS, ask_of_submission, expected_starts

jobs_router = Router(tags=["jobs"])
_SCHEMA = JobSpec.model_json_schema(ref_template="#/components/schemas/{model}")
_PARTS = _SCHEMA.pop("$defs", {})
PARTS: dict[str, Any] = {**_PARTS, "JobSpec": _SCHEMA}
_BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/JobSpec"}}}}}
_MOST_AT_ONCE = 1000


class ActionBody(BaseModel):
    """One action on several jobs: it is done to all of them, or to none if one of them refuses it."""

    model_config = ConfigDict(extra="forbid")
    action: Literal["cancel", "hold", "release", "requeue", "resize", "save"]
    jobs: Annotated[list[str], Field(min_length=1, max_length=_MOST_AT_ONCE)]
    gpus: Annotated[int, Field(ge=0, le=100_000)] = 0
    min_gpus: Annotated[int, Field(ge=0, le=100_000)] = 0
    max_gpus: Annotated[int, Field(ge=0, le=100_000)] = 0


@jobs_router.at("POST", "/v1/jobs", Role.SUBMITTER, status_code=201, openapi_extra=_BODY)
async def submit(
    request: Request,
    here: Here,
    dry_run: bool = False,
    idempotency_key: Annotated[str, Header(max_length=200)] = "",
) -> dict[str, Any]:
    """Submit a job, or an array of them. A repeated Idempotency-Key gets the same answer, and does nothing."""
    return await run_in_threadpool(_submit, here, await request.body(), dry_run, idempotency_key)


def _submit(here: Context, body: bytes, dry_run: bool, key: str) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise UsageError("is not JSON", where="body", fix="send the specification as a JSON object") from None
    if not isinstance(value, dict):
        raise UsageError("is not an object", where="body", fix="send the specification as a JSON object")
    spec = spec_of(value)
    if spec.model is not None and spec.model.hint:
        raise UsageError(
            "a file is read where the job is submitted, not here", where="model.hint", fix="use gantline submit, or gantline profile apply"
        )
    types = list(dict.fromkeys(device.type for device in here.scheduler.view().devices))
    after = [{"job": _resolved(here, one.job), "when": one.when} for one in spec.after]
    spec = spec_of({**spec.on(types, time.time()).to_json(), **({"after": after} if after else {}), "name": spec.title})
    loop = here.scheduler.loop
    account = here.scheduler.runner.accounts.of(here.caller.user)
    if account is not None and spec.elastic is not None and spec.elastic.live:
        raise RefusedError(
            f"a job that runs as the account '{account.name}' cannot change its size while it runs",
            where="elastic.live",
            fix="leave live out",
        )
    check_promises(spec, loop.state.tables.cluster, loop.engine.policy)
    if dry_run:
        here.scheduler.check(spec)
        return _would_be(here, spec)
    return {"ids": here.scheduler.submit(spec, here.caller.user, key)}


def _would_be(here: Context, spec: JobSpec) -> dict[str, Any]:
    """What would happen to it: its place in the queue, why it would wait, when it would start. For an array, its first task."""
    submit = here.scheduler.requests.as_submitted_now(spec.first(), here.caller.user)
    found = {
        "ids": [],
        "tasks": len(spec.array.indices) if spec.array is not None else 1,
        "spec": spec.to_json(),
        "submit": dict(submit.job),
    }
    unmet = [f"it would first wait for job {one.job}" for one in spec.after]
    then = ask_of_submission(here, {key: value for key, value in submit.job.items() if key != "id"})
    seen = here.jobs()
    for one in then["ahead"]:
        one["job"] = one["job"] if one["job"] in seen else OTHERS
    if not here.caller.may(Role.OPERATOR):
        then["waits_for"] = [name for name in then["waits_for"] if name in seen]
        then["lines"] = [line for line in then["lines"] if not line.startswith("it would start when")]
    guessed = []
    if "estimate" in submit.job and "estimate" not in spec.first().to_submit("-", 0.0).job:
        guessed = [f"note: it has no estimate; {human_seconds(submit.job['estimate'])} is what earlier jobs of its name took"]
    return {**found, "then": {**then, "lines": [*unmet, *then["lines"], *guessed]}}


def _resolved(here: Context, name: str) -> str:
    """The id of a job that another waits for, given by id or by name (the newest of that name)."""
    jobs = here.jobs()
    if name in jobs:
        return name
    found = next((id for id, job in reversed(jobs.items()) if job.name == name), None)
    if found is None and (old := here.archived([name])):
        here.check_at_hand(old, "after")
    if found is None:  # a job of another user is reported as not found
        raise NotFoundError(f"no job '{name[:64]}'", where="after", fix=near(name[:64], [*jobs][-200:]) if jobs else "")
    return found


@jobs_router.at("GET", "/v1/jobs", Role.VIEWER, response_model=dict[str, Any])
def list_jobs(
    request: Request,
    here: Here,
    state: Annotated[list[str] | None, Query()] = None,
    user: str = "",
    queue: str = "",
    id: Annotated[list[str] | None, Query()] = None,
    label: Annotated[list[str] | None, Query()] = None,
    q: Annotated[str, Query(max_length=200, description="Part of an id, name, user, queue, state or label.")] = "",
    sort: Annotated[str, Query(max_length=40, description="A field; with '-' before it from the largest on.")] = "",
    limit: Annotated[int, Query(ge=1, le=100_000)] = 10_000,
    offset: Annotated[int, Query(ge=0, le=2**53, description="Of a sorted list: how many to leave out.")] = 0,
    before: Annotated[str, Query(max_length=200)] = "",
    forecast: Annotated[
        bool, Query(description="Have expected starts computed; 'forecast' in the answer says when they are there.")
    ] = False,
    archived: Annotated[bool, Query(description="Jobs that have left the store instead.")] = False,
) -> Response:
    """Jobs that the caller may see, in order of submission; of too many the newest.

    A queue means those below it, too; a label is KEY=VALUE, or KEY alone, and all of them must be there. Where there are older ones, `next`
    is what to give as `before` to list these.
    """
    there = here.named(id) if id else (here.old(state, user) if archived else here.listed())
    there = [job for job in there if job.is_archived] if archived else there
    if before:
        last = here.job(before)
        there = there[: next((place for place, job in enumerate(there) if job is last or job.id == last.id), len(there))]
    wanted = WantedJobs(state or (), user, queue, label or (), q)
    found, starts = [job for job in there if wanted(job)], expected_starts(here, ask=forecast)
    ordered = Ordered(here, starts)
    shown, older = page_of(here, found, ordered, sort=sort, limit=limit, before=before, offset=offset)
    texts = ", ".join(ordered.text(job) for job in shown)
    rest = f'"total": {len(found)}, "next": {json.dumps(older)}, "forecast": {json.dumps({"status": starts.status})}'
    return large(request, f'{{"jobs": [{texts}], {rest}}}')


@jobs_router.at("GET", "/v1/jobs/{id}", Role.VIEWER)
def get_job(id: str, here: Here) -> dict[str, Any]:
    """One job with its specification, its history and the last lines of its output if it failed."""
    job = here.job(id)
    stored, events = here.service.store.job(job.id) or {}, here.service.store.events(job=job.id)
    if job.is_archived:
        _, stored, events = here.service.archive.jobs([job.id])[job.id]
    history = [{**event, "time": here.service.wall(event["time"])} for event in events]
    return {
        **job_record(here.service, job),
        "held": list(job.held),
        "work": job.work,
        "estimate": job.estimate,
        "lines": list(job.lines),
        "lost_output": lost_output(here.scheduler.runner, job.id),
        "spec": stored.get("spec", {}),
        "history": history,
    }


class Changes(BaseModel):
    """What is to be different about a job; what is not given stays. No time limit or estimate: null."""

    model_config = ConfigDict(extra="forbid")
    name: str | None = None
    priority: int | str | None = None
    queue: str | None = None
    time_limit: float | str | None = None
    estimate: float | str | None = None


@jobs_router.at("PATCH", "/v1/jobs/{id}", Role.SUBMITTER)
def change_job(id: str, changes: Changes, here: Here) -> dict[str, Any]:
    """Change the name, priority, time limit or estimate of a job that has not ended, or the queue of one that waits."""
    here.check_at_hand([here.job(id)], "set")
    here.scheduler.requests.change([here.job(id).id], changes.model_dump(exclude_unset=True), here.caller.user)
    return job_record(here.service, here.job(id))


class ManyChanges(Changes):
    """The same for several jobs: all of them are changed, or none if one cannot be."""

    jobs: Annotated[list[str], Field(min_length=1, max_length=_MOST_AT_ONCE)]


@jobs_router.at("PATCH", "/v1/jobs", Role.SUBMITTER)
def change_jobs(changes: ManyChanges, here: Here) -> dict[str, Any]:
    """Change several jobs alike; the number of an array means its tasks that have not ended."""
    named = set(changes.jobs)
    jobs = [job for job in here.named(changes.jobs) if job.id in named or job.finished is None]
    here.check_at_hand(jobs, "set")
    if not jobs:
        raise RefusedError(f"no task of {', '.join(changes.jobs)[:64]} is left to change", where="set", fix="see gantline get jobs")
    here.scheduler.requests.change([job.id for job in jobs], changes.model_dump(exclude_unset=True, exclude={"jobs"}), here.caller.user)
    return {"jobs": [job.id for job in jobs]}


@jobs_router.at("POST", "/v1/requests", Role.SUBMITTER)
def act(requests: ActionBody, here: Here) -> dict[str, Any]:
    """Cancel, hold, release, requeue or resize jobs; the number of an array means its tasks that have not ended."""
    jobs = here.named(requests.jobs)
    here.check_at_hand(jobs, requests.action)
    named, kind = set(requests.jobs), Action(requests.action)
    if kind is Action.RESIZE and not requests.gpus:
        raise UsageError("no number of devices", where="gpus", fix="say how many it shall have")
    chosen = [job.id for job in jobs if job.id in named or (job.finished is None and (kind is not Action.SAVE or job.devices))]
    if not chosen:
        raise RefusedError(
            f"no task of {', '.join(requests.jobs)[:64]} is left to {kind.value}", where=kind.value, fix="see gantline get jobs"
        )
    sizes = {"gpus": requests.gpus, "min_gpus": requests.min_gpus, "max_gpus": requests.max_gpus} if kind is Action.RESIZE else {}
    here.scheduler.request(chosen, kind, here.caller.user, **sizes)
    return {"jobs": chosen}


# What jobs have printed. Nothing of a request becomes part of a path: ids are looked up, epochs and ranks are numbers.

logs_router = Router(tags=["jobs"])
Number = Annotated[int | None, Query(ge=0, le=2**53)]


@logs_router.at("GET", "/v1/jobs/{id}/logs", Role.VIEWER)
def get_logs(
    id: str,
    here: Here,
    epoch: Number = None,
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
    tail: Annotated[int | None, Query(ge=0, le=100_000)] = None,
    rank: Number = None,
    limit: Annotated[int, Query(ge=4, le=MOST)] = MOST,
) -> dict[str, Any]:
    """A piece of the output from `offset` on; go on at `next`, until `end`. `tail`: only the last lines. Without an epoch: the newest.

    If that is read from its beginning, `broke` says why the previous incarnation failed, with its last lines, if it failed.
    """
    job = here.job(id)
    if job.is_archived and not here.scheduler.runner.incarnations(job.id):
        raise NotFoundError(
            f"the output of job '{job.id}' was removed: it ended longer ago than is kept",
            where="logs",
            fix=f"see gantline describe job {job.id}",
        )
    piece = read_log(here.scheduler.runner, job.id, epoch=epoch, offset=offset, tail=tail, rank=rank, limit=limit)
    broke = broken_before(here.scheduler.runner, job.id) if epoch is None and not offset and tail is None else None
    return {**piece, "broke": broke, "state": job.state, "end": job.finished is not None and piece["next"] >= piece["size"]}


# What a job reports about itself, with its own token.

progress_router = Router(tags=["training"])
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ProgressRequest(BaseModel):
    """Other sizes that the job would like to have."""

    model_config = ConfigDict(extra="forbid")
    gpus: Annotated[int, Field(ge=1, le=100_000)] | None = None
    min_gpus: Annotated[int, Field(ge=1, le=100_000)] | None = None
    max_gpus: Annotated[int, Field(ge=1, le=100_000)] | None = None


class ProgressReport(BaseModel):
    """How far a job is; docs/design/live.md defines the fields."""

    model_config = ConfigDict(extra="forbid")
    epoch: Annotated[int, Field(ge=0)]
    step: Amount | None = None
    done: Amount | None = None
    total: Amount | None = None
    saved: Amount | None = None
    throughput: Amount | None = None
    batch: Annotated[int, Field(ge=1)] | None = None
    loss: float | None = None
    gradient_square: float | None = None
    gradient_variance: float | None = None
    request: ProgressRequest | None = None


@progress_router.at("POST", "/v1/jobs/{id}/progress", Role.JOB)
def report_progress(id: str, report: ProgressReport, here: Here) -> dict[str, Any]:
    """Take a report; the answer says whether to save, to stop or to change."""
    if id != here.caller.job:
        raise NoRightError(f"this token is that of job '{here.caller.job}'", where="token")
    values = report.model_dump(exclude_none=True)
    answer = here.scheduler.report(id, values)
    here.service.curves.add(id, here.scheduler.wall(), values)
    return answer


@progress_router.at("GET", "/v1/jobs/{id}/curve", Role.VIEWER)
def get_curve(id: str, here: Here) -> dict[str, Any]:
    """What the job has reported since the service started, as columns: time, done, throughput, loss."""
    return here.service.curves.of(here.job(id).id)
