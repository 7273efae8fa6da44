"""`gantline view`: the dashboard over a folder of results, read-only, for this machine alone."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from gantline.core.errors import NotFoundError, RefusedError
from gantline.live.service.access import Caller, JobTokens, Role, Sessions
from gantline.live.service.application import LOOPBACK, assembled
from gantline.live.service.home import owner
from gantline.live.service.results_folder import ResultsFolder
from gantline.live.service.routes.admin import login_router
from gantline.live.service.routes.runs import runs_router

_PARENT = "view"


class ViewAccess:
    """The user who started it may read, in sessions that end with it."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self.sessions = Sessions(JobTokens(secrets.token_bytes(32)), wall)

    def caller(self, token: str) -> Caller | None:
        session = self.sessions.read(token) if len(token) <= 512 else None
        if session is None or session.expires <= self._wall():
            return None
        return Caller(owner(), Role.VIEWER, token=_PARENT, expires=session.expires, is_session=True)

    def why_not(self, token: str) -> tuple[str, str]:
        expired = bool(token) and len(token) <= 512 and self.sessions.read(token) is not None
        return ("the session has expired" if expired else "no token, or one that is not known here"), "run gantline view again"


@dataclass
class Viewing:
    """What the routes of log-in need of a service."""

    access: ViewAccess
    address: str


def viewer(folder: Path, address: str = "") -> tuple[FastAPI, Viewing]:
    """The application over a folder."""
    if not folder.is_dir():
        raise NotFoundError("no such folder", where=str(folder), fix="name a folder of results: gantline simulate ... --out FOLDER")
    viewing = Viewing(ViewAccess(), address)
    app = assembled(viewing, (login_router, runs_router), LOOPBACK, kind="view")
    app.state.results = ResultsFolder(folder.absolute())
    return app, viewing


@dataclass
class ViewServer:
    """A server that listens; `url` logs one browser in."""

    server: uvicorn.Server
    listening: socket.socket
    url: str

    def run(self) -> None:
        """Serve until it is interrupted, or `server.should_exit`."""
        try:
            self.server.run(sockets=[self.listening])
        finally:
            self.listening.close()


def view_server(folder: Path, port: int | None = None) -> ViewServer:
    """A server of that folder at a port of this machine alone."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port or 0))
        listening.listen(64)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        app, viewing = viewer(folder, address)
    except (OSError, OverflowError) as error:
        listening.close()
        raise RefusedError(f"cannot listen at port {port}: {error}", where="--port", fix="choose another one, or leave it out") from None
    except BaseException:
        listening.close()
        raise
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False, lifespan="off", timeout_graceful_shutdown=1)
    return ViewServer(uvicorn.Server(config), listening, f"{address}/#login={viewing.access.sessions.code(_PARENT)[0]}")
