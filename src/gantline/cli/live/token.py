"""``gantline token create|list|revoke``: which users may call the service."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from gantline.cli.arguments import finite_time_of
from gantline.cli.console import say, show_json
from gantline.cli.live.connection import HomeOption, connect
from gantline.cli.live.sheets import WideForm, moment, show_rows

app = App(name="token")


@app.command
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


@app.command(name="list")
def list_tokens(*, home: HomeOption = None, output: WideForm = "table") -> None:
    """List tokens by id; what they are only their owners know."""
    with connect(home) as client:
        rows = client.tokens()
    if output in ("table", "wide"):
        rows = [{**row, **{key: moment(row[key]) for key in ("created", "expires", "revoked")}} for row in rows]
    show_rows(rows, output, "id")


@app.command(name="set")
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


@app.command
def revoke(id: Annotated[str, Parameter(help="An id from 'gantline token list'.")], /, *, home: HomeOption = None) -> None:
    """Make a token good for nothing."""
    with connect(home) as client:
        client.revoke_token(id)
    print(id)
