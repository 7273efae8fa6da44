"""``gantline events``: what has happened, and what happens."""

from __future__ import annotations

import time
from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.live.connection import HomeOption, connect
from gantline.cli.live.get import show_events
from gantline.cli.live.sheets import WideForm

app = App(name="events")


@app.default
def events(
    *,
    home: HomeOption = None,
    job: Annotated[str, Parameter(help="Only of this job.")] = "",
    limit: Annotated[int, Parameter(help="At most so many, the newest.")] = 100,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], negative="", help="Go on with what happens from now on.")] = False,
    output: WideForm = "table",
) -> None:
    """List what has happened; with -f also what happens, until Ctrl-C."""
    with connect(home) as client:
        rows = client.events(job=job, limit=limit)
        show_events(rows, output)
        last = rows[-1]["number"] if rows else 0
        while follow:
            time.sleep(0.5)
            rows = client.events(job=job, after=last, limit=limit) if last else client.events(job=job, limit=limit)
            if rows:
                show_events(rows, output)
                last = rows[-1]["number"]
