"""What Slurm's commands print, as one text: asked of the commands themselves, or read from a file that somebody with the right made.

A recording has a section for each command, headed by ``=== NAME``. No text that users of the cluster choose (names of jobs, comments) is
asked for, so that none can pass for something else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from gantline.core.errors import GantlineError, UsageError

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
