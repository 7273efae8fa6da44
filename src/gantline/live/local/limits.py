"""Control groups, where this system lets us make them: how many processes a job may have, how much memory, and no devices of others.

Both kinds are known: one tree for all controllers (version 2), or a tree for each (version 1). Where neither can be written, as in most
containers, `bounds.py` holds a job to its limits as well as it can; its state says which of the two it is.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
CLOSED = "devices.deny"
_MEMORY = {1: "memory.limit_in_bytes", 2: "memory.max"}


@dataclass(frozen=True)
class Groups:
    """Folders below which a job's own groups can be made, by controller."""

    version: int = 0
    parents: Mapping[str, str] = ()  # type: ignore[assignment]

    def of(self, name: str, pids: int, memory: int, always: bool = False, closed: Sequence[str] = ()) -> list[tuple[str, dict[str, str]]]:
        """Groups for a job that has limits, or shall have one of its own: each with its files. Nothing where none can be made.

        Files are written line by line; `closed` are devices that the job must not open.
        """
        wanted: dict[str, tuple[str, int | str]] = {
            "pids": ("pids.max", pids),
            "memory": (_MEMORY.get(self.version, ""), memory),
            "devices": (CLOSED, "\n".join(closed)),
        }
        found: dict[str, dict[str, str]] = {}
        for controller, (file, amount) in wanted.items():
            if amount and controller in dict(self.parents):
                found.setdefault(str(Path(dict(self.parents)[controller]) / f"gantline-{name}"), {})[file] = str(amount)
        if always and not found and "pids" in dict(self.parents):
            found[str(Path(dict(self.parents)["pids"]) / f"gantline-{name}")] = {}
        return list(found.items())

    def beyond(self, pids: int, memory: int) -> dict[str, int]:
        """Limits that no group can hold here."""
        wanted = {"pids": pids, "memory": memory}
        return {name: amount for name, amount in wanted.items() if amount and name not in dict(self.parents)}


def find_groups(root: Path = _ROOT, own: str | None = None) -> Groups:
    """The control groups that can be written here."""
    lines = (own if own is not None else _own()).splitlines()
    paths = {controller: line.split(":", 2)[2] for line in lines for controller in line.split(":", 2)[1].split(",")}
    if (root / "cgroup.controllers").exists():
        base = root / paths.get("", "/").lstrip("/")
        with contextlib.suppress(OSError):
            (base / "cgroup.subtree_control").write_text("+pids +memory")
        able = _read(base / "cgroup.subtree_control").replace("+", "").split()
        return Groups(2, {name: str(base) for name in ("pids", "memory") if name in able and _writable(base)})
    bases = {name: root / name / paths.get(name, "/").lstrip("/") for name in ("pids", "memory", "devices")}
    return Groups(1, {name: str(base) for name, base in bases.items() if base.is_dir() and _writable(base)})


def _writable(base: Path) -> bool:
    probe = base / f"gantline-probe-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    return True


def _own() -> str:
    return _read(Path("/proc/self/cgroup"))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
