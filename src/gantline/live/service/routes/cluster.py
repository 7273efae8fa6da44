"""Nodes and their devices: which jobs are on them, and whether new ones may start there."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Body, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.inputs import Action, NodeEvent
from gantline.core.queues import known_names
from gantline.core.windows import AdvanceWindow
from gantline.live.jobs.spec_parts import is_queue
from gantline.live.service.access import Role
from gantline.live.service.answers import large
from gantline.live.service.application import Here, Router
from gantline.live.service.context import Context
from gantline.live.store import QueueRow

nodes_router = Router(tags=["nodes"])
NodeAction: TypeAlias = Literal["cordon", "drain", "uncordon"]


@nodes_router.at("GET", "/v1/nodes", Role.VIEWER, response_model=dict[str, Any])
def list_nodes(request: Request, here: Here) -> Response:
    """Nodes with their devices; jobs of others are shown as '-'."""
    return large(request, json.dumps({"nodes": [*nodes_of(here).values()]}, ensure_ascii=False))


def nodes_of(here: Context) -> dict[str, dict[str, Any]]:
    """Nodes by name; one is cordoned when none of its devices may be used, else `cordoned` names those that may not.

    `reserved` names the windows that have some of its devices. CPUs and memory (GB) are taken by what jobs ask for, used or not.
    """
    seen, found, view = here.jobs(), dict[str, dict[str, Any]](), here.scheduler.view()
    for device in view.devices:
        blank = {
            "name": device.node,
            "type": device.type,
            "state": "cordoned",
            "gpus": 0,
            "busy": 0,
            **(asdict(view.nodes[device.node]) if device.node in view.nodes else {}),
            "cordoned": [],
            "reserved": [],
            "jobs": [],
            "devices": [],
        }
        node = found.setdefault(device.node, blank)
        names = [job if job in seen else "-" for job in device.jobs]
        node["state"] = "up" if device.up else node["state"]
        node["gpus"] += 1
        node["busy"] += bool(device.jobs)
        node["cordoned"] += [] if device.up else [device.name]
        node["reserved"] = sorted({*node["reserved"], *device.windows})
        node["jobs"] = sorted({*node["jobs"], *names})
        state = "cordoned" if not device.up else "reserved" if device.windows else "up"
        node["devices"].append({"name": device.name, "state": state, "jobs": names})
    return found


class NodesChange(BaseModel):
    """One action on nodes or single devices: on all of them, or on none if one does not exist."""

    model_config = ConfigDict(extra="forbid")
    nodes: Annotated[list[str], Field(min_length=1, max_length=1000)]
    action: NodeAction


@nodes_router.at("POST", "/v1/nodes", Role.OPERATOR)
def change_nodes(change: NodesChange, here: Here) -> dict[str, Any]:
    """Cordon: no new jobs. Drain: running jobs are also saved and stopped. Uncordon: jobs may start again. For nodes and devices."""
    return {"nodes": change.nodes, "action": change.action, "jobs": _change(here, change.nodes, change.action)}


@nodes_router.at("POST", "/v1/nodes/{name}", Role.OPERATOR)
def change_node(name: str, here: Here, action: Annotated[NodeAction, Body(embed=True)]) -> dict[str, Any]:
    """The same for one node or device."""
    return {"node": name, "action": action, "jobs": _change(here, [name], action)}


def _change(here: Context, names: Sequence[str], action: str) -> list[str]:
    """The jobs that were asked to leave."""
    nodes = nodes_of(here)
    places = {**nodes, **{device["name"]: device for node in nodes.values() for device in node["devices"]}}
    for name in names:
        if name not in places:
            raise NotFoundError(f"no node '{name[:64]}'", where="node", fix=near(name[:64], places))
    at, kind = here.scheduler.clock.now(), "up" if action == "uncordon" else "drain"
    here.scheduler.send([NodeEvent(at, name, kind) for name in dict.fromkeys(names)])
    leaving = sorted({job for name in names for job in places[name]["jobs"]}) if action == "drain" else []
    if leaving:
        here.scheduler.request(leaving, Action.REQUEUE, here.caller.user)
    for name in dict.fromkeys(names):
        here.note(action, node=name)
    return leaving


# Queues: how many devices each may have, and how much it weighs.

queues_router = Router(tags=["queues"])


class NewQueue(BaseModel):
    """Limits of a queue."""

    model_config = ConfigDict(extra="forbid")
    quota: Annotated[float, Field(ge=0, le=1e9)] | None = None
    borrow: Annotated[float, Field(ge=0, le=1e9)] | Literal["inf"] = 0.0
    weight: Annotated[float, Field(gt=0, le=1e9)] = 1.0


@queues_router.at("GET", "/v1/queues", Role.VIEWER)
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


@queues_router.at("PUT", "/v1/queues/{name:path}", Role.OPERATOR)
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


@queues_router.at("DELETE", "/v1/queues/{name:path}", Role.OPERATOR)
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


# Windows: devices that are reserved in advance.

reservations_router = Router(tags=["reservations"])

_Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
_Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=1000)]
_LONGEST = 10 * 366 * 86400.0  # seconds


class NewWindow(BaseModel):
    """What is to be reserved: so many `nodes`, so many `gpus`, or those at `places`; from `start` (seconds since 1970) for `seconds`."""

    model_config = ConfigDict(extra="forbid")
    name: _Name | None = None
    nodes: Annotated[int, Field(ge=1, le=10**6)] | None = None
    gpus: Annotated[int, Field(ge=1, le=10**6)] | None = None
    places: _Names = []
    start: Annotated[float, Field(ge=0, le=1e11)] | None = None
    seconds: Annotated[float, Field(gt=0, le=_LONGEST)]
    users: _Names = []
    queues: _Names = []


@reservations_router.at("GET", "/v1/reservations", Role.VIEWER)
def list_reservations(here: Here) -> dict[str, Any]:
    """Windows that have not ended, in order of their beginning."""
    windows = sorted(here.scheduler.view().windows, key=lambda window: (window.start, window.name))
    return {"reservations": [_shown(here, window) for window in windows]}


@reservations_router.at("POST", "/v1/reservations", Role.OPERATOR)
def reserve(new: NewWindow, here: Here) -> dict[str, Any]:
    """Keep devices free for a window. Until it begins, only jobs that end by then may start on them."""
    known = {*known_names(here.scheduler.loop.state.tables.queue_tree), *(row.name for row in here.service.store.queues())}
    for queue in new.queues:
        if queue not in known:
            raise NotFoundError(f"no queue '{queue[:64]}'", where="reserve", fix=near(queue[:64], known - {""}))
    _check_users(new.users, here)
    now = here.scheduler.clock.now()
    start = now if new.start is None else now + new.start - here.scheduler.wall()
    lists = (tuple(new.places), tuple(new.users), tuple(new.queues))
    wanted = AdvanceWindow(start, start + new.seconds, new.name or "", new.nodes or 0, new.gpus or 0, *lists)
    window = here.scheduler.reserve(wanted)
    here.note("reserve", why=f"{window.name}: {', '.join(window.places)}", **new.model_dump(exclude_defaults=True))
    return _shown(here, window)


@reservations_router.at("DELETE", "/v1/reservations/{name}", Role.OPERATOR)
def cancel_reservation(name: str, here: Here) -> dict[str, Any]:
    """Cancel a window, or end it early."""
    here.scheduler.unreserve(name[:64])
    here.note("unreserve", why=name[:64])
    return {"name": name}


def _check_users(users: list[str], here: Context) -> None:
    """Refuse unknown users, because their windows would stay empty: a user with a token, an account or a job is known."""
    store = here.service.store
    known = {*(row.user for row in store.tokens()), *store.recall("accounts", {}), *here.scheduler.loop.state.tables.users} - {""}
    for user in users:
        if user not in known:
            fix = f"{near(user[:64], known)}; gantline token create {user[:64]} makes the user known"
            raise NotFoundError(f"no user '{user[:64]}'", where="reserve", fix=fix)


def _shown(here: Context, window: AdvanceWindow) -> dict[str, Any]:
    begins, ends = (here.scheduler.clock.wall(at) for at in (window.start, window.end))
    state = "begun" if window.start <= here.scheduler.clock.now() else "to come"
    lists = {name: list(getattr(window, name)) for name in ("places", "users", "queues")}
    return {"name": window.name, "state": state, "start": begins, "end": ends, **lists}
