"""Which policy decides; it can be changed while jobs run."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from gantline.core.errors import NotFoundError, RefusedError, near
from gantline.core.policy import parameters
from gantline.live.scheduler import Scheduler
from gantline.live.service.large import large
from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router
from gantline.policies.registry import find_policy, policy_names
from gantline.traces.files.policies import policy_file

router = Router(tags=["policy"])


class NewPolicy(BaseModel):
    """A registered policy with its settings."""

    model_config = ConfigDict(extra="forbid")
    policy: Annotated[str, Field(max_length=200)]
    settings: dict[str, str | int | float | bool] = Field(default_factory=dict)


@router.at("GET", "/v1/policy", Role.VIEWER)
def get_policy(here: Here) -> dict[str, Any]:
    """The policy that decides."""
    view = here.scheduler.view()
    return {"policy": view.policy, "settings": dict(view.settings)}


@router.at("GET", "/v1/policies", Role.VIEWER, response_model=dict[str, Any])
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


@router.at("PUT", "/v1/policy", Role.OPERATOR)
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
    parts = [job.id for job in scheduler.book.jobs.values() if job.launch.part < 1.0 and not job.ended]
    policy = scheduler.loop.engine.policy
    if not parts or policy.shares_devices:
        return []
    return [f"jobs that ask for a part of a device get a whole one from policy '{policy.name}': {', '.join(parts[:10])}"]
