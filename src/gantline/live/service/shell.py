"""The shell of the dashboard: HTML, scripts and styles from the package, open to all because they hold no data.

Browsers may load these files only: nothing from another host, no inline script or style, no frame around a page.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

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
