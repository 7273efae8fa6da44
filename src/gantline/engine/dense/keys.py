"""The key of a row at an instant, how it moves, and when it jumps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine import declared_key as k
from gantline.engine.dense import records as r
from gantline.engine.dense.records import Records


class Key(NamedTuple):
    weight: Floats  # coefficients, see `declared_key`
    thresholds: Floats


@kernel
def key_of(jobs: Records, row: int, key: Key, ran: float) -> float:
    """The key of a row that has progressed for `ran` seconds since its last change (0: it waits)."""
    f, w = jobs.f, key.weight
    need = jobs.i[row, r.NEED]
    service = f[row, r.SERVICE] + ran
    gputime = f[row, r.GPUTIME] + need * ran
    value = 0.0
    if w[k.ARRIVAL] != 0.0:
        value += w[k.ARRIVAL] * f[row, r.ARRIVAL]
    if w[k.ATTAINED] != 0.0:
        value += w[k.ATTAINED] * service
    if w[k.ATTAINED_GPU] != 0.0:
        value += w[k.ATTAINED_GPU] * gputime
    if w[k.REMAINING] != 0.0 or w[k.REMAINING_GPU] != 0.0:
        remaining = max(0.0, f[row, r.ESTIMATE] - (f[row, r.DONE] + f[row, r.RATE] * ran))
        value += w[k.REMAINING] * remaining
        value += w[k.REMAINING_GPU] * (remaining * need)
    if w[k.ESTIMATE] != 0.0:
        value += w[k.ESTIMATE] * f[row, r.ESTIMATE]
    if w[k.GPUS] != 0.0:
        value += w[k.GPUS] * need
    if w[k.PRIORITY] != 0.0:
        value += w[k.PRIORITY] * f[row, r.PRIORITY]
    if w[k.FIRST_START] != 0.0:
        first = f[row, r.FIRST_START]
        value += w[k.FIRST_START] * (w[k.NEVER_STARTED] + f[row, r.ARRIVAL] if np.isnan(first) else first)
    measure = gputime if w[k.BY_GPU] == 1.0 else service
    level = 0
    for place in range(key.thresholds.shape[0]):
        if measure >= key.thresholds[place]:
            level += 1
    return float(level * w[k.LEVEL_STEP] + value)


@kernel
def key_at(jobs: Records, row: int, key: Key, now: float) -> float:
    """The key of a row that runs."""
    return key_of(jobs, row, key, max(0.0, now - jobs.f[row, r.SINCE]))


@kernel
def slope(jobs: Records, row: int, key: Key) -> float:
    """How fast the key of a row that runs rises."""
    w, need = key.weight, jobs.i[row, r.NEED]
    shrinking = jobs.f[row, r.RATE] * (w[k.REMAINING] + w[k.REMAINING_GPU] * need)
    return float(w[k.ATTAINED] + w[k.ATTAINED_GPU] * need - shrinking)


@kernel
def next_level(jobs: Records, row: int, key: Key, now: float) -> float:
    """When a row that runs reaches its next threshold; infinity: never."""
    by_gpu = key.weight[k.BY_GPU] == 1.0
    speed = float(jobs.i[row, r.NEED]) if by_gpu else 1.0
    have = jobs.f[row, r.GPUTIME] if by_gpu else jobs.f[row, r.SERVICE]
    ran = max(0.0, now - jobs.f[row, r.SINCE])
    for place in range(key.thresholds.shape[0]):
        if have + speed * ran < key.thresholds[place]:
            return float(jobs.f[row, r.SINCE] + (key.thresholds[place] - have) / speed)
    return np.inf
