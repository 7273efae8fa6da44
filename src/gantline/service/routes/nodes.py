"""Nodes and their devices: who is on them, and whether anybody new may be."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Body

from gantline.core.errors import NotFoundError, near
from gantline.core.inputs import Action
from gantline.core.node_events import NodeEvent
from gantline.service.context import Context
from gantline.service.roles import Role
from gantline.service.router import Here, Router

router = Router(tags=["nodes"])


@router.at("GET", "/v1/nodes", Role.VIEWER)
def list_nodes(here: Here) -> dict[str, Any]:
    """Nodes with their devices; jobs of others are shown as '-'."""
    return {"nodes": [*nodes_of(here).values()]}


def nodes_of(here: Context) -> dict[str, dict[str, Any]]:
    """Nodes by name; one is cordoned when none of its devices may be used, else `cordoned` names those that may not.

    `reserved` names the windows that have some of its devices.
    """
    seen, found = here.jobs(), dict[str, dict[str, Any]]()
    for device in here.scheduler.view().devices:
        blank = {
            "name": device.node,
            "type": device.type,
            "state": "cordoned",
            "gpus": 0,
            "busy": 0,
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


@router.at("POST", "/v1/nodes/{name}", Role.OPERATOR)
def change_node(name: str, here: Here, action: Annotated[Literal["cordon", "drain", "uncordon"], Body(embed=True)]) -> dict[str, Any]:
    """Cordon: nobody new comes. Drain: whoever is there also leaves, saved. Uncordon: as before. For a node or a device."""
    places = {**nodes_of(here), **{device["name"]: device for node in nodes_of(here).values() for device in node["devices"]}}
    if name not in places:
        raise NotFoundError(f"no node '{name[:64]}'", where="node", fix=near(name[:64], places))
    here.scheduler.node(NodeEvent(here.scheduler.clock.now(), name, "up" if action == "uncordon" else "drain"))
    leaving = places[name]["jobs"] if action == "drain" else []
    if leaving:
        here.scheduler.request(leaving, Action.REQUEUE, here.caller.user)
    here.note(action, node=name)
    return {"node": name, "action": action, "jobs": leaving}
