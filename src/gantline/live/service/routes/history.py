"""Windows of the past: devices over time as a picture, queue and shares as lines."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import StreamingResponse
from starlette.responses import Response

from gantline.live.service.access import Role
from gantline.live.service.answers import accepts_gzip, is_known, large
from gantline.live.service.application import Here, Router
from gantline.live.service.context import Context
from gantline.live.service.occupancy import JobName
from gantline.live.service.past_windows import gantt_of, series_of_window

past_router = Router(tags=["history"])
DAY = 86400.0
Instant = Annotated[float | None, Query(ge=-1e12, le=1e12, allow_inf_nan=False, description="Seconds since 1970.")]
From = Annotated[float | None, Query(alias="from", ge=-1e12, le=1e12, allow_inf_nan=False, description="Seconds since 1970.")]
Width = Annotated[int, Query(ge=1, le=4000, description="Pixels, or intervals.")]
Rows = Annotated[int, Query(ge=1, le=2000, description="At most so many; one may stand for several devices.")]


@past_router.at("GET", "/v1/series", Role.VIEWER, response_model=dict[str, Any])
def get_series(request: Request, here: Here, from_: From = None, to: Instant = None, width: Width = 600) -> Response:
    """Busy devices, jobs that run and wait, and what queues and users held and were due: means over `width` intervals of a window."""
    past = here.service.past.occupancy()
    weights = {row.name: row.weight for row in here.service.store.queues()}
    return large(request, json.dumps(series_of_window(past, *past.window(from_, to, DAY), width, weights, _seen(here)), ensure_ascii=False))


@past_router.at("GET", "/v1/gantt", Role.VIEWER, response_model=dict[str, Any])
def get_gantt(request: Request, here: Here, from_: From = None, to: Instant = None, width: Width = 1200, rows: Rows = 400) -> Response:
    """Devices over a window of time as runs of pixels; jobs of others are shown as '-'."""
    past = here.service.past.occupancy()
    return large(request, json.dumps(gantt_of(past, *past.window(from_, to, DAY), width, rows, _seen(here)), ensure_ascii=False))


def _seen(here: Context) -> Callable[[JobName], bool]:
    return lambda job: here.caller.sees(job.user)


# What has happened, and what was decided.

events_router = Router(tags=["history"])
Limit = Annotated[int, Query(ge=1, le=10_000)]
After = Annotated[int, Query(ge=0, le=2**53)]


@events_router.at("GET", "/v1/events", Role.VIEWER, response_model=dict[str, Any])
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


@events_router.at("GET", "/v1/decisions", Role.OPERATOR)
def list_decisions(here: Here, after: After = 0, limit: Limit = 100) -> dict[str, Any]:
    """Decisions behind a line of the journal in order; without one the newest."""
    rows = here.service.store.decisions(after=after, limit=limit, newest=after == 0)
    return {"decisions": rows, "last": rows[-1]["number"] if rows else after}


# The board and its changes.

board_router = Router(tags=["board"])


@board_router.at("GET", "/v1/board", Role.VIEWER, response_model=dict[str, Any])
def board(request: Request, here: Here) -> Response:
    """Jobs and devices as columns, with a version; jobs of others are there as '-'."""
    version, packed = here.service.audiences.of(here.caller).whole()
    headers = {"etag": f'"{version}"', "cache-control": "no-cache, private", "vary": "authorization, accept-encoding"}
    if is_known(request, headers["etag"]):
        return Response(None, 304, headers)
    if accepts_gzip(request):
        return Response(packed, 200, {**headers, "content-encoding": "gzip"}, "application/json")
    return Response(gzip.decompress(packed), 200, headers, "application/json")


@board_router.at("GET", "/v1/stream", Role.VIEWER, response_class=StreamingResponse)
async def stream(request: Request, here: Here, after: Annotated[str, Query(max_length=100)] = "") -> StreamingResponse:
    """Changes of the board behind a version, as server-sent events, until the client goes; at most two a second."""
    access, caller, token = here.service.access, here.caller, request.state.token

    def closing() -> dict[str, Any] | None:
        now = access.caller(token)
        if now is None:
            what, fix = access.why_not(token)
            return {"why": what, "fix": fix, "again": False}
        if now.role is not caller.role:
            return {"why": f"the role of this token is {now.role} from now on", "fix": "", "again": True}
        return None

    events = here.service.pump.listen(here.service.audiences.of(caller), after, closing)
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})
