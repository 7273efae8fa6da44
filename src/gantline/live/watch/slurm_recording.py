"""What Slurm's commands print, as one text: asked of the commands themselves, or read from a file that somebody with the right made.

A recording has a section for each command, headed by ``=== NAME``. No text that users of the cluster choose (names of jobs, comments) is
asked for, so that none can pass for something else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic_core import from_json

from gantline.core.errors import GantlineError, UsageError
from gantline.live.watch.watched import Document

_SECONDS = 60.0  # for one command; a controller that is busy takes a while
JOB_FIELDS = (
    "JobArrayID", "UserName", "Account", "Partition", "State", "Reason", "PriorityLong", "SubmitTime", "EligibleTime", "StartTime",
    "EndTime", "TimeLimit", "TimeUsed", "NumNodes", "NumCPUs", "NumTasks", "tres-per-job", "tres-per-node", "tres-per-task",
    "tres-alloc", "ReqNodes", "ExcNodes", "Reservation", "NodeList", "Feature",
)  # fmt: skip
_WIDE = {"NodeList": 4000, "Feature": 400, "tres-alloc": 200, "ReqNodes": 400, "ExcNodes": 400}
_FIELDS = ",".join(f"{name}:{_WIDE.get(name, 80)}|" for name in JOB_FIELDS)
_PAST = "JobID,User,Partition,Submit,Start,ElapsedRaw,Timelimit,State,AllocTRES,ReqTRES,NNodes,Priority"
COMMANDS: dict[str, tuple[str, ...]] = {
    "time": ("date", "+%s %z"),
    "config": ("scontrol", "show", "config"),
    "nodes": ("scontrol", "-o", "show", "nodes"),
    "partitions": ("scontrol", "-o", "show", "partitions"),
    "reservations": ("scontrol", "-o", "show", "reservations"),
    "jobs": ("squeue", "-a", "-r", "-t", "all", "-O", _FIELDS),
    "past": ("sacct", "-a", "-X", "-P", "-S", "now-7days", "-o", _PAST),
}
_AS_JSON: dict[str, tuple[str, ...]] = {
    "nodes": ("scontrol", "--json", "show", "nodes"),
    "partitions": ("scontrol", "--json", "show", "partitions"),
    "reservations": ("scontrol", "--json", "show", "reservations"),
    "jobs": ("squeue", "-a", "--json"),
    "past": ("sacct", "-a", "-X", "--json", "-S", "now-7days"),
}  # a version that cannot print one of them so is asked for the text
_MAY_FAIL = ("past",)  # a cluster without accounting has no past to show
_HEAD = "=== "


def record(as_json: bool = False) -> str:
    """Ask Slurm, by its commands on this machine."""
    absent = [name for name in ("scontrol", "squeue") if shutil.which(name) is None]
    if absent:
        what = f"{' and '.join(absent)}: no such command on this machine"
        raise UsageError(
            what, where="watch slurm", fix="run it where Slurm's commands are, or give a recording: --from FILE (see --script)"
        )
    env = {**os.environ, "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
    asked = _AS_JSON if as_json else {}
    found = {name: _json(name, asked.get(name), env) or _printed(name, command, env) for name, command in COMMANDS.items()}
    return "".join(f"{_HEAD}{name}\n{text}" for name, text in found.items())


def _json(name: str, command: tuple[str, ...] | None, env: dict[str, str]) -> str:
    """What a command prints; empty: there is none, or it cannot do that."""
    if command is None:
        return ""
    try:
        return _printed(name, command, env)
    except GantlineError:
        return ""


def _printed(name: str, command: tuple[str, ...], env: dict[str, str]) -> str:
    try:
        found = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        if name in _MAY_FAIL:
            return ""
        late = isinstance(error, subprocess.TimeoutExpired)
        what = f"{command[0]} did not answer within {_SECONDS:g} s" if late else f"{command[0]}: {error}"
        raise GantlineError(what, where="watch slurm", fix="see whether slurmctld runs: scontrol ping") from error
    if found.returncode == 0:
        return found.stdout if found.stdout.endswith("\n") else found.stdout + "\n"
    if name in _MAY_FAIL:
        return ""
    said = found.stderr.strip().splitlines()
    raise GantlineError(
        f"{' '.join(command[:3])}: {said[-1] if said else f'exit code {found.returncode}'}", where="watch slurm", fix="scontrol ping"
    )


def script(as_json: bool = False) -> str:
    """The same as a shell script, for those who may not let another program run the commands."""
    lines = ["#!/bin/sh", "# What `gantline watch slurm --from FILE` reads. Nothing is changed.", "export SLURM_TIME_FORMAT=%s LC_ALL=C"]
    for name, command in COMMANDS.items():
        quoted = " ".join(f"'{word}'" if any(sign in word for sign in " |%+") else word for word in command)
        first = f"{{ {' '.join(_AS_JSON[name])} 2>/dev/null && echo; }} || " if as_json and name in _AS_JSON else ""
        lines += [f"echo '{_HEAD}{name}'", first + quoted + (" 2>/dev/null || true" if name in _MAY_FAIL else "")]
    return "\n".join(lines) + "\n"


def read_recording(path: Path) -> str:
    """The text of a recording."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(
            f"cannot read it: {error.strerror}", where=str(path), fix="make one: gantline watch slurm --script | sh > FILE"
        ) from error


