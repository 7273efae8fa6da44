"""``gantline down``: the end of a service."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from gantline.cli.arguments import time_of
from gantline.cli.console import say
from gantline.cli.live.connection import HomeOption, connect
from gantline.core.errors import UnreachableError

if TYPE_CHECKING:
    from gantline.live.service.client import Client

app = App(name="down")


@app.default
def down(
    *,
    home: HomeOption = None,
    keep_jobs: Annotated[bool, Parameter(negative="", help="Leave the jobs running; the next service adopts them.")] = False,
    timeout: Annotated[str, Parameter(help="How long to wait until it is gone.")] = "5m",
) -> int:
    """End the service: its jobs are stopped and saved first, and go on when it is started again."""
    limit = time_of(timeout, "--timeout") or 0.0
    end = time.monotonic() + limit
    with connect(home) as client:
        answer = client.shutdown(drain=not keep_jobs)
        if answer.get("why"):
            say(f"warning: the jobs are left running, because their stop cannot be recorded: {answer['why']}")
        while time.monotonic() < end:
            if not _answers(client) and not _announced(home, answer["pid"]):
                say(f"note: process {answer['pid']} has ended" + ("" if answer["drain"] else "; its jobs go on"))
                return 0
            time.sleep(0.1)
    say(f"error: the service still runs after {timeout}")
    return 1


def _answers(client: Client) -> bool:
    try:
        client.status()
    except UnreachableError:
        return False
    return True


def _announced(home: Path | None, pid: int) -> bool:
    """Whether the process still has its address in the home; it removes that when it has released everything."""
    from gantline.live.service.home import Home

    found = Home.find(home).announced()
    return found is not None and found.get("pid") == pid
