"""The application: every route with its role behind one guard."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fastapi import FastAPI

from gantline.live.service.application import LOOPBACK, assembled
from gantline.live.service.context import Service
from gantline.live.service.results.folder import ResultsFolder
from gantline.live.service.routes import (
    board,
    events,
    jobs,
    login,
    logs,
    nodes,
    past,
    policy,
    progress,
    questions,
    queues,
    reservations,
    runs,
    snapshot,
    status,
    tokens,
    users,
)

_NOUNS = (
    status, login, board, jobs, logs, progress, nodes, reservations, queues, events, past, tokens, users, policy, snapshot, questions,
    runs,
)  # fmt: skip
ROUTERS = tuple(noun.router for noun in _NOUNS)


def build(service: Service, hosts: Iterable[str] = LOOPBACK, results: Path | None = None) -> FastAPI:
    """The application over a scheduler and a store; `hosts` are the names by which it may be called.

    `results`: a folder of finished simulations to show beside them.
    """
    app = assembled(service, ROUTERS, hosts, parts=jobs.PARTS)
    app.state.results = ResultsFolder(results) if results is not None else None
    return app
