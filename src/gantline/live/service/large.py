"""Large answers: compressed if the client accepts it, and not sent again if the client has them already."""

from __future__ import annotations

import gzip
import hashlib

from fastapi import Request
from starlette.responses import Response

_SMALL = 4096  # bytes that are not worth compressing
_FAST = 1


def accepts_gzip(request: Request) -> bool:
    """Whether the client can read gzip."""
    encodings = [one.strip().lower() for one in request.headers.get("accept-encoding", "").split(",")]
    return any(one.partition(";")[0] == "gzip" and not one.replace(" ", "").endswith(";q=0") for one in encodings)


def is_known(request: Request, etag: str) -> bool:
    """Whether the client states that it has the content with this tag."""
    etags = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    return etag.removeprefix("W/") in etags


def large(request: Request, body: str | bytes, media_type: str = "application/json") -> Response:
    """An answer with a tag made of its content."""
    content = body.encode() if isinstance(body, str) else body
    etag = f'W/"{hashlib.blake2b(content, digest_size=16).hexdigest()}"'
    headers = {"etag": etag, "cache-control": "no-cache, private", "vary": "authorization, accept-encoding"}
    if is_known(request, etag):
        return Response(None, 304, headers)
    if len(content) <= _SMALL or not accepts_gzip(request):
        return Response(content, 200, headers, media_type)
    return Response(gzip.compress(content, _FAST, mtime=0), 200, {**headers, "content-encoding": "gzip"}, media_type)
