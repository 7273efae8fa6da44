"""``gantline set``: other terms for a job that has not ended."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from gantline.cli.live.connection import HomeOption, connect

app = App(
    name="set",
    help_epilogue="""Examples:

  gantline set 42 --priority 5 --queue research/nlp
  gantline set 42 --time-limit 2h --name second-try
  gantline set 42 --estimate none""",
)
_NONE = "; 'none': without"


@app.default
def set_job(
    id: Annotated[str, Parameter(help="The job.")],
    /,
    *more: Annotated[str, Parameter(help="Other jobs that are to be changed alike; the number of an array means its tasks.")],
    home: HomeOption = None,
    priority: Annotated[str | None, Parameter(help="low, normal, high or a whole number; higher goes first.")] = None,
    queue: Annotated[str | None, Parameter(help="Its queue; only while it waits.")] = None,
    name: Annotated[str | None, Parameter(help="What to call it.")] = None,
    time_limit: Annotated[
        str | None, Parameter(name=["--time-limit", "--time"], help=f"How long it may run: 90s, 2h, D-HH:MM:SS{_NONE}.")
    ] = None,
    estimate: Annotated[str | None, Parameter(help=f"How long it will likely run{_NONE}.")] = None,
) -> None:
    """Change the priority, queue, name, time limit or estimate of a job that has not ended."""
    given: dict[str, Any] = {"queue": queue, "name": name, "time_limit": time_limit, "estimate": estimate}
    changes = {
        key: None if value == "none" and key in ("time_limit", "estimate") else value for key, value in given.items() if value is not None
    }
    if priority is not None:
        changes["priority"] = int(priority) if priority.lstrip("+-").isdigit() else priority
    with connect(home) as client:
        print(*client.set_many([id, *more], **changes), sep="\n")
