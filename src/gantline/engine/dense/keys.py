"""The key of a row at an instant, how it moves, and when it jumps."""

from __future__ import annotations

from typing import NamedTuple

from gantline.core.arrays import Floats
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.declared_key import Coefficient, next_threshold, sum_of
from gantline.engine.dense.records import Record, Records


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
