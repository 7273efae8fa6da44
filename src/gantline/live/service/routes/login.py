"""Log-in of browsers, and what a caller may do."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from gantline.live.service.failures import NoRightError, NoTokenError
from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router

router = Router(tags=["log-in"])


class LoginCode(BaseModel):
    """The code that a browser was opened with."""

    model_config = ConfigDict(extra="forbid")
    code: Annotated[str, Field(max_length=200)]


@router.at("POST", "/v1/login", Role.ANYONE, status_code=201)
def login(given: LoginCode, request: Request) -> dict[str, Any]:
    """Exchange a code, once, for a token that is valid for some hours."""
    access = request.app.state.service.access
    traded = access.sessions.trade(given.code)
    caller = access.caller(traded[0]) if traded is not None else None
    if traded is None or caller is None:
        raise NoTokenError("the code is not known, was used already or is too old", where="code", fix="run gantline dashboard again")
    return {"token": traded[0], "expires": caller.expires, "user": caller.user, "role": caller.role.value}


@router.at("POST", "/v1/login/code", Role.VIEWER, status_code=201)
def make_code(here: Here) -> dict[str, Any]:
    """A code for one use within some minutes, and the address that logs a browser in with it."""
    if here.caller.is_session:
        raise NoRightError("a browser's session opens no other one", where="token", fix="run gantline dashboard")
    code, expires = here.service.access.sessions.code(here.caller.token)
    return {"code": code, "expires": expires, "url": f"{here.service.address}/#login={code}"}


@router.at("GET", "/v1/me", Role.VIEWER)
def me(request: Request, here: Here) -> dict[str, Any]:
    """Who the caller is, until when, and the operations that its role may call, by their names in the description."""
    caller = here.caller
    may = [operation for operation, role in request.app.state.operations.items() if caller.may(role)]
    return {"user": caller.user, "role": caller.role.value, "expires": caller.expires, "kind": request.app.state.kind, "may": may}
