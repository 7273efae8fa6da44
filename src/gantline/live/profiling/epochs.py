"""Epochs of a job with fewer and fewer CPUs, timed on this machine: optimistic profiling (Synergy, OSDI 2022, section 3.1)."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence

from gantline.core.errors import GantlineError, UsageError
from gantline.models.sensitivity import measure_epochs

CPUS = "{cpus}"


class EpochFailedError(GantlineError):
    """A run of one epoch did not end well."""


def time_epochs(command: Sequence[str], cpus: int, gpus: int, limit: float, note: Callable[[str], None]) -> dict[int, float]:
    """Seconds per epoch by CPUs in all. The command runs one epoch; it is bound to so many CPUs, and told how many in place of {cpus}."""
    usable = sorted(os.sched_getaffinity(0))
    if cpus > len(usable):
        raise UsageError(f"{cpus} CPUs are to be used, and this process may use {len(usable)}", where="--cpus", fix="ask for fewer")

    def measure(count: int) -> float:
        seconds = _time_one([part.replace(CPUS, str(count)) for part in command], usable, count, limit)
        note(f"{count} CPUs: {seconds:.3g} s")
        return seconds

    return measure_epochs(measure, cpus, gpus)


def _time_one(command: list[str], usable: list[int], count: int, limit: float) -> float:
    began = time.perf_counter()
    os.sched_setaffinity(0, usable[:count])  # of this thread; the program inherits it
    try:
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise EpochFailedError(f"an epoch with {count} CPUs took longer than {limit:g} s", where="--limit", fix="allow more") from None
    except OSError as error:
        raise EpochFailedError(f"cannot run {command[0]}: {error.strerror}", where="profile epochs", fix="name a program") from None
    finally:
        os.sched_setaffinity(0, usable)
    if ended.returncode:
        last = (ended.stderr.decode(errors="replace").strip().splitlines() or [""])[-1]
        what = f"an epoch with {count} CPUs ended with exit code {ended.returncode}" + (f": {last}" if last else "")
        raise EpochFailedError(what, where="profile epochs", fix="mend the command and run this again")
    return time.perf_counter() - began
