"""The service that a command speaks to."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from gantline.cli.console import Column, Sheet, printable, show, show_json
from gantline.core.errors import UsageError
from gantline.core.fields import human_seconds

if TYPE_CHECKING:
    from gantline.live.service.client import Client


HomeOption = Annotated[Path | None, Parameter(name="--home", help="The service's folder; else GANTLINE_HOME, GANTLINE_URL or ~/.gantline.")]
Ids = Annotated[list[str], Parameter(help="Ids of jobs; the number of an array means all its tasks.")]
Yes = Annotated[bool, Parameter(name=["--yes", "-y"], help="Do not ask.")]
_NEEDED = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "httpx", "prometheus_client")


def need_libraries() -> None:
    """Refuse in one line where the libraries of the live part are not there."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(f"this command needs {', '.join(missing)}", where="gantline", fix="pip install 'gantline[live]'")


def connect(home: Path | None) -> Client:
    """A client of the service that is meant."""
    need_libraries()
    from gantline.live.service.client import Client

    return Client(home=home)


# Jobs, nodes and what else a service lists, as tables, JSON, CSV or names.

WideForm = Annotated[
    Literal["table", "wide", "json", "csv", "name"],
    Parameter(name=["--output", "-o"], help="A table for people, a wider one, JSON or CSV for programs, or names alone."),
]
_SHORT = ("id", "name", "user", "state", "reason", "holds", "asks", "devices", "age", "ran", "progress", "loss")
_MORE = ("restarts", "exit_code", "progress", "loss", "why")
_WIDE = ("id", "name", "user", "queue", "state", "reason", "holds", "asks", "devices", "priority", "age", "ran", *_MORE)
_NUMBERS = ("holds", "asks", "age", "ran", "loss")


def show_jobs(jobs: Sequence[Mapping[str, Any]], form: str) -> None:
    """A list of jobs."""
    if form in ("table", "wide"):
        names = _WIDE if form == "wide" else _SHORT
        now = time.time()
        rows = [[_cell(job, name, now) for name in names] for job in jobs]
        show(Sheet(tuple(Column(name, right=name in _NUMBERS) for name in names), rows), "table")
    else:
        show_rows(jobs, form, "id")


def show_rows(rows: Sequence[Mapping[str, Any]], form: str, key: str, names: Sequence[str] = ()) -> None:
    """Any list of records; `names` are the columns of the short table."""
    if form == "json":
        show_json(list(rows))
    elif form == "name":
        for row in rows:
            print(printable(str(row[key])))
    else:
        every = list(dict.fromkeys(name for row in rows for name in row)) or list(names)
        columns = list(names) if names and form == "table" else every
        show(
            Sheet(tuple(map(Column, columns)), [[row.get(name) for name in columns] for row in rows]),
            "csv" if form == "csv" else "table",
        )


def _cell(job: Mapping[str, Any], name: str, now: float) -> Any:
    if name == "age":
        return human_seconds(now - job["submitted"])
    if name == "ran":
        return human_seconds(job["service"])
    if name == "holds":
        return len(job["devices"])
    if name == "asks":
        low, high = job["min_gpus"] or job["gpus"], job["max_gpus"] or job["gpus"]
        return f"{low}:{high}" if low < high else job["gpus"]
    if name == "loss":
        return "" if job["progress"].get("loss") is None else f"{job['progress']['loss']:.4g}"
    if name == "devices":
        return ",".join(job["devices"])
    if name == "progress":
        return progress_of(job["progress"])
    return job.get(name)


def progress_of(progress: Mapping[str, Any]) -> str:
    """How far a job says it is."""
    done, total = progress.get("done"), progress.get("total")
    if done is None:
        return ""
    return f"{100 * done / total:.0f}%" if total else f"{done:g}"


def moment(wall: float | None) -> str:
    """A time of day, as the machine's owner reads it, to the second."""
    return "" if wall is None else datetime.fromtimestamp(round(wall), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
