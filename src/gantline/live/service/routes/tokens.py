"""Tokens: made, listed, revoked by admins."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router

router = Router(tags=["tokens"])


class NewToken(BaseModel):
    """The user and the role of a token, and for how many seconds it is valid."""

    model_config = ConfigDict(extra="forbid")
    user: str
    role: str = "submitter"
    lifetime: Annotated[float, Field(gt=0, le=1e10)] | None = None


@router.at("GET", "/v1/tokens", Role.ADMIN)
def list_tokens(here: Here) -> dict[str, Any]:
    """All tokens by id; the tokens themselves are known to their owners alone."""
    names = ("id", "user", "role", "created", "expires", "revoked")
    return {"tokens": [{name: getattr(row, name) for name in names} for row in here.service.access.listed()]}


@router.at("POST", "/v1/tokens", Role.ADMIN, status_code=201)
def create_token(new: NewToken, here: Here) -> dict[str, Any]:
    """Make a token; it is shown this once."""
    row, token = here.service.access.create(new.user, new.role, new.lifetime or math.inf)
    here.note("token-created", of=new.user, role=new.role, token=row.id)
    return {"id": row.id, "user": row.user, "role": row.role, "expires": row.expires, "token": token}


class NewRole(BaseModel):
    """The new role of a token."""

    model_config = ConfigDict(extra="forbid")
    role: str


@router.at("PATCH", "/v1/tokens/{id}", Role.ADMIN)
def change_token(id: str, new: NewRole, here: Here) -> dict[str, Any]:
    """Give a token, and the browser sessions that began with it, another role."""
    here.service.access.change_role(id, new.role)
    here.note("token-changed", token=id, role=new.role)
    return {"id": id, "role": new.role}


@router.at("DELETE", "/v1/tokens/{id}", Role.ADMIN)
def revoke_token(id: str, here: Here) -> dict[str, Any]:
    """Revoke a token: it is invalid from now on."""
    here.service.access.revoke(id)
    here.note("token-revoked", token=id)
    return {"id": id, "revoked": True}
