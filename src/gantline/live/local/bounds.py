"""Limits where no control group can be made: what the system holds each process to, and what the keeper sees of all of them together.

The system's own limits (``setrlimit``) are per process or per user: memory is bounded for each process (its data: the heap and private
writable mappings, so that what a driver merely reserves does not count), processes and threads for the user together, and never for root.
So the keeper also counts all descendants of a job, their threads and their resident memory, and ends a job that has more than it may.
Between two counts it can have more for a moment. Keepers import this; it needs the standard library only.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PAGE = resource.getpagesize()
_OFTEN, _SELDOM = 0.05, 0.2  # seconds between two counts: when more than half of something is used, and otherwise


class Bounds:
    """The limits of one incarnation; 0: none."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.pids, self.memory, self.cpu = (int(values.get(name, 0)) for name in ("pids", "memory", "cpu"))
        self._near = False

    def __bool__(self) -> bool:
        return bool(self.pids or self.memory)

    @property
    def pause(self) -> float:
        """Seconds until the next count."""
        return _OFTEN if self._near else _SELDOM

    def bind(self) -> None:
        """Hold this process, and whatever it will start, to what the system can hold it to; between fork and exec."""
        for kind, amount in (
            (resource.RLIMIT_DATA, self.memory),
            (resource.RLIMIT_CPU, self.cpu),
            (resource.RLIMIT_NPROC, _threads_of_user() + self.pids if self.pids else 0),
        ):
            if amount:
                hard = resource.getrlimit(kind)[1]
                most = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
                with contextlib.suppress(OSError, ValueError):
                    resource.setrlimit(kind, (most, most))

    def exceeded(self, keeper: int) -> str:
        """The limit that all processes below the keeper exceed, as text; empty: none."""
        processes = _below(keeper)
        threads, memory = sum(one[0] for one in processes), sum(one[1] for one in processes)
        self._near = 2 * threads > self.pids > 0 or 2 * memory > self.memory > 0
        if self.pids and threads > self.pids:
            return f"had {threads} processes and threads, and may have {self.pids}"
        if self.memory and memory > self.memory:
            return f"used {memory / 2**30:.2f} GiB of memory, and may use {self.memory / 2**30:.2f}"
        return ""


def cpu_seconds(time_limit: float) -> int:
    """CPU time that no process of a job with this time limit can need on this machine; 0: there is no limit."""
    return math.ceil(time_limit + 60.0) * (os.cpu_count() or 1) if math.isfinite(time_limit) else 0


def _below(parent: int) -> list[tuple[int, int]]:
    """Threads and resident bytes of all descendants of a process."""
    children: dict[int, list[int]] = {}
    about: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rsplit(b")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(name))
        about[int(name)] = (0 if fields[0] == b"Z" else int(fields[17]), int(fields[21]) * _PAGE)
    found, open_ = [], [parent]
    while open_:
        below = children.get(open_.pop(), [])
        open_ += below
        found += [about[pid] for pid in below]
    return found


def _threads_of_user() -> int:
    own, found = os.getuid(), 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == own:
                    found += len(os.listdir(f"/proc/{name}/task"))
    return found
