"""``gantline user add|list|drop``: the accounts of this machine that users' jobs run as."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import say
from gantline.cli.live.connection import HomeOption, connect
from gantline.cli.live.sheets import WideForm, show_rows

app = App(name="user")


@app.command(name="add")
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


@app.command(name="list")
def list_users(*, home: HomeOption = None, output: WideForm = "table") -> None:
    """List users with their accounts; others have the account of the same name, if there is one."""
    with connect(home) as client:
        show_rows(client.get("/v1/users")["users"], output, "user")


@app.command(name="drop")
def drop_account(name: Annotated[str, Parameter(help="The user.")], /, *, home: HomeOption = None) -> None:
    """Forget which account was given to a user."""
    with connect(home) as client:
        client.delete(f"/v1/users/{name}")
    print(name)
