"""The service itself: its state, its metrics, and its end."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from typing import Annotated, Any

from fastapi import Body, Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

import gantline
from gantline.core.errors import NotFoundError, RefusedError, near
from gantline.live.scheduler.retention import Keep, Retention
from gantline.live.service.access import NoRightError, Role, check_user
from gantline.live.service.answers import NoTokenError
from gantline.live.service.application import Here, Router
from gantline.live.service.context import Context
from gantline.live.service.metrics import CONTENT_TYPE, exposition

_SHOWN = 20  # lines of the journal that were set aside, the newest
# the rules by which it decides
_RULES = ("round", "quantum", "min_run", "grace", "turn", "victims", "placement", "costs", "unknown_queues", "end_by")
status_router = Router(tags=["service"])


@status_router.at("GET", "/v1/status", Role.VIEWER)
def status(here: Here) -> dict[str, Any]:
    """Process, address, policy, devices, and how many jobs are in which state."""
    service, view = here.service, here.scheduler.view()
    by_type = Counter(device.type for device in view.devices)
    busy = Counter(device.type for device in view.devices if device.jobs)
    return {
        "pid": os.getpid(),
        "address": service.address,
        "version": gantline.__version__,
        "home": str(service.home),
        "store": service.store_url,
        "policy": view.policy,
        "settings": dict(view.settings),
        "in_charge": view.in_charge,
        "rules": {name: getattr(here.scheduler.setup, name) for name in _RULES},
        "devices": {name: {"count": count, "busy": busy[name]} for name, count in by_type.items()},
        "jobs": dict(Counter(job.state for job in here.listed())),
        "archived": int(here.scheduler.archived.get("jobs", 0)),
        "keep": _kept(service.retention),
        "deciding": not service.health.why_not(),
        "created": service.wall(0.0),  # when its clock began; rounds are counted from there
        "started": round(service.started, 3),
        "uptime": round(time.time() - service.started, 3),
        "incidents": list(view.incidents)[-5:],
        "set_aside": [{key: one[key] for key in ("number", "why")} for one in service.store.aside()[-_SHOWN:]],
        "user": here.caller.user,
        "role": here.caller.role.value,
    }


def _kept(retention: Retention | None) -> dict[str, Any]:
    """How long jobs that have ended stay in memory, and why they could not be archived, if so."""
    return {
        **(retention.keep if retention is not None else Keep()).to_json(),
        "failure": retention.failure if retention is not None else "",
    }


@status_router.at("POST", "/v1/compact", Role.ADMIN)
def compact(here: Here) -> dict[str, Any]:
    """Archive the jobs that are due, and delete what the store holds for replaying decisions before its newest checkpoints."""
    if here.service.retention is None:
        raise RefusedError("this service keeps no archive", where="compact")
    here.note("compact")
    before = here.service.store.size()
    gone = here.service.retention.look(compact=True)
    return {"archived": gone, "before": before, "after": here.service.store.size()}


@status_router.at("POST", "/v1/shutdown", Role.ADMIN, status_code=202)
def shutdown(here: Here, drain: Annotated[bool, Body(embed=True)] = True) -> dict[str, Any]:
    """End the service; with `drain` jobs are stopped and saved first, else they go on and are adopted by the next one."""
    why = ""
    try:
        here.note("shutdown", drain=drain)
    except OSError as error:  # a full disk, a database that is away: the end of the service needs neither, to stop jobs does
        why = str(error) if drain else ""
        drain = False
    here.service.leave(drain)
    return {"pid": os.getpid(), "drain": drain, **({"why": why} if why else {})}


@status_router.at("GET", "/healthz", Role.ANYONE, response_class=PlainTextResponse)
def healthz(request: Request) -> PlainTextResponse:
    """Whether the service does what it is there for, for those that watch over it: 200, or 503 with what is wrong."""
    why = request.app.state.service.health.why_not()
    return PlainTextResponse(f"{why or 'ok'}\n", 503 if why else 200)


@status_router.at("GET", "/metrics", Role.VIEWER, response_class=PlainTextResponse)
def metrics(here: Here) -> PlainTextResponse:
    """Queue, jobs, devices, decisions and resizes in Prometheus' text format."""
    return PlainTextResponse(exposition(here), media_type=CONTENT_TYPE)


@status_router.at("GET", "/openapi.json", Role.VIEWER, include_in_schema=True)
def openapi(request: Request) -> dict[str, Any]:
    """This description."""
    found: dict[str, Any] = request.app.openapi()
    return found


# Log-in of browsers, and what a caller may do.

login_router = Router(tags=["log-in"])


class LoginCode(BaseModel):
    """The code that a browser was opened with."""

    model_config = ConfigDict(extra="forbid")
    code: Annotated[str, Field(max_length=200)]


@login_router.at("POST", "/v1/login", Role.ANYONE, status_code=201)
def login(given: LoginCode, request: Request) -> dict[str, Any]:
    """Exchange a code, once, for a token that is valid for some hours."""
    access = request.app.state.service.access
    traded = access.sessions.trade(given.code)
    caller = access.caller(traded[0]) if traded is not None else None
    if traded is None or caller is None:
        raise NoTokenError("the code is not known, was used already or is too old", where="code", fix="run gantline dashboard again")
    return {"token": traded[0], "expires": caller.expires, "user": caller.user, "role": caller.role.value}


