"""A real service for the tests of a file: uvicorn on an ephemeral port of loopback, SQLite in a file, four CPU slots."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest
from httpx import Response
from tests.live.service.question_workers import frugal_service
from tests.live.warm_fork_servers import warm_fork_servers
from tests.waiting import LIMIT, until

from gantline.live.scheduler import progress
from gantline.live.service import board_stream as stream
from gantline.live.service.client import Client
from gantline.live.service.home import Home, Options
from gantline.live.service.serve import serve

__all__ = ["LIMIT", "until", "warm_fork_servers"]
_HTTP = httpx.Client(trust_env=False, timeout=LIMIT)


@dataclass
class Running:
    """A service in a thread of the test."""

    options: Options
    tell: Callable[[str], None] = lambda text: None
    url: str = ""
    code: int | None = None
    failure: BaseException | None = None
    _clients: list[Client] = field(default_factory=list)

    def start(self, *, at_once: bool = True) -> Running:
        """Serve; `at_once`: stories about stopping jobs do not wait for a minimum run."""
        ready = threading.Event()
        if at_once:
            self.options = replace(self.options, anew={"min_run": 0.0, "grace": 0.0, **self.options.anew})

        def run() -> None:
            try:
                self.code = serve(self.options, lambda url: (setattr(self, "url", url), ready.set())[0], self.tell)
            except BaseException as error:
                self.failure = error
            finally:
                ready.set()

        self.thread = threading.Thread(target=run, daemon=True)
        with mock.patch("gantline.live.service.serve.Service", frugal_service):
            self.thread.start()
            assert ready.wait(LIMIT)
        if self.failure is not None:
            raise self.failure
        return self

    @property
    def home(self) -> Path:
        return self.options.home.path

    @property
    def token(self) -> str:
        return (self.home / "token").read_text(encoding="utf-8").strip()

    def client(self, user: str = "", role: str = "submitter") -> Client:
        """The owner's client, or that of somebody with a role."""
        token = self.client().create_token(user, role)["token"] if user else self.token
        self._clients.append(Client(self.url, token))
        return self._clients[-1]

    def ask(
        self, path: str, token: str | None = None, method: str = "GET", headers: Mapping[str, Any] | None = None, **more: Any
    ) -> Response:
        """The answer to the owner, to whoever has a token, or to nobody in particular ("")."""
        token = self.token if token is None else token
        given = {"Authorization": f"Bearer {token}"} if token else {}
        return _HTTP.request(method, self.url + path, headers=given | dict(headers or {}), **more)

    def stop(self, *, drain: bool = True) -> None:
        if self.thread.is_alive():
            self.client().shutdown(drain=drain)
            self.thread.join(LIMIT)
        for client in self._clients:
            client.close()
        assert not self.thread.is_alive()


def serving(home: Path | Home, **options: Any) -> Running:
    """A service that has started."""
    return Running(Options(home if isinstance(home, Home) else Home(home), **options)).start()


def serve_here(options: Options) -> int:
    """`gantline up --detach` in a thread: loading what a service needs takes longer than what most tests ask of it."""
    print(Running(options).start(at_once=False).url)
    return 0


@pytest.fixture(scope="session", autouse=True)
def soon() -> Iterator[None]:
    """What a service does every few seconds it does several times a second: no test is about how seldom."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(progress, "_OFTEN", 0.2)
        monkeypatch.setattr(progress, "_LEASE", 12.0)  # jobs report every twelfth of it
        monkeypatch.setattr(stream, "_CHECK", 0.2)
        yield


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = serving(tmp_path_factory.mktemp("home") / "gantline", devices="cpu:4", runner={"storage": "500MB/s"})
    yield running
    running.stop()


@pytest.fixture
def owner(service: Running) -> Client:
    """The client of the service's owner, an admin."""
    return service.client()
