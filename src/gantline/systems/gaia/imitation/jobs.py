"""The jobs of a trace in GAIA's units: ticks of five seconds, everything cut to whole ticks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import RefusedError
from gantline.traces.trace import Trace

TICK = 5.0
HOUR = 720
"""Ticks in an hour."""
SPAN = 720 * HOUR
"""The thirty days that a run lasts at most."""
TWO_HOURS = 7200.0
SHORTEST = 300.0


@dataclass(frozen=True)
class GaiaJobs:
    """A row per job, in the order of the trace, which is that of arrival."""

    arrival: Ints
    length: Ints
    cpus: Ints
    brief: np.ndarray[tuple[int], np.dtype[np.bool_]]  # at most two hours: what a spot machine may run
    seconds: Floats

    @staticmethod
    def of(trace: Trace) -> GaiaJobs:
        frame = trace.frame
        if "cpus" not in frame.columns or frame["cpus"].null_count():
            raise RefusedError(
                "GAIA's jobs ask for CPUs, and this trace does not say how many", where="--regime gaia", fix="add a column cpus"
            )
        seconds, cpus = frame["duration"].to_numpy(), frame["cpus"].to_numpy()
        for wrong, what in (
            (seconds < SHORTEST, "lasts less than 300 s"),
            ((cpus % 1 != 0) | (cpus < 1), "asks for no whole number of CPUs"),
        ):
            if wrong.any():
                job = frame["job"][int(np.flatnonzero(wrong)[0])]
                raise RefusedError(f"job '{job}' {what}, which GAIA's simulator does not take", where="--regime gaia")
        return GaiaJobs(_ticks(frame["arrival"].to_numpy()), _ticks(seconds), cpus.astype(np.int64), seconds <= TWO_HOURS, seconds)


class GaiaQueue(NamedTuple):
    """How long a job may wait, and how long jobs of its kind take, in ticks."""

    patience: int
    usual: int


@dataclass(frozen=True)
class GaiaQueues:
    """Jobs below two hours and the others; `6x24` are the hours that each may wait, one number is for both and knows no usual length."""

    short: GaiaQueue
    long: GaiaQueue

    @staticmethod
    def of(waiting: str, jobs: GaiaJobs) -> GaiaQueues:
        hours = [int(part) * HOUR for part in waiting.split("x")]
        if len(hours) == 1:
            both = GaiaQueue(hours[0], 2)
            return GaiaQueues(both, both)
        return GaiaQueues(
            GaiaQueue(hours[0], _mean_ticks(jobs.seconds[jobs.seconds <= TWO_HOURS])),
            GaiaQueue(hours[1], _mean_ticks(jobs.seconds[jobs.seconds >= TWO_HOURS])),
        )

    def of_length(self, ticks: int) -> GaiaQueue:
        return self.short if ticks < 2 * HOUR else self.long


def _ticks(seconds: Floats) -> Ints:
    return np.asarray(seconds // TICK, dtype=np.int64)


def _mean_ticks(seconds: Floats) -> int:
    return int(seconds.mean() / TICK) if len(seconds) else 0
