"""Routes that cannot exist without a role."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from gantline.core.errors import UsageError, listed
from gantline.core.plain_text import is_text
from gantline.live.service.context import Context, Service
from gantline.live.service.failures import NoRightError, TextError
from gantline.live.service.roles import Role


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
        if role is Role.ANYONE:
            return
        caller = request.state.caller
        if not caller.may(role):
            raise NoRightError(f"needs the role {role}; this token is for {caller.role}", where="token", fix="ask an admin for a token")

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
