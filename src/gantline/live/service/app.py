"""The application: every route with its role behind one guard."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fastapi import FastAPI

from gantline.live.service.application import LOOPBACK, assembled
from gantline.live.service.context import Service
from gantline.live.service.results_folder import ResultsFolder
from gantline.live.service.routes.admin import login_router, status_router, tokens_router, users_router
from gantline.live.service.routes.cluster import nodes_router, queues_router, reservations_router
from gantline.live.service.routes.history import board_router, events_router, past_router
from gantline.live.service.routes.jobs import PARTS, jobs_router, logs_router, progress_router
from gantline.live.service.routes.questions import policy_router, questions_router, snapshot_router
from gantline.live.service.routes.runs import runs_router

ROUTERS = (
    status_router, login_router, board_router, jobs_router, logs_router, progress_router, nodes_router, reservations_router,
    queues_router, events_router, past_router, tokens_router, users_router, policy_router, snapshot_router, questions_router,
    runs_router,
)  # fmt: skip


def build(service: Service, hosts: Iterable[str] = LOOPBACK, results: Path | None = None) -> FastAPI:
    """The application over a scheduler and a store; `hosts` are the names by which it may be called.

    `results`: a folder of finished simulations to show beside them.
    """
    app = assembled(service, ROUTERS, hosts, parts=PARTS)
    app.state.results = ResultsFolder(results) if results is not None else None
    return app
