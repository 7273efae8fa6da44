"""Checks before any route: the host, the size of the request, and its token.

A request without a token gets nothing, not even a 404, except the shell of the dashboard, which holds no data, and the log-in.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import Collection, Iterable
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import Protocol

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gantline.core.errors import RefusedError, UsageError
from gantline.live.service.access import Caller
from gantline.live.service.answers import NoTokenError, answer_of

LARGEST_BODY = 1 << 20
BODY_SECONDS = 30.0  # for a body to arrive
ANSWER_SECONDS = 60.0  # for a client to take a piece of an answer
log = logging.getLogger("gantline.live.service")
_TOKEN = re.compile(r"gl[js]?_[\w.\-]{8,}")
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[\w.\-]+)(:[0-9]{1,5})?", re.ASCII)
_HEADERS = {  # unless an answer has them already
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cache-control": b"no-store",
    b"referrer-policy": b"no-referrer",
}


class Tokens(Protocol):
    """Finds the owner of a token."""

    def caller(self, token: str) -> Caller | None: ...
    def why_not(self, token: str) -> tuple[str, str]: ...


class TooLargeError(UsageError):
    """The body of the request is too large."""


class TooLateError(UsageError):
    """The body of the request did not come in time."""


class Guard:
    """Checks every request before the application sees it, and notes it in the log without its secrets."""

    def __init__(self, app: ASGIApp, access: Tokens, hosts: Iterable[str], open_to_all: Collection[tuple[str, str]] = ()) -> None:
        """`open_to_all`: methods and paths that need no token."""
        self.app, self.access, self.hosts = app, access, frozenset(host.lower() for host in hosts)
        self.open_to_all = frozenset(open_to_all)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # no web sockets
        began, headers = time.perf_counter(), dict(scope["headers"])
        status = 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name.lower() for name, _ in message["headers"]}
                message = {**message, "headers": [*message["headers"], *(one for one in _HEADERS.items() if one[0] not in given)]}
            async with asyncio.timeout(ANSWER_SECONDS):  # a client that does not read is not waited for
                await send(message)

        try:
            self._check_host(scope["headers"])
            limited = _Limited(receive, headers)
            state = scope.setdefault("state", {})
            if scope["method"] in ("GET", "HEAD") and is_shell(scope["path"]):
                await shell(scope, limited, answer)
                return
            if (scope["method"], scope["path"]) not in self.open_to_all:
                state["token"] = _token_of(headers)
                state["caller"] = await self._caller(state["token"])
            await self.app(scope, limited, answer)
        except (RefusedError, UsageError) as error:
            await answer_of(error)(scope, receive, answer)
        finally:
            caller = scope.get("state", {}).get("caller")
            who = (caller.user or caller.job) if caller is not None else "-"
            spent = 1000 * (time.perf_counter() - began)
            log.info("%s %s %d %s %.1fms", scope["method"], _plain(scope["path"]), status, _plain(who), spent)

    def _check_host(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Refuse other host names: they come from a page that was made to resolve to this machine (DNS rebinding)."""
        hosts, origins = (
            [value.decode("latin-1").strip().lower() for key, value in headers if key == name] for name in (b"host", b"origin")
        )
        host = hosts[0] if len(hosts) == 1 else ""
        # a page of this machine at another port is another page: the origin is ours only if it is the host with its port
        if _name_of(host) not in self.hosts or any(origin.partition("://")[2] != host for origin in origins):
            raise RefusedError("this service is not called that", where="host", fix="use the address that gantline up printed")

    async def _caller(self, token: str) -> Caller:
        caller = await run_in_threadpool(self.access.caller, token)
        if caller is None:
            what, fix = await run_in_threadpool(self.access.why_not, token)
            raise NoTokenError(what, where="authorization", fix=fix)
        return caller


def _token_of(headers: dict[bytes, bytes]) -> str:
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


class _Limited:
    """A body that raises an error if it is too long, or takes too long to arrive."""

    def __init__(self, receive: Receive, headers: dict[bytes, bytes]) -> None:
        self.receive, self.seen, self.whole = receive, 0, False
        self.end = asyncio.get_running_loop().time() + BODY_SECONDS
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            raise TooLargeError(f"the body is larger than {LARGEST_BODY} bytes", where="request")

    async def __call__(self) -> Message:
        if self.whole:  # from here on only a disconnect can come
            return await self.receive()
        try:
            async with asyncio.timeout_at(self.end):
                message = await self.receive()
        except TimeoutError:
            raise TooLateError(f"the body has not come within {BODY_SECONDS:g} s", where="request") from None
        self.whole = not message.get("more_body", False)
        self.seen += len(message.get("body", b""))
        if self.seen > LARGEST_BODY:
            raise TooLargeError(f"the body is larger than {LARGEST_BODY} bytes", where="request")
        return message


def _name_of(host: str) -> str:
    """A host without its port; empty for what is no host."""
    found = _HOST.fullmatch(host)
    return found["name"] if found else ""


def _plain(text: str) -> str:
    """Text for a log line, without line breaks or tokens."""
    text = _TOKEN.sub("***", text)
    return "".join(sign if sign.isprintable() else "?" for sign in text)[:200]


# The shell of the dashboard: HTML, scripts and styles from the package, open to all because they hold no data.
#
# Browsers may load these files only: nothing from another host, no inline script or style, no frame around a page.

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
)
_FOLDER = "/dashboard/"
TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2",
    ".json": "application/json", ".txt": "text/plain; charset=utf-8", ".md": "text/plain; charset=utf-8",
}  # fmt: skip


def is_shell(path: str) -> bool:
    """Whether a path is one of the shell's."""
    return path == "/" or path.startswith(_FOLDER)


async def shell(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the file, with 304 where the browser has it, or with 404."""
    path = scope["path"].removeprefix(_FOLDER) if scope["path"] != "/" else "index.html"
    found = file_of(path)
    headers = {"content-security-policy": POLICY, "cache-control": "no-cache"}
    if found is None:
        await Response("there is no such file\n", 404, headers, "text/plain; charset=utf-8")(scope, receive, send)
        return
    body, etag = found
    headers["etag"] = etag
    known = dict(scope["headers"]).get(b"if-none-match", b"").decode("latin-1")
    if known == etag:
        await Response(None, 304, headers)(scope, receive, send)
        return
    answer = Response(body, 200, headers, TYPES[PurePosixPath(path).suffix])
    answer.body = b"" if scope["method"] == "HEAD" else body
    await answer(scope, receive, send)


def _root() -> Traversable:
    return files("gantline.live.dashboard") / "static"


@cache
def file_of(path: str) -> tuple[bytes, str] | None:
    """A file of the package with its tag; None: there is none of that name, or its kind is not served."""
    parts = path.split("/")
    if PurePosixPath(path).suffix not in TYPES or any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        return None
    place = _root().joinpath(*parts)
    if not place.is_file():
        return None
    body = place.read_bytes()
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'
