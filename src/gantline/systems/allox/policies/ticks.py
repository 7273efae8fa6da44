"""Seconds as whole microseconds, so that equal costs are equal whatever was computed before."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.jit import compiled_from_zero as compiled
from gantline.systems.allox.policies.slot_flow import FORBIDDEN

TICKS = 1e6
LONGEST = 2.0**60

FINE, NOT_POSITIVE, NO_RELEASE, TOO_LONG = 0, 1, 2, 3


@compiled
def count_ticks(times: Floats, release: Floats) -> tuple[Ints, Ints, int, int]:
    """Times by type and job, releases, and a code with the row that is at fault; impossible times are FORBIDDEN."""
    jobs, types = times.shape
    ticks, until = np.zeros((types, jobs), np.int64), np.zeros(release.size, np.int64)
    longest = latest = 0.0
    for j in range(jobs):
        for t in range(types):
            if not np.isfinite(times[j, t]):
                ticks[t, j] = FORBIDDEN
                continue
            if times[j, t] <= 0.0:
                return ticks, until, NOT_POSITIVE, j
            longest = max(longest, times[j, t])
            ticks[t, j] = max(np.int64(np.rint(min(times[j, t] * TICKS, LONGEST))), np.int64(1))
    for m in range(release.size):
        if not np.isfinite(release[m]):
            return ticks, until, NO_RELEASE, m
        latest = max(latest, abs(release[m]))
        until[m] = np.int64(np.rint(min(max(release[m] * TICKS, -LONGEST), LONGEST)))
    if (longest * (jobs + 1) + latest) * TICKS > LONGEST:
        return ticks, until, TOO_LONG, 0
    return ticks, until, FINE, 0


def to_ticks(times: Floats, release: Floats) -> tuple[Ints, Ints]:
    """Times by type and job and release times, or a clear refusal."""
    ticks, until, code, row = count_ticks(times, release)
    if code == NOT_POSITIVE:
        raise UsageError(f"the job in row {row} has a duration of zero or below", fix="durations must be positive")
    if code == NO_RELEASE:
        raise UsageError(f"machine {row} has no release time", fix="leave out machines that are down")
    if code == TOO_LONG:
        raise UsageError("times are too long to be counted in microseconds", fix="give times in seconds")
    return ticks, until
