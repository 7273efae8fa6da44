"""``gantline token create|list|revoke``: which users may call the service."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from gantline.cli.arguments import finite_time_of
from gantline.cli.console import say, show_json
from gantline.cli.live.connection import HomeOption, WideForm, connect, moment, show_rows

token_app = App(name="token")


@token_app.command
def create(
    user: str,
    /,
    *,
    home: HomeOption = None,
    role: Literal["viewer", "submitter", "operator", "admin"] = "submitter",
    lifetime: str | None = None,
    output: Annotated[Literal["token", "json"], Parameter(name=["--output", "-o"])] = "token",
) -> None:
    """Make a token and print it, this once.

    Args:
        user: Whose token it will be.
        role: What it is good for.
        lifetime: For how long: 12h, 90d. By default until it is revoked.
        output: The token alone, or JSON.
    """
    with connect(home) as client:
        answer = client.create_token(user, role, finite_time_of(lifetime, "--lifetime", above=True))
    if output == "json":
        show_json(answer)
    else:
        print(answer["token"])
        say(f"note: token {answer['id']} for {user} as {role}; it is not shown again")


@token_app.command(name="list")
def list_tokens(*, home: HomeOption = None, output: WideForm = "table") -> None:
    """List tokens by id; what they are only their owners know."""
    with connect(home) as client:
        rows = client.tokens()
    if output in ("table", "wide"):
        rows = [{**row, **{key: moment(row[key]) for key in ("created", "expires", "revoked")}} for row in rows]
    show_rows(rows, output, "id")


@token_app.command(name="set")
def set_role(
    id: str,
    /,
    *,
    role: Literal["viewer", "submitter", "operator", "admin"],
    home: HomeOption = None,
) -> None:
    """Give a token another role; browsers that logged in with it have that role, too.

    Args:
        id: An id from 'gantline token list'.
        role: What it is good for from now on.
    """
    with connect(home) as client:
        client.change_token(id, role)
    print(id)


@token_app.command
def revoke(id: str, /, *, home: HomeOption = None) -> None:
    """Make a token good for nothing.

    Args:
        id: An id from 'gantline token list'.
    """
    with connect(home) as client:
        client.revoke_token(id)
    print(id)


# ``gantline user add|list|drop``: the accounts of this machine that users' jobs run as.

user_app = App(name="user")


@user_app.command(name="add")
def add_account(
    name: str,
    /,
    *,
    home: HomeOption = None,
    account: str = "",
) -> None:
    """Say which account a user's jobs run as, where root serves.

    Args:
        name: The user, as tokens name it.
        account: The account of this machine. By default the one of the same name.
    """
    with connect(home) as client:
        answer = client.put(f"/v1/users/{name}", {"account": account})
        if client.get("/v1/users")["run_as"] == "service":
            say("note: jobs of all users run as the service does now; gantline up --run-as users, started by root, keeps them apart")
    print(answer["account"])


@user_app.command(name="list")
def list_users(*, home: HomeOption = None, output: WideForm = "table") -> None:
    """List users with their accounts; others have the account of the same name, if there is one."""
    with connect(home) as client:
        show_rows(client.get("/v1/users")["users"], output, "user")


@user_app.command(name="drop")
def drop_account(name: str, /, *, home: HomeOption = None) -> None:
    """Forget which account was given to a user.

    Args:
        name: The user.
    """
    with connect(home) as client:
        client.delete(f"/v1/users/{name}")
    print(name)