def sections(text: str, where: str = "recording") -> Mapping[str, str]:
    """The output of each command by its name."""
    found: dict[str, str] = {}
    for part in ("\n" + text).split("\n" + _HEAD)[1:]:
        name, _, body = part.partition("\n")
        found[name.strip()] = body
    missing = [name for name in COMMANDS if name not in found and name not in (*_MAY_FAIL, "reservations")]
    if missing:
        what = f"no section {', '.join(repr(name) for name in missing)}"
        raise UsageError(what, where=where, fix="make it with: gantline watch slurm --script | sh > FILE")
    return found


# What Slurm's commands print with ``--json``, in the words that they use without it: of Slurm 22.05, and of later
# versions.
#
# Since 23.02 a number that may be missing is an object (``{"set": true, "infinite": false, "number": 60}``), and a
# state is a list. Names of jobs and comments are in there, too, and are not read.

_MOST_TASKS = 100_000  # of one array


def is_json(text: str) -> bool:
    return text.lstrip()[:1] == "{"


def items(text: str, name: str, where: str) -> list[Document]:
    """The list of a name that a document has."""
    try:
        document = from_json(text, cache_strings="keys")  # 27 MB for 10,000 jobs: half the time of the standard library
    except ValueError as error:
        raise UsageError(f"it is no JSON: {error}", where=where, fix="record it again: it may have been cut off") from None
    found = document.get(name)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise UsageError(f"there is no list '{name}' in it", where=where, fix="it is what Slurm's command prints with --json")
    return found


def job_cells(text: str, where: str) -> Iterator[dict[str, str]]:
    """Jobs by the heads of squeue's columns; those of an array that wait are one entry there, and one job each here."""
    for place, job in enumerate(items(text, "jobs", where)):
        _demand(job, ("job_id", "job_state", "priority"), f"{where}, jobs[{place}]")
        per = {f"TRES_PER_{what.upper()}": str(job.get(f"tres_per_{what}") or "") for what in ("job", "node", "task")}
        cells = {
            **per, "USER": str(job.get("user_name") or ""), "PARTITION": str(job.get("partition") or ""),
            "STATE": _words(job["job_state"])[0], "REASON": str(job.get("state_reason") or ""), "PRIORITY": _number(job["priority"]),
            "SUBMIT_TIME": _time(job, "submit_time"), "ELIGIBLE_TIME": _time(job, "eligible_time"), "START_TIME": _time(job, "start_time"),
            "END_TIME": _time(job, "end_time"), "TIME_LIMIT": _number(job.get("time_limit")),
            "NODES": _number(job.get("node_count")) or "1", "TASKS": _number(job.get("tasks")) or "1",
            "CPUS": _number(job.get("cpus")) or "0",
            "TRES_ALLOC": str(job.get("tres_alloc_str") or job.get("tres_req_str") or ""), "NODELIST": str(job.get("nodes") or ""),
            "REQ_NODES": str(job.get("required_nodes") or ""), "EXC_NODES": str(job.get("excluded_nodes") or ""),
            "RESERVATION": str(job.get("resv_name") or ""), "FEATURES": str(job.get("features") or ""),
        }  # fmt: skip
        for id in _ids(job, f"{where}, jobs[{place}], field array_task_string"):
            yield {**cells, "JOBID": id}


def node_pairs(text: str, where: str) -> Iterator[dict[str, str]]:
    """Nodes by the words of ``scontrol show nodes``."""
    for place, node in enumerate(items(text, "nodes", where)):
        _demand(node, ("name", "state"), f"{where}, nodes[{place}]")
        cpus = _number(node.get("cpus"))
        yield {
            "NodeName": str(node["name"]), "Gres": str(node.get("gres") or ""), "CPUTot": cpus,
            "CPUEfctv": _number(node.get("effective_cpus")) or cpus, "RealMemory": _number(node.get("real_memory")),
            "State": "+".join([*_words(node["state"]), *_words(node.get("state_flags"))]).upper(),
            "Partitions": ",".join(_words(node.get("partitions"))), "ActiveFeatures": ",".join(_words(node.get("active_features"))),
            "Weight": _number(node.get("weight")) or "1",
        }  # fmt: skip


