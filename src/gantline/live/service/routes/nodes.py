"""Nodes and their devices: which jobs are on them, and whether new ones may start there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Body, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from gantline.core.errors import NotFoundError, near
from gantline.core.inputs import Action
from gantline.core.node_events import NodeEvent
from gantline.live.service.context import Context
from gantline.live.service.large import large
from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router

router = Router(tags=["nodes"])
NodeAction: TypeAlias = Literal["cordon", "drain", "uncordon"]


@router.at("GET", "/v1/nodes", Role.VIEWER, response_model=dict[str, Any])
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


@router.at("POST", "/v1/nodes", Role.OPERATOR)
def change_nodes(change: NodesChange, here: Here) -> dict[str, Any]:
    """Cordon: no new jobs. Drain: running jobs are also saved and stopped. Uncordon: jobs may start again. For nodes and devices."""
    return {"nodes": change.nodes, "action": change.action, "jobs": _change(here, change.nodes, change.action)}


@router.at("POST", "/v1/nodes/{name}", Role.OPERATOR)
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
