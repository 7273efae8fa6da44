"""Why, when, what if: questions about the present queue and the past.

Why a job waits is answered at once. Forecasts are made in a separate process, once for all equal requests, and are `pending` until
then; a client asks again with the `since` that it received.
"""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from gantline.core.cluster_spec import encode_cluster
from gantline.core.errors import NotFoundError, RefusedError, UsageError, near
from gantline.core.fields import key_values
from gantline.core.policy import parameters
from gantline.lab.questions.forecast import SHARES
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.service.access import Role
from gantline.live.service.answers import large
from gantline.live.service.application import Here, Router
from gantline.live.service.context import Context
from gantline.live.service.questions import (
    LIMITS,
    ForecastDraws,
    explain_now,
    history_rows,
    left_out,
    shared_changes,
    shared_forecast,
    shared_what_if,
)
from gantline.policies.registry import find_policy, policy_names
from gantline.traces.files.policies import policy_file

questions_router = Router(tags=["questions"])

Samples = Annotated[
    int | None, Query(ge=1, le=1000, description="Futures to draw; else 40, or 200 where times and speeds of the profiles are drawn, too.")
]
Sigma = Annotated[float, Query(ge=0, le=10)]
Since = Annotated[int | None, Query(ge=0, description="A state that was seen: an answer about it, or about a later one, will do.")]
Newcomers = Annotated[bool, Query(description="Let other jobs arrive as in the past.")]
RUNS_OR_WAITS = ("pending", "starting", "running", "resizing", "preempting")
_PENDING = {"status": "pending"}


@questions_router.at("GET", "/v1/jobs/{id}/explain", Role.VIEWER)
def explain_job(
    here: Here, id: str, samples: Samples = None, sigma: Sigma = 0.5, newcomers: Newcomers = False, since: Since = None
) -> dict[str, Any]:
    """Why the job waits and what is ahead of it, at once; with `forecast`, when it is there, and what would start it."""
    job = here.job(id)
    found = explain_now(here, job)
    found["since"] = found["version"] if since is None else since
    if job.state not in RUNS_OR_WAITS:
        return {**found, "forecast": None}
    whole = shared_forecast(here, found["since"], ForecastDraws(samples, sigma, newcomers))
    more = shared_changes(here, job.id, found["since"]) if job.state == "pending" else {"lines": []}
    own = next((one for one in whole["jobs"] if one["job"] == job.id), None) if whole is not None else None
    if whole is None or more is None or own is None:
        return {**found, "forecast": _PENDING}
    ready = {"status": "ready", **own, **on_the_clock(here, own), "over": whole["over"]}
    ready |= {name: more.get(name, []) for name in ("changes", "waits_for")}
    at = [place for place, one in enumerate(whole["jobs"]) if one["job"] == job.id]
    forecast_lines = [whole["lines"][place] for place in at] + [line for line in whole["lines"] if line.startswith("note:")]
    return {**found, "forecast": ready, "lines": [*found["lines"], *more["lines"], *forecast_lines]}


def on_the_clock(here: Context, own: dict[str, Any]) -> dict[str, Any]:
    """The instants of a forecast as seconds since 1970."""
    parts = (*SHARES, "mean", "low", "high")
    names = {f"{what}s_at_{part}": f"{key}_{part}" for what, key in (("start", "start"), ("end", "finish")) for part in parts}
    return {name: here.service.wall(own[instant]) for name, instant in names.items()}


@questions_router.at("GET", "/v1/forecast", Role.VIEWER)
def forecast(
    here: Here,
    job: Annotated[list[str] | None, Query()] = None,
    samples: Samples = None,
    sigma: Sigma = 0.5,
    newcomers: Newcomers = False,
    learn: Annotated[bool, Query(description="Stretch forecasts by how late past ones would have been.")] = False,
    since: Since = None,
) -> dict[str, Any]:
    """When jobs are expected to start and to end; by default all that the caller may see and that wait or run. `pending`: ask again."""
    seen, version = here.jobs(), here.scheduler.view().standing.version if since is None else since
    wanted = {here.job(name).id for name in job or ()} or {name for name, one in seen.items() if one.state in RUNS_OR_WAITS}
    out = [one for one in left_out(here) if not job or one["job"] in wanted]
    left_out_lines = [f"{one['job']}: left out: {one['why']}" for one in out]
    if not any(one.id in wanted and one.state in RUNS_OR_WAITS for one in seen.values()):
        return {"status": "ready", "since": version, "jobs": [], "left_out": out, "lines": left_out_lines or ["nothing waits or runs"]}
    whole = shared_forecast(here, version, ForecastDraws(samples, sigma, newcomers, learn))
    if whole is None:
        return {"status": "pending", "since": version, "jobs": [], "left_out": out, "lines": ["the forecast is being made"]}
    places = [place for place, one in enumerate(whole["jobs"]) if one["job"] in wanted]
    notes = [line for line in whole["lines"] if line.startswith("note:")]
    lines = [*(whole["lines"][place] for place in places), *left_out_lines, *notes]
    jobs = [{**whole["jobs"][place], **on_the_clock(here, whole["jobs"][place])} for place in places]
    return {**whole, "status": "ready", "since": version, "jobs": jobs, "left_out": out, "lines": lines}


