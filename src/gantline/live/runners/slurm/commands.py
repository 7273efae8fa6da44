"""Slurm's own commands, by which the runner asks about its allocation; that slurmctld is away is told apart from a refusal."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from gantline.core.errors import RefusedError, UnreachableError, UsageError

WHERE = "--executor slurm"
_NEEDED = ("scontrol", "squeue", "scancel", "srun")
_OLDEST = (20, 11)  # the first in which steps of one allocation may overlap
_SECONDS = 30.0  # for one command; a controller that is busy takes a while
_AWAY = re.compile(r"unable to contact|connection (refused|timed out)|socket timed out|zero bytes were|DNS SRV lookup", re.IGNORECASE)


class SlurmSaysNo(Exception):
    """The command was understood, and refused."""


class SlurmAway(SlurmSaysNo):
    """Nothing answers: slurmctld may be back in a while."""


def ask(*command: str) -> str:
    """What a command prints."""
    env = {**os.environ, "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise SlurmAway(f"{command[0]} did not answer within {_SECONDS:g} s") from None
    if done.returncode == 0:
        return done.stdout
    said = (done.stderr.strip().splitlines() or [f"{command[0]} ended with exit code {done.returncode}"])[-1]
    raise (SlurmAway if _AWAY.search(done.stderr) else SlurmSaysNo)(said)


@contextmanager
def answering() -> Iterator[None]:
    """What is asked here must be answered for a service to start."""
    try:
        yield
    except SlurmAway as error:
        fix = "start again when scontrol ping says that it is UP; jobs that run go on meanwhile"
        raise UnreachableError(f"slurmctld does not answer: {error}", where=WHERE, fix=fix) from None
    except SlurmSaysNo as error:
        raise RefusedError(f"Slurm says: {error}", where=WHERE, fix="see scontrol ping and squeue --me") from None


def check_installed() -> None:
    """Refuse where there is no Slurm on this machine, or one that is too old."""
    absent = [name for name in _NEEDED if shutil.which(name) is None]
    if absent:
        what = f"{', '.join(absent)}: no such command on this machine"
        raise RefusedError(what, where=WHERE, fix="start the service on a machine of the Slurm cluster: salloc ... gantline up")
    found = version()
    if found < _OLDEST:
        what = f"Slurm {'.'.join(map(str, found))} is too old: steps of an allocation cannot overlap in it"
        raise RefusedError(what, where=WHERE, fix=f"use Slurm {_OLDEST[0]}.{_OLDEST[1]} or later")


@cache
def version() -> tuple[int, int]:
    """Of the installed commands, as ``22.05``; a text that names none counts as new."""
    try:
        said = ask("scontrol", "--version")
    except SlurmSaysNo as error:
        fix = "see whether this machine is set up for the cluster: scontrol ping, SLURM_CONF"
        raise UnreachableError(f"no Slurm cluster: {error}", where=WHERE, fix=fix) from None
    numbers = re.search(r"(\d+)\.(\d+)", said)
    return (int(numbers[1]), int(numbers[2])) if numbers else (99, 0)


# How Slurm's commands print nodes, lists of hosts and states, for all that read them.

EMPTY = ("", "(null)", "N/A", "None", "Unknown", "NONE")
GONE = frozenset({"DOWN", "FAIL", "POWERED_DOWN", "POWERING_DOWN", "UNKNOWN", "FUTURE", "INVAL"})  # states of nodes on which nothing runs
CLOSED = frozenset({"DRAIN", "DRAINED", "DRAINING", "MAINT", "RESERVED", "FAILING", "REBOOT"})  # those on which nothing begins

_PAIR = re.compile(r"(?:^|\s)([A-Z][A-Za-z/:]*)=(\S*)")
_HOSTS = re.compile(r"((?:[^,\[]|\[[^\]]*\])+)")
_MOST_HOSTS = 100_000


def pairs_of(line: str) -> dict[str, str]:
    """What a line of ``scontrol -o`` says, by name; of several of one name the first."""
    found: dict[str, str] = {}
    for key, value in _PAIR.findall(line):
        found.setdefault(key, value)
    return found


def state_words(text: str) -> frozenset[str]:
    """The words of a node's state, without the signs that Slurm puts behind them; ``NOT_RESPONDING`` for the asterisk."""
    state = re.split(r"[+]", re.sub(r"[$@^!%-]$", "", text.upper()))
    words = {word.rstrip("*#~$@^!%-") for word in state}
    return frozenset(words | ({"NOT_RESPONDING"} if any("*" in word for word in state) else set()))


def host_names(text: str) -> tuple[str, ...]:
    """The hosts of a list such as ``node[0-2,7],gpu01``."""
    found: list[str] = []
    for part in _HOSTS.findall(text if text not in EMPTY else ""):
        names = [""]
        for piece in re.split(r"(\[[^\]]*\])", part):
            choices = _numbers(piece[1:-1]) if piece.startswith("[") else [piece]
            if len(names) * len(choices) > _MOST_HOSTS:
                raise UsageError(f"'{text[:40]}' names too many hosts", where="recording", fix=f"at most {_MOST_HOSTS:,}")
            names = [name + choice for name in names for choice in choices]
        found += names
    return tuple(found)


def _numbers(text: str) -> list[str]:
    found = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if not dash or not (low.isdigit() and high.isdigit()) or int(high) - int(low) > _MOST_HOSTS:
            found.append(part)
        else:
            found += [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
    return found
