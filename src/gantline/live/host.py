"""Whether a process holds a lock file: the kernel lets go of it when the process ends, however that comes about."""

from __future__ import annotations

import fcntl
import math
import os
import resource
import socket
import time
from pathlib import Path

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable


def is_locked(path: Path) -> bool:
    """Whether a process holds this file; the look leaves it as it is."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


# How many files the service may have open: a running job needs one, a connection another.

_OWN = 128  # the store, the log, libraries, what is open for a moment
_MOST_CONNECTIONS = 4096
_ENOUGH = 65_536
_before: list[tuple[int, int]] = []


def raise_limit() -> int:
    """Raise the soft limit as far as it makes sense and is allowed; how many files may be open then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        _before.append((soft, hard))
        soft = wanted
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft


def limit_of_jobs() -> tuple[int, int] | None:
    """The limit as it was, which jobs are started with: a program that uses select() trusts it. None: it was not changed."""
    return _before[0] if _before else None


def connections_within(files: int) -> int:
    """How many connections there may be at a time: a third of the files, for jobs need them too."""
    return min(_MOST_CONNECTIONS, max(16, files // 3))


def too_few(files: int, devices: int) -> str:
    """That not all devices can be used at once; empty where they can."""
    able = files - _OWN - connections_within(files)
    return f"only {files} files may be open (ulimit -Hn): at most {max(able, 0)} jobs can run at a time" if able < devices else ""


# Whether a process on another machine is there, whatever its engine believes.

_SECONDS = 1.0


def accepts(address: str, port: int) -> bool:
    """Whether connections are accepted there."""
    try:
        with socket.create_connection((address, port), timeout=_SECONDS):
            return True
    except OSError:
        return False


# Silence beyond a lease is a loss: a part of a gang, or a service, that is not heard of for so long is taken for
# gone, for good.
#
# What comes back after that finds its time over: a part is not taken into its gang again, a service may not write.
# Both sides count for themselves, by clocks that never go back, so that no two clocks must agree. Keepers import
# this; it needs the standard library only.


class Lease:
    """It runs from the moment at which it is made."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self._clock = seconds, clock
        self.renew()

    def renew(self) -> None:
        """A sign of life has come."""
        self._until = self._clock() + self.seconds

    def end(self) -> None:
        """It is given up, or was never held."""
        self._until = -math.inf

    @property
    def is_over(self) -> bool:
        return self._clock() > self._until
