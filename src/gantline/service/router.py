"""Routes that cannot exist without a role."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from gantline.service.context import Context, Service
from gantline.service.failures import NoRightError
from gantline.service.roles import Role


class Router(APIRouter):
    """Adds routes by method, path and the role they need; OpenAPI tells the role as `x-role`."""

    def at(self, method: str, path: str, role: Role, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(call: Callable[..., Any]) -> Callable[..., Any]:
            extra = {"x-role": role.value, "security": [{"token": []}], **more.pop("openapi_extra", {})}
            summary = (call.__doc__ or "").strip().split("\n")[0]
            name = call.__name__
            self.add_api_route(
                path,
                call,
                methods=[method],
                dependencies=[Depends(_needs(role))],
                openapi_extra=extra,
                summary=summary,
                operation_id=name,
                **more,
            )
            return call

        return register


def _needs(role: Role) -> Callable[[Request], None]:
    def check(request: Request) -> None:
        caller = request.state.caller
        if not caller.may(role):
            raise NoRightError(f"needs the role {role}; this token is for {caller.role}", where="token", fix="ask an admin for a token")

    return check


def _context(request: Request) -> Context:
    service: Service = request.app.state.service
    return Context(service, request.state.caller)


Here = Annotated[Context, Depends(_context)]
