"""``gantline logs``: what a job has printed."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.console import say, write
from gantline.cli.live.connection import HomeOption, connect

app = App(name="logs")


@app.default
def logs(
    id: Annotated[str, Parameter(help="The job.")],
    /,
    *,
    home: HomeOption = None,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], negative="", help="Go on until it has ended.")] = False,
    tail: Annotated[int | None, Parameter(help="Begin with the last so many lines.")] = None,
    rank: Annotated[int | None, Parameter(help="Only of this rank, where a job has several.")] = None,
    epoch: Annotated[int | None, Parameter(help="Of this incarnation; by default the newest.")] = None,
) -> None:
    """Print what a job has printed."""
    with connect(home) as client:
        for piece in client.logs(id, follow=follow, tail=tail, rank=rank, epoch=epoch):
            write(piece)
            sys.stdout.flush()
        lost = client.job(id)["lost_output"]
    if lost:
        say(f"warning: {lost} bytes of its output were lost: they could not be written when the disk was full")
