"""``gantline cancel|hold|release|requeue|save|resize``: what people want of jobs that are there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from gantline.cli.console import say
from gantline.cli.live.connection import HomeOption, Yes, connect
from gantline.core.errors import RefusedError, UsageError
from gantline.live.jobs.amounts import sizes

Ids = Annotated[str, Parameter(help="Ids of jobs; the number of an array means all its tasks.")]
_ASK_FROM = 2  # jobs

cancel, hold, release, requeue, save, resize = (App(name=name) for name in ("cancel", "hold", "release", "requeue", "save", "resize"))


@cancel.default
def cancel_jobs(
    *ids: Ids,
    home: HomeOption = None,
    everything: Annotated[bool, Parameter(name="--all")] = False,
    yes: Yes = False,
) -> None:
    """End jobs: those that run are stopped. More than one at a time is asked for, unless --yes.

    Args:
        everything: All that have not ended and are yours.
    """
    _request("cancel", ids, home, yes, ask=True, everything=everything)


@hold.default
def hold_jobs(*ids: Ids, home: HomeOption = None, yes: Yes = False) -> None:
    """Keep jobs out until they are released; those that run are stopped and saved."""
    _request("hold", ids, home, yes, ask=True)


@release.default
def release_jobs(*ids: Ids, home: HomeOption = None) -> None:
    """Let jobs in that were held."""
    _request("release", ids, home, True)


@requeue.default
def requeue_jobs(*ids: Ids, home: HomeOption = None, yes: Yes = False) -> None:
    """Stop and save jobs, or bring back those that failed or were cancelled; they wait like any other."""
    _request("requeue", ids, home, yes, ask=True)


@save.default
def save_jobs(*ids: Ids, home: HomeOption = None) -> None:
    """Have jobs save their work now and go on; a job that cannot is left alone, and the request refused."""
    _request("save", ids, home, True)


@resize.default
def resize_job(id: Ids, gpus: str, /, *, home: HomeOption = None) -> None:
    """Let a job ask for another number of devices; the policy decides when it gets them.

    Args:
        gpus: How many devices: 4, or 2:8.
    """
    low, high = sizes(gpus, "GPUS")
    with connect(home) as client:
        print("\n".join(client.resize(id, low, low, high)))


def _request(request: str, ids: tuple[str, ...], home: Path | None, yes: bool, *, ask: bool = False, everything: bool = False) -> None:
    if not ids and not everything:
        raise UsageError("no job is named", where=request, fix="give ids" + (", or --all" if request == "cancel" else ""))
    with connect(home) as client:
        jobs = [job for job in client.jobs(id=None if everything else list(ids)) if job["ended"] is None or job["id"] in ids]
        mine = client.status()["user"]
        chosen = [job["id"] for job in jobs if not everything or job["user"] == mine]
        if request == "cancel":
            chosen = _not_ended(chosen, jobs)
        if ask and len(chosen) >= _ASK_FROM and not yes:
            _confirm(request, chosen)
        if chosen:
            print("\n".join(getattr(client, request)(*chosen)))
        else:
            say("note: no job is left to " + request)


def _not_ended(ids: list[str], jobs: list[dict[str, Any]]) -> list[str]:
    """Those that can still be cancelled; the others are named with how they ended, and where that is all of them it is refused."""
    ended = [f"{job['id']} ({job['state']})" for job in jobs if job["ended"] is not None and job["id"] in ids]
    left = [id for id in ids if not any(job["id"] == id and job["ended"] is not None for job in jobs)]
    if ended:
        text = f"{', '.join(ended[:10])}{' and others' if len(ended) > 10 else ''} had ended already"
        if not left:
            raise RefusedError(text, where="cancel", fix="nothing is left to cancel")
        say(f"note: {text}")
    return left


def _confirm(request: str, ids: list[str]) -> None:
    if not sys.stdin.isatty():
        raise RefusedError(f"{len(ids)} jobs, and no terminal to ask on", where=request, fix="add --yes")
    shown = ", ".join(ids[:10]) + (" ..." if len(ids) > 10 else "")
    print(f"{request} {len(ids)} jobs ({shown})? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise RefusedError("not confirmed, nothing was done", where=request)


# ``gantline set``: other terms for a job that has not ended.

set_app = App(
    name="set",
    help_epilogue="""Examples:

  gantline set 42 --priority 5 --queue research/nlp
  gantline set 42 --time-limit 2h --name second-try
  gantline set 42 --estimate none""",
)
_NONE = "; 'none': without"


@set_app.default
def set_job(
    id: str,
    /,
    *more: str,
    home: HomeOption = None,
    priority: str | None = None,
    queue: str | None = None,
    name: str | None = None,
    time_limit: Annotated[
        str | None, Parameter(name=["--time-limit", "--time"], help=f"How long it may run: 90s, 2h, D-HH:MM:SS{_NONE}.")
    ] = None,
    estimate: Annotated[str | None, Parameter(help=f"How long it will likely run{_NONE}.")] = None,
) -> None:
    """Change the priority, queue, name, time limit or estimate of a job that has not ended.

    Args:
        id: The job.
        more: Other jobs that are to be changed alike; the number of an array means its tasks.
        priority: low, normal, high or a whole number; higher goes first.
        queue: Its queue; only while it waits.
        name: What to call it.
    """
    given: dict[str, Any] = {"queue": queue, "name": name, "time_limit": time_limit, "estimate": estimate}
    changes = {
        key: None if value == "none" and key in ("time_limit", "estimate") else value for key, value in given.items() if value is not None
    }
    if priority is not None:
        changes["priority"] = int(priority) if priority.lstrip("+-").isdigit() else priority
    with connect(home) as client:
        print(*client.set_many([id, *more], **changes), sep="\n")
