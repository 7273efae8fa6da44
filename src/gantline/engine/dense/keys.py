"""The key of a row at an instant, how it moves, and when it jumps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.declared_key import Coefficient
from gantline.engine.dense.records import Record, Records


class Key(NamedTuple):
    weight: Floats  # coefficients, see `declared_key`
    thresholds: Floats


@kernel
def key_of(jobs: Records, row: int, key: Key, ran: float) -> float:
    """The key of a row that has progressed for `ran` seconds since its last change (0: it waits)."""
    f, w = jobs.f, key.weight
    need = jobs.i[row, Record.NEED]
    service = f[row, Record.SERVICE] + ran
    gputime = f[row, Record.GPUTIME] + need * ran
    value = 0.0
    if w[Coefficient.ARRIVAL] != 0.0:
        value += w[Coefficient.ARRIVAL] * f[row, Record.ARRIVAL]
    if w[Coefficient.ATTAINED] != 0.0:
        value += w[Coefficient.ATTAINED] * service
    if w[Coefficient.ATTAINED_GPU] != 0.0:
        value += w[Coefficient.ATTAINED_GPU] * gputime
    if w[Coefficient.REMAINING] != 0.0 or w[Coefficient.REMAINING_GPU] != 0.0:
        remaining = max(0.0, f[row, Record.ESTIMATE] - (f[row, Record.DONE] + f[row, Record.RATE] * ran))
        value += w[Coefficient.REMAINING] * remaining
        value += w[Coefficient.REMAINING_GPU] * (remaining * need)
    if w[Coefficient.ESTIMATE] != 0.0:
        value += w[Coefficient.ESTIMATE] * f[row, Record.ESTIMATE]
    if w[Coefficient.GPUS] != 0.0:
        value += w[Coefficient.GPUS] * need
    if w[Coefficient.PRIORITY] != 0.0:
        value += w[Coefficient.PRIORITY] * f[row, Record.PRIORITY]
    if w[Coefficient.FIRST_START] != 0.0:
        first = f[row, Record.FIRST_START]
        value += w[Coefficient.FIRST_START] * (w[Coefficient.NEVER_STARTED] + f[row, Record.ARRIVAL] if np.isnan(first) else first)
    measure = gputime if w[Coefficient.BY_GPU] == 1.0 else service
    level = 0
    for place in range(key.thresholds.shape[0]):
        if measure >= key.thresholds[place]:
            level += 1
    return float(level * w[Coefficient.LEVEL_STEP] + value)


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
    by_gpu = key.weight[Coefficient.BY_GPU] == 1.0
    speed = float(jobs.i[row, Record.NEED]) if by_gpu else 1.0
    have = jobs.f[row, Record.GPUTIME] if by_gpu else jobs.f[row, Record.SERVICE]
    ran = max(0.0, now - jobs.f[row, Record.SINCE])
    for place in range(key.thresholds.shape[0]):
        if have + speed * ran < key.thresholds[place]:
            return float(jobs.f[row, Record.SINCE] + (key.thresholds[place] - have) / speed)
    return np.inf
