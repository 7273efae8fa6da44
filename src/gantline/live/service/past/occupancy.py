"""Which jobs held which devices when, and which waited: what windows of time are cut from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError

OTHERS = "-"  # instead of the names of jobs and users that the caller may not see


class JobName(NamedTuple):
    """What is shown of a job besides its stays."""

    id: str
    name: str = ""
    user: str = ""
    queue: str = ""
    gpus: int = 0  # that it asks for


@dataclass(frozen=True)
class Occupancy:
    """Intervals as columns; `job` is a place in `jobs`. Times are seconds since 1970, or of a stored run since its beginning."""

    jobs: Sequence[JobName]
    nodes: Sequence[tuple[str, int]]  # names and devices, in the order of the devices' numbers
    begin: float
    end: float
    start: Floats  # of stays on devices
    stop: Floats
    job: Ints
    first: Ints  # stay k holds devices[first[k] : first[k + 1]]
    devices: Ints
    wait_start: Floats
    wait_stop: Floats
    wait_job: Ints

    @property
    def device_count(self) -> int:
        return sum(count for _, count in self.nodes)

    def window(self, begin: float | None, end: float | None, usual: float) -> tuple[float, float]:
        """The requested window, by default the last `usual` seconds; refused if it is empty or reversed."""
        last = self.end if end is None else end
        since = max(self.begin, last - usual) if begin is None else begin
        if begin is None and end is None and since >= last:
            since = last - 1.0  # nothing has happened yet: a second of it
        if not since < last:
            problem = "is empty" if since == last else "ends before it begins"
            raise UsageError(f"the window from {since:.15g} to {last:.15g} {problem}", where="from", fix="give a 'from' before 'to'")
        return since, last


def columns(stays: Sequence[tuple[float, float, int, Sequence[int]]]) -> tuple[Floats, Floats, Ints, Ints, Ints]:
    """Stays (start, stop, job, devices) as columns: start, stop, job, first, devices."""
    start, stop = (np.array([stay[place] for stay in stays], dtype=np.float64) for place in (0, 1))
    job = np.array([stay[2] for stay in stays], dtype=np.int64)
    first = np.concatenate(([0], np.cumsum([len(stay[3]) for stay in stays]))).astype(np.int64)
    devices = np.array([device for stay in stays for device in stay[3]], dtype=np.int64)
    return start, stop, job, first, devices
