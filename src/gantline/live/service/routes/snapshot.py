"""This instant as a policy would see it: for replay, explanation and what-if."""

from __future__ import annotations

from typing import Any

from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router

router = Router(tags=["questions"])


@router.at("GET", "/v1/snapshot", Role.OPERATOR)
def get_snapshot(here: Here) -> dict[str, Any]:
    """The snapshot in the format of docs/snapshots.md, with the policy that decides."""
    view = here.scheduler.view()
    return {"policy": view.policy, "settings": dict(view.settings), "snapshot": here.scheduler.snapshot()}
