"""Finished simulations: of a folder that a service was given, or of the one that `gantline view` shows."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from gantline.core.errors import NotFoundError
from gantline.live.service.access import Role
from gantline.live.service.answers import large
from gantline.live.service.application import Router
from gantline.live.service.occupancy import occupancy_of
from gantline.live.service.past_windows import gantt_of, series_of_window
from gantline.live.service.results_folder import ResultsFolder, about, detail
from gantline.live.service.routes.history import From, Instant, Rows, Width

runs_router = Router(tags=["results"])
Name = Annotated[str, Query(max_length=1000)]


@runs_router.at("GET", "/v1/runs", Role.VIEWER, response_model=dict[str, Any])
def list_runs(
    request: Request,
    q: Annotated[str, Query(max_length=200, description="Part of a name.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> Response:
    """Runs and sweeps by name; broken ones with the reason."""
    folder: ResultsFolder | None = request.app.state.results
    if folder is None:
        return large(request, json.dumps({"folder": None, "total": 0, "runs": []}))
    names = [name for name in folder.results() if q.casefold() in name.casefold()]
    shown = [about(folder.results()[name]) for name in names[offset : offset + limit]]
    return large(request, json.dumps({"folder": folder.path.name, "total": len(names), "runs": shown}, ensure_ascii=False))


@runs_router.at("GET", "/v1/runs/detail", Role.VIEWER, response_model=dict[str, Any])
def get_run(request: Request, name: Name) -> Response:
    """One result: of a run its summary and metrics, of a sweep its cases over its axes and its verdict."""
    return large(request, json.dumps(detail(_folder(request), name), ensure_ascii=False))


@runs_router.at("GET", "/v1/runs/series", Role.VIEWER, response_model=dict[str, Any])
def get_run_series(request: Request, name: Name, from_: From = None, to: Instant = None, width: Width = 600) -> Response:
    """As /v1/series, of a run; times are seconds of its clock."""
    past = occupancy_of(_folder(request).run(name))
    window = past.window(from_, to, past.end - past.begin)
    return large(request, json.dumps(series_of_window(past, *window, width, {}, lambda job: True), ensure_ascii=False))


@runs_router.at("GET", "/v1/runs/gantt", Role.VIEWER, response_model=dict[str, Any])
def get_run_gantt(request: Request, name: Name, from_: From = None, to: Instant = None, width: Width = 1200, rows: Rows = 400) -> Response:
    """As /v1/gantt, of a run."""
    past = occupancy_of(_folder(request).run(name))
    window = past.window(from_, to, past.end - past.begin)
    return large(request, json.dumps(gantt_of(past, *window, width, rows, lambda job: True), ensure_ascii=False))


def _folder(request: Request) -> ResultsFolder:
    folder: ResultsFolder | None = request.app.state.results
    if folder is None:
        raise NotFoundError("this service shows no results", where="runs", fix="start it with gantline up --results FOLDER")
    return folder
