"""Windows of the past: devices over time as a picture, queue and shares as lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from gantline.live.service.context import Context
from gantline.live.service.large import large
from gantline.live.service.past.gantt import gantt_of
from gantline.live.service.past.occupancy import JobName
from gantline.live.service.past.series import series_of_window
from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router

router = Router(tags=["history"])
DAY = 86400.0
Instant = Annotated[float | None, Query(ge=-1e12, le=1e12, allow_inf_nan=False, description="Seconds since 1970.")]
From = Annotated[float | None, Query(alias="from", ge=-1e12, le=1e12, allow_inf_nan=False, description="Seconds since 1970.")]
Width = Annotated[int, Query(ge=1, le=4000, description="Pixels, or intervals.")]
Rows = Annotated[int, Query(ge=1, le=2000, description="At most so many; one may stand for several devices.")]


@router.at("GET", "/v1/series", Role.VIEWER, response_model=dict[str, Any])
def get_series(request: Request, here: Here, from_: From = None, to: Instant = None, width: Width = 600) -> Response:
    """Busy devices, jobs that run and wait, and what queues and users held and were due: means over `width` intervals of a window."""
    past = here.service.past.occupancy()
    weights = {row.name: row.weight for row in here.service.store.queues()}
    return large(request, json.dumps(series_of_window(past, *past.window(from_, to, DAY), width, weights, _seen(here)), ensure_ascii=False))


@router.at("GET", "/v1/gantt", Role.VIEWER, response_model=dict[str, Any])
def get_gantt(request: Request, here: Here, from_: From = None, to: Instant = None, width: Width = 1200, rows: Rows = 400) -> Response:
    """Devices over a window of time as runs of pixels; jobs of others are shown as '-'."""
    past = here.service.past.occupancy()
    return large(request, json.dumps(gantt_of(past, *past.window(from_, to, DAY), width, rows, _seen(here)), ensure_ascii=False))


def _seen(here: Context) -> Callable[[JobName], bool]:
    return lambda job: here.caller.sees(job.user)
