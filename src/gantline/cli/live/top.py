"""``gantline top``: devices and jobs that run, at a glance."""

from __future__ import annotations

import time
from typing import Annotated, Any

from cyclopts import App, Parameter

from gantline.cli.console import Sheet, is_watched, printable, show, show_json
from gantline.cli.live.connection import HomeOption, connect
from gantline.cli.live.sheets import WideForm, show_jobs

app = App(name="top")
_RUNNING = ("starting", "running", "resizing", "preempting")


@app.default
def top(
    *,
    home: HomeOption = None,
    watch: Annotated[bool, Parameter(name=["--watch", "-w"], negative="", help="Go on until Ctrl-C.")] = False,
    output: WideForm = "table",
) -> None:
    """Show which devices are busy, which jobs run, and how many wait."""
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


def _bar(busy: int, total: int, width: int = 20) -> str:
    full = round(width * busy / total) if total else 0
    return "█" * full + "░" * (width - full)