@questions_router.at("GET", "/v1/what-if", Role.OPERATOR)
def what_if(
    here: Here,
    other: str = "",
    set_: Annotated[list[str] | None, Query(alias="set", description="A parameter of the other policy, KEY=VALUE.")] = None,
    add: str = "",
    lose: Annotated[list[str] | None, Query()] = None,
    samples: Samples = None,
    sigma: Sigma = 0.5,
    newcomers: Newcomers = False,
    since: Since = None,
) -> dict[str, Any]:
    """The present queue under another policy, with nodes added or lost: both futures from the same draws. `pending`: ask again."""
    version = here.scheduler.view().standing.version if since is None else since
    if set_ and not other:
        raise UsageError("parameters of no other policy", where="set", fix="name the policy: other=las")
    change = {**_change(other, add, lose), "other_settings": dict(key_values(set_ or (), "set"))}
    found = shared_what_if(here, version, ForecastDraws(samples, sigma, newcomers), **change)
    if found is None:
        return {"status": "pending", "since": version, "lines": ["both futures are being made"]}
    return {**found, "status": "ready", "since": version}


@questions_router.at("GET", "/v1/history", Role.VIEWER, response_model=dict[str, Any])
def history(request: Request, here: Here) -> Response:
    """The jobs that have succeeded, as rows of a trace, and what such a trace cannot express."""
    found = {"jobs": history_rows(here.past()), "cluster": encode_cluster(here.scheduler.runner.cluster), "limits": LIMITS}
    return large(request, json.dumps(found, ensure_ascii=False))


@questions_router.at("GET", "/v1/past", Role.OPERATOR)
def past_what_if(
    here: Here,
    other: str = "",
    add: str = "",
    lose: Annotated[list[str] | None, Query()] = None,
    replicas: Annotated[int, Query(ge=1, le=100)] = 20,
) -> dict[str, Any]:
    """The jobs that have ended under another policy, with nodes added or lost, and how far the method is from what happened."""
    setup = here.scheduler.setup
    rows = history_rows(here.past())
    cluster = encode_cluster(here.scheduler.runner.cluster)
    question = {"ask": "past", "policy": setup.policy, "settings": dict(setup.settings), "placement": setup.placement, "costs": setup.costs}
    return here.service.asker.ask({**question, "jobs": rows, "cluster": cluster, "replicas": replicas, **_change(other, add, lose)})


def _change(other: str, add: str, lose: list[str] | None) -> dict[str, Any]:
    """What would be different; only registered policies, because a request must not name files of this machine."""
    if other and other not in policy_names():
        raise NotFoundError(f"no policy '{other[:64]}'", where="policy", fix=near(other[:64], policy_names()))
    return {"other": other, "add": add, "lose": lose or []}


# This instant as a policy would see it: for replay, explanation and what-if.

snapshot_router = Router(tags=["questions"])


@snapshot_router.at("GET", "/v1/snapshot", Role.OPERATOR)
def get_snapshot(here: Here) -> dict[str, Any]:
    """The snapshot in the format of docs/snapshots.md, with the policy that decides."""
    view = here.scheduler.view()
    return {"policy": view.policy, "settings": dict(view.settings), "snapshot": here.scheduler.snapshot()}


# Which policy decides; it can be changed while jobs run.

policy_router = Router(tags=["policy"])


class NewPolicy(BaseModel):
    """A registered policy with its settings."""

    model_config = ConfigDict(extra="forbid")
    policy: Annotated[str, Field(max_length=200)]
    settings: dict[str, str | int | float | bool] = Field(default_factory=dict)


@policy_router.at("GET", "/v1/policy", Role.VIEWER)
def get_policy(here: Here) -> dict[str, Any]:
    """The policy that decides."""
    view = here.scheduler.view()
    return {"policy": view.policy, "settings": dict(view.settings)}


@policy_router.at("GET", "/v1/policies", Role.VIEWER, response_model=dict[str, Any])
def list_policies(request: Request) -> Response:
    """The policies that can be used, with what they do and their parameters."""
    return large(request, _policies())


@cache
def _policies() -> str:
    """As JSON: which policies are installed does not change while a service runs."""
    found = []
    for name in policy_names():
        policy = find_policy(name)
        listed = [
            {"name": one.name, "type": one.type, "default": _spelled(one.default), "takes": one.takes, "help": one.help}
            for one in parameters(policy)
        ]
        summary = " ".join((policy.__doc__ or "").split("\n\n")[0].split())
        found.append({"name": name, "help": summary, "paper": policy.paper, "ties": policy.ties, "parameters": listed})
    return json.dumps({"policies": found}, ensure_ascii=False, allow_nan=False)


def _spelled(default: Any) -> Any:
    """A default as a JSON value; what JSON cannot hold, as text."""
    plain = default is None or isinstance(default, (bool, int, str)) or (isinstance(default, float) and math.isfinite(default))
    return default if plain else str(default)


@policy_router.at("PUT", "/v1/policy", Role.OPERATOR)
def use_policy(new: NewPolicy, here: Here) -> dict[str, Any]:
    """Another policy from now on; only registered ones, because a file would be code in a request."""
    if policy_file(new.policy):
        fix = "start the service with gantline up --policy FILE.py, or install the policy under the entry point gantline.policies"
        raise RefusedError(f"'{new.policy[:64]}' is a file, and a service accepts no code in a request", where="policy", fix=fix)
    if new.policy not in policy_names():
        raise NotFoundError(f"no policy '{new.policy[:64]}'", where="policy", fix=near(new.policy[:64], policy_names()))
    here.scheduler.use(new.policy, {key: str(value) for key, value in new.settings.items()})
    here.note("policy-used", policy=new.policy)
    return {"policy": new.policy, "settings": new.settings, "notes": here.scheduler.ask(lambda: _passed_over(here.scheduler))}


def _passed_over(scheduler: Scheduler) -> list[str]:
    """What jobs request that the present policy does not give them."""
    parts = [job.id for job in scheduler.registry.jobs.values() if job.launch.part < 1.0 and not job.ended]
    policy = scheduler.loop.engine.policy
    if not parts or policy.shares_devices:
        return []
    return [f"jobs that ask for a part of a device get a whole one from policy '{policy.name}': {', '.join(parts[:10])}"]
