"""``gantline wait``: until jobs have ended."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from gantline.cli.arguments import time_of
from gantline.cli.console import Form, say
from gantline.cli.live.connection import HomeOption, connect
from gantline.cli.live.sheets import show_jobs
from gantline.core.units import human_seconds

app = App(name="wait")
_ENDED = ("succeeded", "failed", "cancelled", "rejected", "timeout")


@app.default
def wait(
    *ids: Annotated[str, Parameter(help="Ids of jobs; the number of an array means all its tasks.")],
    home: HomeOption = None,
    timeout: Annotated[str | None, Parameter(help="Seconds, or 10m: how long at most. By default for ever.")] = None,
    output: Form = "table",
) -> int:
    """Wait until jobs have ended: exit code 0 if all succeeded, 1 if one did not, 4 if the time was over first."""
    limit = time_of(timeout, "--timeout")
    with connect(home) as client:
        jobs = client.wait(*ids, timeout=limit) if ids else []
    show_jobs(jobs, output)
    late = [job["id"] for job in jobs if job["state"] not in _ENDED]
    bad = [job["id"] for job in jobs if job["state"] in _ENDED and job["state"] != "succeeded"]
    if late:
        say(f"error: {', '.join(late)} {'has' if len(late) == 1 else 'have'} not ended after {human_seconds(limit or 0.0)}")
        return 4
    if bad:
        say(f"error: {', '.join(bad)} did not succeed")
        return 1
    return 0
