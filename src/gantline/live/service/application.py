"""Assembles an application: routes behind one guard, errors as answers, and an OpenAPI description."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

import gantline
from gantline.core.errors import GantlineError, NotFoundError, UsageError, listed
from gantline.core.fields import is_text
from gantline.live.service.access import Role
from gantline.live.service.answers import TextError, answer_of
from gantline.live.service.context import Context, Service
from gantline.live.service.guard import Guard, Tokens, log

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


# Routes that cannot exist without a role.


class Router(APIRouter):
    """Adds routes by method, path and the role they need; OpenAPI shows the role as `x-role`."""

    def at(self, method: str, path: str, role: Role, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(call: Callable[..., Any]) -> Callable[..., Any]:
            needed: list[dict[str, list[str]]] = [] if role is Role.ANYONE else [{"token": []}]
            extra = {"x-role": role.value, "security": needed, **more.pop("openapi_extra", {})}
            summary = (call.__doc__ or "").strip().split("\n")[0]
            name = call.__name__
            self.add_api_route(
                path,
                call,
                methods=[method],
                dependencies=[
                    Depends(_needs(role)),
                    Depends(_refuse_unknown_parameters),
                    *([] if method == "GET" else [Depends(_is_text)]),
                ],
                openapi_extra=extra,
                summary=summary,
                operation_id=name,
                **more,
            )
            return call

        return register


def _needs(role: Role) -> Callable[[Request], None]:
    def check(request: Request) -> None:
        if role is not Role.ANYONE:  # a request without a token has no caller
            request.state.caller.check(role)

    return check


def _refuse_unknown_parameters(request: Request) -> None:
    """Refuse parameters that the route does not have, because they would be ignored; the error lists those that it has."""
    known = [field.alias for field in request.scope["route"].dependant.query_params]
    unknown = next((name for name in request.query_params if name not in known), None)
    if unknown is not None:
        fix = f"known: {listed(known)}" if known else "leave it out: this route has none"
        raise UsageError(f"no parameter '{unknown[:64]}'", where="query", fix=fix)


async def _is_text(request: Request) -> None:
    """Refuse half of a character written as an escape (a lone surrogate), which is valid in JSON alone."""
    body = await request.body()
    if b"\\u" in body:
        with contextlib.suppress(ValueError, RecursionError):
            if not is_text(json.dumps(json.loads(body), ensure_ascii=False)):
                raise TextError("holds half of a character (a lone surrogate)", where="body", fix="send UTF-8")


def _context(request: Request) -> Context:
    service: Service = request.app.state.service
    return Context(service, request.state.caller)


Here = Annotated[Context, Depends(_context)]
