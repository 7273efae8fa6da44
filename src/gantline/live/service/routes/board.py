"""The board and its changes."""

from __future__ import annotations

import gzip
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import StreamingResponse
from starlette.responses import Response

from gantline.live.service.large import accepts_gzip, is_known
from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router

router = Router(tags=["board"])


@router.at("GET", "/v1/board", Role.VIEWER, response_model=dict[str, Any])
def board(request: Request, here: Here) -> Response:
    """Jobs and devices as columns, with a version; jobs of others are there as '-'."""
    version, packed = here.service.audiences.of(here.caller).whole()
    headers = {"etag": f'"{version}"', "cache-control": "no-cache, private", "vary": "authorization, accept-encoding"}
    if is_known(request, headers["etag"]):
        return Response(None, 304, headers)
    if accepts_gzip(request):
        return Response(packed, 200, {**headers, "content-encoding": "gzip"}, "application/json")
    return Response(gzip.decompress(packed), 200, headers, "application/json")


@router.at("GET", "/v1/stream", Role.VIEWER, response_class=StreamingResponse)
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
