"""Errors as answers, and answers as errors: a refusal looks the same in the service and in the client."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gantline.core.errors import GantlineError, NotFoundError, RefusedError, UnreachableError, UsageError

_KINDS: dict[str, type[GantlineError]] = {
    "usage": UsageError,
    "not-found": NotFoundError,
    "refused": RefusedError,
    "unreachable": UnreachableError,
}
_STATUS = {"usage": 400, "not-found": 404, "refused": 409, "unreachable": 503}
_SPECIAL = {"NoTokenError": 401, "NoRightError": 403, "TooLargeError": 413, "TooLateError": 408, "TextError": 422, "StoreError": 503}


class TextError(UsageError):
    """The request holds invalid text, which can be neither stored nor returned."""


class NoTokenError(RefusedError):
    """The request carries no valid token or code."""


def answer_of(error: GantlineError) -> JSONResponse:
    """The answer that reports an error."""
    kind = next((name for name, one in _KINDS.items() if isinstance(error, one)), "usage")
    body: dict[str, Any] = {"kind": kind, "what": error.what, "where": error.where, "fix": error.fix}
    if (reason := getattr(error, "reason", None)) is not None:
        body["reason"] = reason.name.lower().replace("_", "-")
    status = _SPECIAL.get(type(error).__name__, _STATUS[kind])
    return JSONResponse({"error": body}, status, {"WWW-Authenticate": "Bearer"} if status == 401 else None)


def error_of(status: int, body: Any) -> GantlineError:
    """The error that an answer reports."""
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return UnreachableError(f"an answer that is not Gantline's ({status})", where="service", fix="check GANTLINE_URL")
    kind = _KINDS.get(str(error.get("kind")), UsageError)
    return kind(str(error.get("what", "")), where=str(error.get("where", "")), fix=str(error.get("fix", "")))


# Large answers: compressed if the client accepts it, and not sent again if the client has them already.

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