@login_router.at("POST", "/v1/login/code", Role.VIEWER, status_code=201)
def make_code(here: Here) -> dict[str, Any]:
    """A code for one use within some minutes, and the address that logs a browser in with it."""
    if here.caller.is_session:
        raise NoRightError("a browser's session opens no other one", where="token", fix="run gantline dashboard")
    code, expires = here.service.access.sessions.code(here.caller.token)
    return {"code": code, "expires": expires, "url": f"{here.service.address}/#login={code}"}


@login_router.at("GET", "/v1/me", Role.VIEWER)
def me(request: Request, here: Here) -> dict[str, Any]:
    """Who the caller is, until when, and the operations that its role may call, by their names in the description."""
    caller = here.caller
    may = [operation for operation, role in request.app.state.operations.items() if caller.may(role)]
    return {"user": caller.user, "role": caller.role.value, "expires": caller.expires, "kind": request.app.state.kind, "may": may}


# Tokens: made, listed, revoked by admins.

tokens_router = Router(tags=["tokens"])


class NewToken(BaseModel):
    """The user and the role of a token, and for how many seconds it is valid."""

    model_config = ConfigDict(extra="forbid")
    user: str
    role: str = "submitter"
    lifetime: Annotated[float, Field(gt=0, le=1e10)] | None = None


@tokens_router.at("GET", "/v1/tokens", Role.ADMIN)
def list_tokens(here: Here) -> dict[str, Any]:
    """All tokens by id; the tokens themselves are known to their owners alone."""
    names = ("id", "user", "role", "created", "expires", "revoked")
    return {"tokens": [{name: getattr(row, name) for name in names} for row in here.service.access.listed()]}


@tokens_router.at("POST", "/v1/tokens", Role.ADMIN, status_code=201)
def create_token(new: NewToken, here: Here) -> dict[str, Any]:
    """Make a token; it is shown this once."""
    row, token = here.service.access.create(new.user, new.role, new.lifetime or math.inf)
    here.note("token-created", of=new.user, role=new.role, token=row.id)
    return {"id": row.id, "user": row.user, "role": row.role, "expires": row.expires, "token": token}


class NewRole(BaseModel):
    """The new role of a token."""

    model_config = ConfigDict(extra="forbid")
    role: str


@tokens_router.at("PATCH", "/v1/tokens/{id}", Role.ADMIN)
def change_token(id: str, new: NewRole, here: Here) -> dict[str, Any]:
    """Give a token, and the browser sessions that began with it, another role."""
    here.service.access.change_role(id, new.role)
    here.note("token-changed", token=id, role=new.role)
    return {"id": id, "role": new.role}


@tokens_router.at("DELETE", "/v1/tokens/{id}", Role.ADMIN)
def revoke_token(id: str, here: Here) -> dict[str, Any]:
    """Revoke a token: it is invalid from now on."""
    here.service.access.revoke(id)
    here.note("token-revoked", token=id)
    return {"id": id, "revoked": True}


# Users and the accounts of this machine that their jobs run as, if root runs the service.

users_router = Router(tags=["users"])


class NewAccount(BaseModel):
    """The account that a user's jobs run as; empty: the one of the same name."""

    model_config = ConfigDict(extra="forbid")
    account: Annotated[str, Field(max_length=64)] = ""


@users_router.at("GET", "/v1/users", Role.ADMIN)
def list_users(here: Here) -> dict[str, Any]:
    """Users that were given an account, and whether jobs run as users at all."""
    return {
        "users": [{"user": user, "account": account} for user, account in sorted(_accounts(here).items())],
        "run_as": "users" if here.scheduler.runner.accounts.apart else "service",
    }


@users_router.at("PUT", "/v1/users/{name}", Role.ADMIN)
def set_user(name: str, new: NewAccount, here: Here) -> dict[str, Any]:
    """From now on the user's jobs run as this account, if root runs the service."""
    check_user(name)
    account = here.scheduler.runner.accounts.find(new.account or name).name
    with here.service.store.transaction() as write:
        write.remember("accounts", {**_accounts(here), name: account})
    here.note("account", of=name, account=account)
    here.scheduler.look_for_accounts()
    return {"user": name, "account": account}


@users_router.at("DELETE", "/v1/users/{name}", Role.ADMIN)
def drop_user(name: str, here: Here) -> dict[str, Any]:
    """Remove the account: the user's jobs run as the account of the same name."""
    known = _accounts(here)
    if name not in known:
        raise NotFoundError(f"no account was given to '{name[:64]}'", where="user", fix=near(name[:64], known) if known else "")
    with here.service.store.transaction() as write:
        write.remember("accounts", {user: account for user, account in known.items() if user != name})
    here.note("account-dropped", of=name)
    return {"user": name}


def _accounts(here: Context) -> dict[str, str]:
    return dict(here.service.store.recall("accounts", {}))
