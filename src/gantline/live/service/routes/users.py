"""Users and the accounts of this machine that their jobs run as, if root runs the service."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gantline.core.errors import NotFoundError, near
from gantline.live.service.access import check_user
from gantline.live.service.context import Context
from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router

router = Router(tags=["users"])


class NewAccount(BaseModel):
    """The account that a user's jobs run as; empty: the one of the same name."""

    model_config = ConfigDict(extra="forbid")
    account: Annotated[str, Field(max_length=64)] = ""


@router.at("GET", "/v1/users", Role.ADMIN)
def list_users(here: Here) -> dict[str, Any]:
    """Users that were given an account, and whether jobs run as users at all."""
    return {
        "users": [{"user": user, "account": account} for user, account in sorted(_accounts(here).items())],
        "run_as": "users" if here.scheduler.runner.accounts.apart else "service",
    }


@router.at("PUT", "/v1/users/{name}", Role.ADMIN)
def set_user(name: str, new: NewAccount, here: Here) -> dict[str, Any]:
    """From now on the user's jobs run as this account, if root runs the service."""
    check_user(name)
    account = here.scheduler.runner.accounts.find(new.account or name).name
    with here.service.store.transaction() as write:
        write.remember("accounts", {**_accounts(here), name: account})
    here.note("account", of=name, account=account)
    here.scheduler.look_for_accounts()
    return {"user": name, "account": account}


@router.at("DELETE", "/v1/users/{name}", Role.ADMIN)
def drop_user(name: str, here: Here) -> dict[str, Any]:
    """Remove the account: the user's jobs run as the account of the same name."""
    known = _accounts(here)
    if name not in known:
        raise NotFoundError(f"no account was given to '{name[:64]}'", where="user", fix=near(name[:64], known) if known else "")
    with here.service.store.transaction() as write:
        write.remember("accounts", {user: account for user, account in known.items() if user != name})
    here.note("account-dropped", of=name)
    return {"user": name}


def _accounts(here: Context) -> dict[str, str]:
    return dict(here.service.store.recall("accounts", {}))
