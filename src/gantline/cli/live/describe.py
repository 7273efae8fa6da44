"""``gantline describe job``: everything about one job."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from gantline.cli.console import Sheet, printable, show, show_json, show_object
from gantline.cli.live.connection import HomeOption, connect
from gantline.cli.live.sheets import moment

app = App(name="describe")


@app.command(name="job")
def describe_job(
    id: Annotated[str, Parameter(help="The job.")],
    /,
    *,
    home: HomeOption = None,
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"], help="Lines for people, or JSON.")] = "table",
) -> None:
    """Show a job: its state and why, its specification, its history, the last lines of its output if it failed."""
    with connect(home) as client:
        answer = client.job(id)
    if output == "json":
        show_json(answer)
        return
    apart = ("spec", "history", "lines", "submitted", "started", "ended")
    times = {key: moment(answer[key]) for key in ("submitted", "started", "ended")}
    show_object({**{key: value for key, value in answer.items() if key not in apart}, **times}, "table")
    print("\nspecification")
    show_object(answer["spec"], "table")
    print("\nhistory")
    show(Sheet.of("time event state reason why user", [_line(event) for event in answer["history"]]), "table")
    if answer["lines"]:
        print("\nlast lines")
        print("\n".join(map(printable, answer["lines"])))


def _line(event: dict[str, Any]) -> list[Any]:
    return [moment(event["time"]), *(event.get(key, "") for key in ("event", "state", "reason", "why", "user"))]
