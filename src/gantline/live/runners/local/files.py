"""Files and /proc entries by which keepers and the service communicate: written whole or not at all, or by the first writer only.

Keepers import this; it needs the standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Mapping
from functools import cache

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, TypeAlias

    #: what a JSON file of a keeper or the service holds
    Values: TypeAlias = dict[str, Any]

#: the folder in which this package lies: keepers are started without the paths of an environment
ROOT = os.path.abspath(f"{__file__}/../../../../..")


def home_mark(home: Path) -> str:
    """What tells a home from others where names are shared by all services, such as those of control groups."""
    return hashlib.sha256(str(home).encode()).hexdigest()[:8]


def private(path: str, flags: int) -> int:
    """Opens a file that only its owner may read, for `open`."""
    return os.open(path, flags, 0o600)


def make_private(folder: Path) -> None:
    """A folder of the home's jobs/, and those above it there, for their owner alone."""
    for one in (folder.parent.parent, folder.parent, folder):
        if not one.is_dir():
            one.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_json(path: str, value: Any, *, lasting: bool = True) -> None:
    """Write a file whole or not at all; it is on the disk on return, unless it has no use after the machine has gone down."""
    fresh = f"{path}.{os.getpid()}.{threading.get_ident()}"  # threads may write the same file: the last one counts
    with open(fresh, "w", encoding="utf-8", opener=private) as file:
        file.write(json.dumps(value))  # not dump(), which encodes in Python
        file.flush()
        if lasting:
            os.fsync(file.fileno())
    os.replace(fresh, path)


def read_json(path: str) -> Any:
    """The content of a JSON file; None if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def say_first(path: str, value: Any) -> Any:
    """Write a file unless it exists; its content, whichever process wrote it."""
    fresh = f"{path}.{os.getpid()}"
    write_json(fresh, value)
    with contextlib.suppress(FileExistsError):
        os.link(fresh, path)
    os.unlink(fresh)
    return read_json(path)


def started_at(pid: int) -> int:
    """When a process was started, in ticks since the boot: with it a number that was given again is not mistaken for the old process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rsplit(b")", 1)[1].split()[19])
    except (OSError, IndexError, ValueError):
        return -1


def children_of(parent: int) -> list[int]:
    """Processes whose parent this is."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rsplit(b")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == parent and fields[0] != b"Z":
                found.append(int(name))
    return found


# Times of events that one process writes and another reads: by the wall clock, and by the monotonic clock, which
# cannot be set.
#
# The monotonic clock is the same for all processes of a machine from its start to its next, so that a wall clock
# which is set between the keeper's note and the service's look changes nothing. Keepers import this; it needs the
# standard library only.


@cache
def boot() -> str:
    """Which start of the machine this is; nothing where the system does not say."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
    return ""


def stamp(name: str) -> dict[str, Any]:
    """The present moment, for a file."""
    return {name: time.time(), f"{name}_tick": time.monotonic(), "boot": boot()}


def seconds_ago(state: Mapping[str, Any], name: str) -> float | None:
    """How long ago a moment was that a process noted since this machine started; None: use the wall clock."""
    tick = state.get(f"{name}_tick")
    if tick is None or not boot() or state.get("boot") != boot():
        return None
    return max(0.0, time.monotonic() - float(tick))
