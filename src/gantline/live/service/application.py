"""Assembles an application: routes behind one guard, errors as answers, and an OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

import gantline
from gantline.core.errors import GantlineError, NotFoundError, UsageError
from gantline.live.service.failures import answer_of
from gantline.live.service.guard import Guard, Tokens, log
from gantline.live.service.roles import Role

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class GuardedService(Protocol):
    """What is served, with its access control."""

    @property
    def access(self) -> Tokens: ...


def assembled(
    service: GuardedService,
    routers: Sequence[APIRouter],
    hosts: Iterable[str],
    *,
    kind: str = "live",
    parts: Mapping[str, Any] = MappingProxyType({}),
) -> FastAPI:
    """An application of these routes; `hosts` are the names by which it may be called, `parts` schemas that its description refers to."""
    app = FastAPI(title="Gantline", version=gantline.__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.service, app.state.kind = service, kind
    for router in routers:
        app.include_router(router)
        for route in router.routes:
            if not isinstance(route, APIRoute) or "x-role" not in (route.openapi_extra or {}):
                raise TypeError(f"the route {route!r} says no role")
    app.add_exception_handler(GantlineError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _unknown)
    app.add_exception_handler(Exception, _defect)
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    app.state.operations = {str(route.operation_id): _role_of(route) for route in routes}
    open_to_all = {(method, route.path) for route in routes if _role_of(route) is Role.ANYONE for method in route.methods or ()}
    app.add_middleware(Guard, access=service.access, hosts=hosts, open_to_all=open_to_all)
    app.openapi = lambda: _description(app, parts)  # type: ignore[method-assign]
    return app


def _role_of(route: APIRoute) -> Role:
    return Role((route.openapi_extra or {})["x-role"])


def _description(app: FastAPI, more: Mapping[str, Any]) -> dict[str, Any]:
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, routes=app.routes, description="The scheduler over HTTP; see docs/live.md."
        )
        parts = found.setdefault("components", {})
        parts.setdefault("schemas", {}).update(more)
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        app.openapi_schema = found
    return app.openapi_schema


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, GantlineError)
    return answer_of(error)


def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"] if part != "body")
    return answer_of(UsageError(str(first["msg"])[:1].lower() + str(first["msg"])[1:], where=f"field '{field}'" if field else "body"))


def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return answer_of(NotFoundError("no such route", where="path", fix="GET /openapi.json lists them"))
    answer = answer_of(UsageError(str(error.detail).lower(), where="request"))
    answer.status_code = error.status_code
    return answer


def _defect(request: Request, error: Exception) -> Response:
    log.error("a defect in %s: %s", request.url.path, type(error).__name__, exc_info=error)
    fields = {
        "kind": "refused",
        "what": f"this should not have happened: {type(error).__name__}",
        "where": "service",
        "fix": "see service.log",
    }
    return JSONResponse({"error": fields}, 500)
