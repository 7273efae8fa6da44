"""What has happened, and what was decided."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from gantline.live.service.large import large
from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router

router = Router(tags=["history"])
Limit = Annotated[int, Query(ge=1, le=10_000)]
After = Annotated[int, Query(ge=0, le=2**53)]


@router.at("GET", "/v1/events", Role.VIEWER, response_model=dict[str, Any])
def list_events(request: Request, here: Here, after: After = 0, job: str = "", limit: Limit = 1000) -> Response:
    """Events after a number, in order; without a number the newest. Users below operator see the events of their own jobs."""
    if job and here.job(job).is_archived:
        rows = [row for row in here.service.archive.jobs([job])[job][2] if row["number"] > after][:limit]
    else:
        rows = here.service.store.events(after=after, job=job or None, limit=limit, newest=after == 0)
    seen = {**here.jobs(), **({job: None} if job else {})}
    mine = [row for row in rows if here.caller.may(Role.OPERATOR) or row.get("job") in seen]
    events = [{**row, "time": here.service.wall(row["time"])} for row in mine]
    return large(request, json.dumps({"events": events, "last": rows[-1]["number"] if rows else after}, ensure_ascii=False))


@router.at("GET", "/v1/decisions", Role.OPERATOR)
def list_decisions(here: Here, after: After = 0, limit: Limit = 100) -> dict[str, Any]:
    """Decisions behind a line of the journal in order; without one the newest."""
    rows = here.service.store.decisions(after=after, limit=limit, newest=after == 0)
    return {"decisions": rows, "last": rows[-1]["number"] if rows else after}
