"""A row's own line: what the loop needs of a job, together in memory, while the columns of the tables lie far apart.

The loop on records works on these and writes the columns when it ends. `f` and `i` have one line per row.
"""

from __future__ import annotations

from typing import NamedTuple

from gantline.core.arrays import Floats, Ints32
from gantline.core.constants import Constants
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.declared_key import Coefficient, next_threshold, sum_of


class Record(Constants):
    """Places in a row's own line."""

    (WORK, DONE, SINCE, RATE, ESTIMATE, SERVICE, GPUTIME, ARRIVAL) = range(8)
    (KEY, FIRST_START, LAST_START, WAITED, FINISH, ADMITTED, PRIORITY, DUE) = range(8, 16)
    # i: whole numbers
    (STATE, NEED, LANE, OPTION, SEGMENT, SPREAD, INTERVAL, STARTS) = range(8)
    (STOPS, VICTIM, WHY) = range(8, 11)
    AT = 11  # and the next three: its places in the heaps, see `heap`; -1: not there


RECORD_FLOATS = 16  # whole cache lines
RECORD_INTS = 16


class Records(NamedTuple):
    f: Floats  # (row, number)
    i: Ints32  # (row, whole number)


# The key of a row at an instant, how it moves, and when it jumps.


class Key(NamedTuple):
    weight: Floats  # coefficients, see `declared_key`
    thresholds: Floats


@kernel
def key_of(jobs: Records, row: int, key: Key, ran: float) -> float:
    """The key of a row that has progressed for `ran` seconds since its last change (0: it waits)."""
    f, need = jobs.f, jobs.i[row, Record.NEED]
    return sum_of(
        key.weight,
        key.thresholds,
        need,
        f[row, Record.ARRIVAL],
        f[row, Record.SERVICE] + ran,
        f[row, Record.GPUTIME] + need * ran,
        max(0.0, f[row, Record.ESTIMATE] - (f[row, Record.DONE] + f[row, Record.RATE] * ran)),
        f[row, Record.ESTIMATE],
        f[row, Record.PRIORITY],
        f[row, Record.FIRST_START],
    )


@kernel
def key_at(jobs: Records, row: int, key: Key, now: float) -> float:
    """The key of a row that runs."""
    return key_of(jobs, row, key, max(0.0, now - jobs.f[row, Record.SINCE]))


@kernel
def slope(jobs: Records, row: int, key: Key) -> float:
    """How fast the key of a row that runs rises."""
    w, need = key.weight, jobs.i[row, Record.NEED]
    shrinking = jobs.f[row, Record.RATE] * (w[Coefficient.REMAINING] + w[Coefficient.REMAINING_GPU] * need)
    return float(w[Coefficient.ATTAINED] + w[Coefficient.ATTAINED_GPU] * need - shrinking)


@kernel
def next_level(jobs: Records, row: int, key: Key, now: float) -> float:
    """When a row that runs reaches its next threshold; infinity: never."""
    f = jobs.f
    ran = max(0.0, now - f[row, Record.SINCE])
    service, gputime, since = f[row, Record.SERVICE], f[row, Record.GPUTIME], f[row, Record.SINCE]
    return next_threshold(key.weight, key.thresholds, jobs.i[row, Record.NEED], service, gputime, since, ran)