def partition_pairs(text: str, where: str) -> Iterator[dict[str, str]]:
    """Partitions by the words of ``scontrol show partitions``."""
    for place, one in enumerate(items(text, "partitions", where)):
        _demand(one, ("name",), f"{where}, partitions[{place}]")
        tier, longest = (one.get("priority") or {}).get("tier"), (one.get("maximums") or {}).get("time")
        state = _words((one.get("partition") or {}).get("state")) or ["UP"]
        yield {"PartitionName": str(one["name"]), "PriorityTier": _number(tier) or "1", "MaxTime": _number(longest), "State": state[0]}


def reservation_pairs(text: str, where: str) -> Iterator[dict[str, str]]:
    """Reservations by the words of ``scontrol show reservations``."""
    for place, one in enumerate(items(text, "reservations", where)):
        _demand(one, ("name",), f"{where}, reservations[{place}]")
        times = {"StartTime": _time(one, "start_time"), "EndTime": _time(one, "end_time")}
        yield {"ReservationName": str(one["name"]), "Users": str(one.get("users") or ""), "Nodes": str(one.get("node_list") or ""), **times}


def past_rows(text: str, where: str) -> Iterator[dict[str, str]]:
    """Jobs by the heads of sacct's columns."""
    for place, one in enumerate(items(text, "jobs", where)):
        _demand(one, ("job_id", "time", "state"), f"{where}, jobs[{place}]")
        state, spent = one["state"], one["time"]
        array = one.get("array") or {}
        task = _number(array.get("task_id"))
        id = f"{_number(array.get('job_id'))}_{task}" if task else str(one["job_id"])
        yield {
            "JobID": id, "State": (_words(state.get("current") if isinstance(state, dict) else state) or [""])[0],
            "ElapsedRaw": _number(spent.get("elapsed")), "Timelimit": _number(spent.get("limit")), "User": str(one.get("user") or ""),
            "Submit": _number(spent.get("submission")), "Start": _number(spent.get("start")), "Partition": str(one.get("partition") or ""),
            "AllocTRES": _tres(one, "allocated"), "ReqTRES": _tres(one, "requested"), "NNodes": _number(one.get("allocation_nodes")),
            "Priority": _number(one.get("priority")),
        }  # fmt: skip


def _tres(job: Document, which: str) -> str:
    """What a job was given or has asked for, such as ``cpu=8,gres/gpu:a100=2``."""
    listed = (job.get("tres") or {}).get(which) or []
    names = (("/".join(str(one[part]) for part in ("type", "name") if one.get(part)), _number(one.get("count"))) for one in listed)
    return ",".join(f"{name}={count}" for name, count in names if count)


def _demand(item: Document, fields: tuple[str, ...], where: str) -> None:
    for name in fields:
        if item.get(name) not in (None, []):
            continue
        raise UsageError(f"the field {name} is missing", where=where, fix="it is what Slurm's command prints with --json")


def _number(value: object) -> str:
    """A number as text; empty where there is none, or no bound."""
    if type(value) is int:  # nearly always, before 23.02
        return str(value)
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
    return f"{value}" if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _time(item: Document, name: str) -> str:
    """Seconds since 1970; 0 is no time."""
    found = _number(item.get(name))
    return "" if found == "0" else found


def _words(value: object) -> list[str]:
    """A list of words that may be written as one text."""
    return [str(one) for one in value] if isinstance(value, list) else [part for part in str(value or "").split(",") if part]


def _ids(job: Document, where: str) -> list[str]:
    """The ids of a job, or of the tasks of an array that wait."""
    array, task = _number(job.get("array_job_id")), _number(job.get("array_task_id"))
    if array in ("", "0"):
        return [str(job["job_id"])]
    if task:
        return [f"{array}_{task}"]
    found: list[str] = []
    for part in str(job.get("array_task_string") or "").partition("%")[0].split(","):
        span, _, step = part.partition(":")
        low, _, high = span.partition("-")
        if not (low.isdigit() and (high or low).isdigit() and (step or "1").isdigit()) or int(high or low) - int(low) > _MOST_TASKS:
            raise UsageError(f"'{part[:20]}' is no range of tasks", where=where, fix="it is such as 0-15:4%2")
        found += [f"{array}_{number}" for number in range(int(low), int(high or low) + 1, max(int(step or 1), 1))]
    return found
