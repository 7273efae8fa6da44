"""How Slurm's commands print nodes, lists of hosts and states, for all that read them."""

from __future__ import annotations

import re

from gantline.core.errors import UsageError

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
