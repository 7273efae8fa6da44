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
    user: Annotated[str, Parameter(help="Whose token it will be.")],
    /,
    *,
    home: HomeOption = None,
    role: Annotated[Literal["viewer", "submitter", "operator", "admin"], Parameter(help="What it is good for.")] = "submitter",
    lifetime: Annotated[str | None, Parameter(help="For how long: 12h, 90d. By default until it is revoked.")] = None,
    output: Annotated[Literal["token", "json"], Parameter(name=["--output", "-o"], help="The token alone, or JSON.")] = "token",
) -> None:
    """Make a token and print it, this once."""
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
    id: Annotated[str, Parameter(help="An id from 'gantline token list'.")],
    /,
    *,
    role: Annotated[Literal["viewer", "submitter", "operator", "admin"], Parameter(help="What it is good for from now on.")],
    home: HomeOption = None,
) -> None:
    """Give a token another role; browsers that logged in with it have that role, too."""
    with connect(home) as client:
        client.change_token(id, role)
    print(id)


@token_app.command
def revoke(id: Annotated[str, Parameter(help="An id from 'gantline token list'.")], /, *, home: HomeOption = None) -> None:
    """Make a token good for nothing."""
    with connect(home) as client:
        client.revoke_token(id)
    print(id)


# ``gantline user add|list|drop``: the accounts of this machine that users' jobs run as.

user_app = App(name="user")


@user_app.command(name="add")
def add_account(
    name: Annotated[str, Parameter(help="The user, as tokens name it.")],
    /,
    *,
    home: HomeOption = None,
    account: Annotated[str, Parameter(help="The account of this machine. By default the one of the same name.")] = "",
) -> None:
    """Say which account a user's jobs run as, where root serves."""
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
def drop_account(name: Annotated[str, Parameter(help="The user.")], /, *, home: HomeOption = None) -> None:
    """Forget which account was given to a user."""
    with connect(home) as client:
        client.delete(f"/v1/users/{name}")
    print(name)
