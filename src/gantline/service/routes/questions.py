"""Why, when, what if: questions about the present queue and the past, answered by a process of their own."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from gantline.core.cluster_json import encode_cluster
from gantline.core.errors import NotFoundError, near
from gantline.policies.registry import policy_names
from gantline.runtime.history import LIMITS, history_rows
from gantline.service.context import Context
from gantline.service.roles import Role
from gantline.service.router import Here, Router

router = Router(tags=["questions"])

Samples = Annotated[int, Query(ge=1, le=1000)]
Sigma = Annotated[float, Query(ge=0, le=10)]
Newcomers = Annotated[bool, Query(description="Let others come as those of the past came.")]
_RUNS_OR_WAITS = ("pending", "starting", "running", "resizing", "preempting")


@router.at("GET", "/v1/jobs/{id}/explain", Role.VIEWER)
def explain_job(here: Here, id: str, samples: Samples = 40, sigma: Sigma = 0.5, newcomers: Newcomers = False) -> dict[str, Any]:
    """Why the job waits, who is ahead of it, which change would start it, when it is expected to start and end."""
    job = here.job(id)
    if job.state not in _RUNS_OR_WAITS:
        return {"job": id, "act": job.state, "why": job.why, "lines": [f"{id} is {job.state}" + (f": {job.why}" if job.why else "")]}
    return _ask(here, "explain", newcomers, samples=samples, sigma=sigma, job=id)


@router.at("GET", "/v1/forecast", Role.VIEWER)
def forecast(
    here: Here,
    job: Annotated[list[str] | None, Query()] = None,
    samples: Samples = 40,
    sigma: Sigma = 0.5,
    newcomers: Newcomers = False,
    learn: Annotated[bool, Query(description="Stretch forecasts as those of the past would have been late.")] = False,
) -> dict[str, Any]:
    """When jobs are expected to start and to end; by default all that the caller may see and that wait or run."""
    seen = here.jobs()
    wanted = [here.job(name).id for name in job or ()] or [name for name, one in seen.items() if one.state in _RUNS_OR_WAITS]
    if not wanted:
        return {"jobs": [], "lines": ["nobody waits or runs"]}
    past = {"learn": history_rows(here.scheduler.view().jobs.values())} if learn else {}
    return _ask(here, "forecast", newcomers, samples=samples, sigma=sigma, jobs=wanted, **past)


@router.at("GET", "/v1/what-if", Role.OPERATOR)
def what_if(
    here: Here,
    other: str = "",
    add: str = "",
    lose: Annotated[list[str] | None, Query()] = None,
    samples: Samples = 40,
    sigma: Sigma = 0.5,
    newcomers: Newcomers = False,
) -> dict[str, Any]:
    """The present queue under another policy, with nodes added or lost: both futures from the same draws."""
    return _ask(here, "what-if", newcomers, samples=samples, sigma=sigma, **_change(other, add, lose))


@router.at("GET", "/v1/history", Role.VIEWER)
def history(here: Here) -> dict[str, Any]:
    """The jobs that have succeeded, as rows of a trace, and what such a trace cannot tell."""
    return {"jobs": history_rows(here.jobs().values()), "cluster": encode_cluster(here.scheduler.runner.cluster), "limits": LIMITS}


@router.at("GET", "/v1/past", Role.OPERATOR)
def past_what_if(
    here: Here,
    other: str = "",
    add: str = "",
    lose: Annotated[list[str] | None, Query()] = None,
    replicas: Annotated[int, Query(ge=1, le=100)] = 20,
) -> dict[str, Any]:
    """The jobs that have ended under another policy, with nodes added or lost, and how far the method is from what happened."""
    setup = here.scheduler.setup
    rows = history_rows(here.scheduler.view().jobs.values())
    cluster = encode_cluster(here.scheduler.runner.cluster)
    question = {"ask": "past", "policy": setup.policy, "settings": dict(setup.settings), "placement": setup.placement, "costs": setup.costs}
    return here.service.asker.ask({**question, "jobs": rows, "cluster": cluster, "replicas": replicas, **_change(other, add, lose)})


def _ask(here: Context, ask: str, newcomers: bool, **more: Any) -> dict[str, Any]:
    setup = here.scheduler.setup
    more["ratios"] = here.scheduler.ask(lambda: list(here.scheduler.book.ratios))
    if newcomers:
        more["newcomers"] = history_rows(here.scheduler.view().jobs.values())
    head = {"ask": ask, "policy": setup.policy, "settings": dict(setup.settings), "placement": setup.placement, "costs": setup.costs}
    return here.service.asker.ask({**head, "snapshot": here.scheduler.snapshot(), **more})


def _change(other: str, add: str, lose: list[str] | None) -> dict[str, Any]:
    """What would be different; only registered policies, because a request must not name files of this machine."""
    if other and other not in policy_names():
        raise NotFoundError(f"no policy '{other[:64]}'", where="policy", fix=near(other[:64], policy_names()))
    return {"other": other, "add": add, "lose": lose or []}
