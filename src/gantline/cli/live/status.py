"""``gantline status``: how the service stands."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from gantline.cli.arguments import time_of
from gantline.cli.console import Form, Sheet, csv_text, is_watched, printable, say, show, show_json, show_object, write
from gantline.cli.live.connection import HomeOption, WideForm, connect, show_jobs
from gantline.core.errors import RefusedError
from gantline.core.fields import human_seconds
from gantline.lab.whole_files import write_text

status_app = App(name="status")


@status_app.default
def status(
    *,
    home: HomeOption = None,
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"])] = "table",
) -> None:
    """Say where the service is, which policy decides, which devices there are, and how many jobs are in which state.

    Args:
        output: Lines for people, or JSON.
    """
    with connect(home) as client:
        answer = client.status()
    show_object(answer if output == "json" else _for_people(answer), output)


def _for_people(values: dict[str, Any]) -> dict[str, Any]:
    devices = ", ".join(f"{kind}: {one['busy']} of {one['count']} busy" for kind, one in values["devices"].items())
    jobs = ", ".join(f"{count} {state}" for state, count in sorted(values["jobs"].items())) or "none"
    shown = {key: values[key] for key in ("address", "pid", "version", "home", "policy")}
    aside = "; ".join(f"journal line {one['number']} {one['why']}" for one in values["set_aside"])
    rules = values["rules"]
    spared = f"a job runs for {rules['min_run']:g} s before it is stopped for others, and up to {rules['grace']:g} s until it has saved"
    spared += f"; an order that moves by itself stops jobs every {rules['turn']:g} s" if rules["turn"] else ""
    shown |= {
        "rules": spared,
        "devices": devices,
        "jobs": jobs,
        "deciding": values["deciding"],
        "incidents": "; ".join(values["incidents"]),
    }
    chosen = {"in charge": values["in_charge"]} if values["in_charge"] else {}
    return {**shown, **chosen, **({"set aside": aside} if aside else {})}


# ``gantline top``: devices and jobs that run, at a glance.

top_app = App(name="top")
_BAR = 20  # characters
_RUNNING = ("starting", "running", "resizing", "preempting")


@top_app.default
def top(
    *,
    home: HomeOption = None,
    watch: Annotated[bool, Parameter(name=["--watch", "-w"])] = False,
    output: WideForm = "table",
) -> None:
    """Show which devices are busy, which jobs run, and how many wait.

    Args:
        watch: Go on until Ctrl-C.
    """
    with connect(home) as client:
        while True:
            status, nodes, jobs = client.status(), client.nodes(), client.jobs(state=list(_RUNNING))
            if watch and is_watched():
                print("\033[2J\033[H", end="")
            _show(status, nodes, jobs, output)
            if not watch:
                return
            time.sleep(1.0)


def _show(status: dict[str, Any], nodes: list[dict[str, Any]], jobs: list[dict[str, Any]], form: str) -> None:
    if form in ("json", "csv", "name"):
        if form == "json":
            show_json({"policy": status["policy"], "jobs": status["jobs"], "nodes": nodes, "running": jobs})
        else:
            show_jobs(jobs, form)
        return
    counts = ", ".join(f"{count} {state}" for state, count in sorted(status["jobs"].items())) or "no jobs"
    print(printable(f"{status['policy']}: {counts}") + "\n")
    rows = [
        (node["name"], node["state"], f"{node['busy']}/{node['gpus']}", _bar(node["busy"], node["gpus"]), ",".join(node["cordoned"]))
        for node in nodes
    ]
    show(Sheet.of("node state busy use cordoned", rows), "table")
    print()
    show_jobs(jobs, form)


def _bar(busy: int, total: int) -> str:
    full = round(_BAR * busy / total) if total else 0
    return "█" * full + "░" * (_BAR - full)


# ``gantline logs``: what a job has printed.

logs_app = App(name="logs")


@logs_app.default
def logs(
    id: str,
    /,
    *,
    home: HomeOption = None,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"])] = False,
    tail: int | None = None,
    rank: int | None = None,
    epoch: int | None = None,
) -> None:
    """Print what a job has printed.

    Args:
        id: The job.
        tail: Begin with the last so many lines.
        rank: Only of this rank, where a job has several.
        epoch: Of this incarnation; by default the newest.
        follow: Go on until it has ended.
    """
    with connect(home) as client:
        for piece in client.logs(id, follow=follow, tail=tail, rank=rank, epoch=epoch):
            write(piece)
            sys.stdout.flush()
        lost = client.job(id)["lost_output"]
    if lost:
        say(f"warning: {lost} bytes of its output were lost: they could not be written when the disk was full")


# ``gantline wait``: until jobs have ended.

wait_app = App(name="wait")
_ENDED = ("succeeded", "failed", "cancelled", "rejected", "timeout")


@wait_app.default
def wait(
    *ids: str,
    home: HomeOption = None,
    timeout: str | None = None,
    output: Form = "table",
) -> int:
    """Wait until jobs have ended: exit code 0 if all succeeded, 1 if one did not, 4 if the time was over first.

    Args:
        ids: Ids of jobs; the number of an array means all its tasks.
        timeout: Seconds, or 10m: how long at most. By default for ever.
    """
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


# ``gantline history``: the past of a service as a trace.

history_app = App(
    name="history",
    help_epilogue="""What such a trace cannot hold is said beside it. Examples:

  gantline history past.csv
  gantline simulate past.csv --cluster 1x4 --policy srtf
  gantline what-if --policy srtf --past""",
)


@history_app.default
def history(out: Path | None = None, /, *, home: HomeOption = None) -> int:
    """Write the jobs that have succeeded as a trace: arrival, devices, duration, and when they really started and ended.

    Args:
        out: Where to write; without it, CSV goes to stdout.
    """
    with connect(home) as client:
        answer = client.history()
    rows = answer["jobs"]
    if not rows:
        raise RefusedError("no job has succeeded yet", where="history", fix="ask again later")
    text = csv_text(list(rows[0]), [list(row.values()) for row in rows])
    if out is None:
        write(text)
    else:
        write_text(out, text)
        say(f"note: {len(rows)} jobs in {out}")
    for limit in answer["limits"]:
        say(f"note: {limit}")
    return 0
