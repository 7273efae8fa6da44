"""The service itself: its state, its metrics, and its end."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Annotated, Any

from fastapi import Body, Request
from fastapi.responses import PlainTextResponse

import gantline
from gantline.core.errors import RefusedError
from gantline.live.retention import Keep, Retention
from gantline.live.service.metrics import CONTENT_TYPE, exposition
from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router

_SHOWN = 20  # lines of the journal that were set aside, the newest
# the rules by which it decides
_RULES = ("round", "quantum", "min_run", "grace", "turn", "victims", "placement", "costs", "unknown_queues", "end_by")
router = Router(tags=["service"])


@router.at("GET", "/v1/status", Role.VIEWER)
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


@router.at("POST", "/v1/compact", Role.ADMIN)
def compact(here: Here) -> dict[str, Any]:
    """Archive the jobs that are due, and delete what the store holds for replaying decisions before its newest checkpoints."""
    if here.service.retention is None:
        raise RefusedError("this service keeps no archive", where="compact")
    here.note("compact")
    before = here.service.store.size()
    gone = here.service.retention.look(compact=True)
    return {"archived": gone, "before": before, "after": here.service.store.size()}


@router.at("POST", "/v1/shutdown", Role.ADMIN, status_code=202)
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


@router.at("GET", "/healthz", Role.ANYONE, response_class=PlainTextResponse)
def healthz(request: Request) -> PlainTextResponse:
    """Whether the service does what it is there for, for those that watch over it: 200, or 503 with what is wrong."""
    why = request.app.state.service.health.why_not()
    return PlainTextResponse(f"{why or 'ok'}\n", 503 if why else 200)


@router.at("GET", "/metrics", Role.VIEWER, response_class=PlainTextResponse)
def metrics(here: Here) -> PlainTextResponse:
    """Queue, jobs, devices, decisions and resizes in Prometheus' text format."""
    return PlainTextResponse(exposition(here), media_type=CONTENT_TYPE)


@router.at("GET", "/openapi.json", Role.VIEWER, include_in_schema=True)
def openapi(request: Request) -> dict[str, Any]:
    """This description."""
    found: dict[str, Any] = request.app.openapi()
    return found
