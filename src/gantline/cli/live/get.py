"""``gantline get``: lists of jobs, nodes, reservations, queues, events, decisions."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from gantline.cli.console import Sheet, printable, say, show, show_json, show_object
from gantline.cli.live.connection import HomeOption, WideForm, connect, moment, show_jobs, show_rows
from gantline.core.errors import NotFoundError, UsageError, near

get_app = App(
    name="get",
    help_epilogue="""Examples:

  gantline get jobs --state running -o wide
  gantline get jobs -l team=nlp --watch
  gantline get jobs -o json
  gantline get nodes
  gantline get reservations
  gantline get decisions --limit 10""",
)
STATES = ("held", "pending", "starting", "running", "resizing", "preempting", "suspended", "succeeded", "failed", "cancelled", "timeout")
_CHANGES = ("id", "state", "reason", "gpus", "devices", "restarts", "exit_code")
_LOOK = 0.5  # seconds between two checks for changes
Limit = Annotated[int, Parameter(help="At most so many, the newest.")]
After = Annotated[int, Parameter(help="Only those behind this number.")]


@get_app.command
def jobs(
    *ids: str,
    home: HomeOption = None,
    state: list[str] | None = None,
    user: str = "",
    queue: str = "",
    label: Annotated[list[str] | None, Parameter(name=["--label", "-l"])] = None,
    archived: bool = False,
    search: str = "",
    sort: Annotated[str, Parameter(allow_leading_hyphen=True)] = "",
    watch: Annotated[bool, Parameter(name=["--watch", "-w"])] = False,
    limit: Limit = 10_000,
    before: str = "",
    output: WideForm = "table",
) -> None:
    """List jobs with their states and the reasons for them.

    Args:
        ids: Ids; by default all.
        state: Only in this state; may be repeated.
        user: Only of this user.
        queue: Only of this queue and those below it.
        archived: Jobs that have left the store instead (gantline up --keep).
        search: Only with this in an id, name, user, queue, state or label.
        before: Only jobs that were submitted before this one: the next page.
        label: Only with this label, KEY=VALUE or KEY; may be repeated.
        sort: By a field: gpus, -submitted (largest first), position, start_p50, ...
        watch: Show them again whenever one has changed.
    """
    for one in state or ():
        if one not in STATES:
            raise NotFoundError(f"no state '{one}'", where="--state", fix=near(one, STATES))
    if watch and archived:
        raise UsageError("archived jobs do not change", where="--watch", fix="leave it out")
    with connect(home) as client:
        seen: Any = None
        asked = {"id": list(ids), "state": state, "user": user, "queue": queue, "label": label, "limit": limit, "before": before}
        asked |= {"q": search, "sort": sort}
        while True:
            listing = client.listing(**asked, archived=archived or None)
            found = listing["jobs"]
            now = [[job[name] for name in _CHANGES] for job in found]
            if now != seen:
                show_jobs(found, output)
                sys.stdout.flush()
                if listing["next"] is not None:
                    say(f"the newest {len(found)} of {listing['total']}; older ones: --before {listing['next']}")
            if not watch or (ids and all(job["ended"] is not None for job in found)):
                return
            seen = now
            time.sleep(_LOOK)


@get_app.command
def nodes(*, home: HomeOption = None, output: WideForm = "table") -> None:
    """List nodes with their devices and jobs, and what is cordoned."""
    with connect(home) as client:
        rows = client.nodes()
    if output in ("table", "wide"):
        rows = [{**row, **{what: _taken(row, what) for what in ("cpus", "memory")}} for row in rows]
    show_rows(rows, output, "name", ("name", "type", "state", "gpus", "busy", "cpus", "memory", "cordoned", "reserved", "jobs"))


def _taken(node: dict[str, Any], what: str) -> str:
    """How much of a resource jobs have asked for, of how much there is."""
    total = node.get(what) or 0.0
    return f"{node[f'{what}_taken']:.4g}/{total:.4g}" if total else "-"


@get_app.command
def reservations(*, home: HomeOption = None, output: WideForm = "table") -> None:
    """List windows: devices that are reserved in advance, from when to when, and for which users and queues."""
    with connect(home) as client:
        rows = client.reservations()
    if output in ("table", "wide"):
        rows = [{**row, "start": moment(row["start"]), "end": moment(row["end"])} for row in rows]
    show_rows(rows, output, "name", ("name", "state", "start", "end", "places", "users", "queues"))


@get_app.command
def queues(*, home: HomeOption = None, output: WideForm = "table") -> None:
    """List queues: what they are promised, what they may borrow beyond that, and what they hold."""
    with connect(home) as client:
        rows = client.queues()
    if output in ("table", "wide"):
        rows = [{**row, "quota": "none"} if row["quota"] is None else row for row in rows]
    show_rows(rows, output, "name", ("name", "quota", "borrow", "weight", "gpus", "jobs"))


@get_app.command
def events(
    *,
    home: HomeOption = None,
    job: str = "",
    after: After = 0,
    limit: Limit = 100,
    output: WideForm = "table",
) -> None:
    """List what has happened.

    Args:
        job: Only of this job.
    """
    with connect(home) as client:
        show_events(client.events(job=job, after=after, limit=limit), output)


@get_app.command
def decisions(*, home: HomeOption = None, after: After = 0, limit: Limit = 20, output: WideForm = "table") -> None:
    """List what the policy has decided."""
    with connect(home) as client:
        rows = client.decisions(after=after, limit=limit)
    if output in ("table", "wide"):
        chosen = ("in_charge", "why") if any("in_charge" in row for row in rows) else ()  # of policies that choose among several
        rows = [
            {"number": row["number"], "time": row.get("time", row.get("now")), "decision": _short(row)}
            | {name: row.get(name, "") for name in chosen}
            for row in rows
        ]
    show_rows(rows, output, "number")


def show_events(rows: list[dict[str, Any]], form: str) -> None:
    """Events, a line each."""
    if form not in ("table", "wide"):
        show_rows(rows, form, "number")
        return
    known = ("number", "time", "event", "job", "state", "user", "why", "reason")
    entries = [
        {
            **{name: row.get(name, "") for name in known},
            "time": moment(row["time"]),
            "more": {k: v for k, v in row.items() if k not in known},
        }
        for row in rows
    ]
    names = ("number", "time", "event", "job", "state", "user", "why", *(("reason", "more") if form == "wide" else ()))
    show_rows(entries, "table", "number", names)


def _short(row: dict[str, Any]) -> str:
    found = json.dumps({key: value for key, value in row.items() if key not in ("number", "time", "in_charge", "why")}, ensure_ascii=False)
    return found if len(found) <= 100 else found[:97] + "..."


# ``gantline events``: what has happened, and what happens.

events_app = App(name="events")


@events_app.default
def list_events(
    *,
    home: HomeOption = None,
    job: str = "",
    limit: int = 100,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"])] = False,
    output: WideForm = "table",
) -> None:
    """List what has happened; with -f also what happens, until Ctrl-C.

    Args:
        job: Only of this job.
        limit: At most so many, the newest.
        follow: Go on with what happens from now on.
    """
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


# ``gantline describe job``: everything about one job.

describe_app = App(name="describe")


@describe_app.command(name="job")
def describe_job(
    id: str,
    /,
    *,
    home: HomeOption = None,
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"])] = "table",
) -> None:
    """Show a job: its state and why, its specification, its history, the last lines of its output if it failed.

    Args:
        id: The job.
        output: Lines for people, or JSON.
    """
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
