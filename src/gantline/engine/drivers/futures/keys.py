"""The declared key of those that wait and of those that run, summed in the order in which `engine.dense.keys` sums it."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine import declared_key as k
from gantline.engine.drivers.futures import places as p
from gantline.engine.drivers.futures.places import FutureCase, FutureRoom


@kernel
def _key_of(case: FutureCase, numbers: Floats, at: int, need: float, rate: float, ran: float) -> float:
    """The key of a row or of a gang that runs, after `ran` seconds at that rate; what does not count is not even read."""
    w, key = case.weight, 0.0
    service, gputime = numbers[p.SERVICE, at] + ran, numbers[p.GPUTIME, at] + need * ran
    if w[k.ARRIVAL] != 0.0:
        key += w[k.ARRIVAL] * numbers[p.ARRIVAL, at]
    if w[k.ATTAINED] != 0.0:
        key += w[k.ATTAINED] * service
    if w[k.ATTAINED_GPU] != 0.0:
        key += w[k.ATTAINED_GPU] * gputime
    if w[k.REMAINING] != 0.0 or w[k.REMAINING_GPU] != 0.0:
        remaining = max(0.0, numbers[p.ESTIMATE, at] - (numbers[p.DONE, at] + rate * ran))
        key += w[k.REMAINING] * remaining
        key += w[k.REMAINING_GPU] * (remaining * need)
    if w[k.ESTIMATE] != 0.0:
        key += w[k.ESTIMATE] * numbers[p.ESTIMATE, at]
    if w[k.GPUS] != 0.0:
        key += w[k.GPUS] * need
    if w[k.PRIORITY] != 0.0:
        key += w[k.PRIORITY] * numbers[p.PRIORITY, at]
    if w[k.FIRST_START] != 0.0:
        first = numbers[p.FIRST, at]
        key += w[k.FIRST_START] * (w[k.NEVER_STARTED] + numbers[p.ARRIVAL, at] if np.isnan(first) else first)
    level = 0
    measure = gputime if w[k.BY_GPU] == 1.0 else service
    for place in range(case.thresholds.shape[0]):
        if measure >= case.thresholds[place]:
            level += 1
    return float(level * w[k.LEVEL_STEP] + key)


@kernel
def key_of_waiting(case: FutureCase, f: Floats, i: Ints, row: int) -> float:
    """The key of a row that makes no progress."""
    return _key_of(case, f, row, float(i[p.NEED, row]), 0.0, 0.0)


@kernel
def rank_waiting(case: FutureCase, rows: Ints) -> None:
    """Keys of rows that wait at the instant."""
    for place in range(rows.shape[0]):
        case.f[p.KEY, rows[place]] = key_of_waiting(case, case.f, case.i, rows[place])


@kernel
def only_remaining(case: FutureCase) -> bool:
    """Whether remaining work is all that counts."""
    total = 0.0
    for number in range(k.FIRST_START + 1):
        total += abs(case.weight[number])
    return bool(total == abs(case.weight[k.REMAINING]) and case.thresholds.shape[0] == 0)


@kernel
def key_of_running(case: FutureCase, room: FutureRoom, at: int, now: float) -> float:
    """The key of a gang that runs."""
    s = room.s
    return _key_of(case, s, at, s[p.SIZE, at], s[p.RATE, at], max(0.0, now - s[p.SINCE, at]))


@kernel
def _note_lowest(room: FutureRoom, count: int) -> None:
    """The key of the lowest rank that runs."""
    keys, lowest = room.s[p.KEY], -np.inf
    for at in range(count):
        lowest = max(lowest, keys[at])
    room.t[p.LOWEST] = lowest
    for at in range(count, room.n[p.RUNNING]):  # gangs that have begun in this walk
        lowest = max(lowest, keys[at])
    room.t[p.HIGHEST] = lowest


@kernel
def rank_running(case: FutureCase, room: FutureRoom, now: float) -> None:
    """Keys of all gangs that ran before this walk, once per decision."""
    if room.n[p.RANKED] == 1:
        return
    room.n[p.RANKED] = 1
    s, count = room.s, room.n[p.OLD]
    if case.weight[k.REMAINING] == 1.0 and only_remaining(case):  # the usual one: short enough to be done several at a time
        keys, since, done, rate, estimate = s[p.KEY], s[p.SINCE], s[p.DONE], s[p.RATE], s[p.ESTIMATE]
        for at in range(count):
            ran = now - since[at]
            ran = ran if ran > 0.0 else 0.0
            rest = estimate[at] - (done[at] + rate[at] * ran)
            keys[at] = rest if rest > 0.0 else 0.0
        _note_lowest(room, count)
        return
    for at in range(count):
        s[p.KEY, at] = key_of_running(case, room, at, now)
    _note_lowest(room, count)


@kernel
def slope(case: FutureCase, room: FutureRoom, at: int) -> float:
    """How fast the key of a gang that runs rises."""
    w, s = case.weight, room.s
    shrinking = s[p.RATE, at] * (w[k.REMAINING] + w[k.REMAINING_GPU] * s[p.SIZE, at])
    return float(w[k.ATTAINED] + w[k.ATTAINED_GPU] * s[p.SIZE, at] - shrinking)


@kernel
def next_level(case: FutureCase, room: FutureRoom, now: float) -> float:
    """The first instant at which a gang that runs reaches its next threshold."""
    soonest, s, thresholds = np.inf, room.s, case.thresholds
    if thresholds.shape[0] == 0:
        return soonest
    by_gpu = case.weight[k.BY_GPU] == 1.0
    for at in range(room.n[p.RUNNING]):
        speed = s[p.SIZE, at] if by_gpu else 1.0
        have = s[p.GPUTIME, at] if by_gpu else s[p.SERVICE, at]
        ran = max(0.0, now - s[p.SINCE, at])
        for place in range(thresholds.shape[0]):
            if have + speed * ran < thresholds[place]:
                soonest = min(soonest, s[p.SINCE, at] + (thresholds[place] - have) / speed)
                break
    return float(soonest)
