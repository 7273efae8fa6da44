"""The declared key of those that wait and of those that run, summed in the order in which `engine.dense.keys` sums it."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.declared_key import Coefficient
from gantline.engine.drivers.futures.places import FutureCase, FutureCount, FutureRoom, FutureRow, FutureTime, RowWhole


@kernel
def _key_of(case: FutureCase, numbers: Floats, at: int, need: float, rate: float, ran: float) -> float:
    """The key of a row or of a gang that runs, after `ran` seconds at that rate; what does not count is not even read."""
    w, key = case.weight, 0.0
    service, gputime = numbers[FutureRow.SERVICE, at] + ran, numbers[FutureRow.GPUTIME, at] + need * ran
    if w[Coefficient.ARRIVAL] != 0.0:
        key += w[Coefficient.ARRIVAL] * numbers[FutureRow.ARRIVAL, at]
    if w[Coefficient.ATTAINED] != 0.0:
        key += w[Coefficient.ATTAINED] * service
    if w[Coefficient.ATTAINED_GPU] != 0.0:
        key += w[Coefficient.ATTAINED_GPU] * gputime
    if w[Coefficient.REMAINING] != 0.0 or w[Coefficient.REMAINING_GPU] != 0.0:
        remaining = max(0.0, numbers[FutureRow.ESTIMATE, at] - (numbers[FutureRow.DONE, at] + rate * ran))
        key += w[Coefficient.REMAINING] * remaining
        key += w[Coefficient.REMAINING_GPU] * (remaining * need)
    if w[Coefficient.ESTIMATE] != 0.0:
        key += w[Coefficient.ESTIMATE] * numbers[FutureRow.ESTIMATE, at]
    if w[Coefficient.GPUS] != 0.0:
        key += w[Coefficient.GPUS] * need
    if w[Coefficient.PRIORITY] != 0.0:
        key += w[Coefficient.PRIORITY] * numbers[FutureRow.PRIORITY, at]
    if w[Coefficient.FIRST_START] != 0.0:
        first = numbers[FutureRow.FIRST, at]
        key += w[Coefficient.FIRST_START] * (w[Coefficient.NEVER_STARTED] + numbers[FutureRow.ARRIVAL, at] if np.isnan(first) else first)
    level = 0
    measure = gputime if w[Coefficient.BY_GPU] == 1.0 else service
    for place in range(case.thresholds.shape[0]):
        if measure >= case.thresholds[place]:
            level += 1
    return float(level * w[Coefficient.LEVEL_STEP] + key)


@kernel
def key_of_waiting(case: FutureCase, f: Floats, i: Ints, row: int) -> float:
    """The key of a row that makes no progress."""
    return _key_of(case, f, row, float(i[RowWhole.NEED, row]), 0.0, 0.0)


@kernel
def rank_waiting(case: FutureCase, rows: Ints) -> None:
    """Keys of rows that wait at the instant."""
    for place in range(rows.shape[0]):
        case.f[FutureRow.KEY, rows[place]] = key_of_waiting(case, case.f, case.i, rows[place])


@kernel
def only_remaining(case: FutureCase) -> bool:
    """Whether remaining work is all that counts."""
    total = 0.0
    for number in range(Coefficient.FIRST_START + 1):
        total += abs(case.weight[number])
    return bool(total == abs(case.weight[Coefficient.REMAINING]) and case.thresholds.shape[0] == 0)


@kernel
def key_of_running(case: FutureCase, room: FutureRoom, at: int, now: float) -> float:
    """The key of a gang that runs."""
    s = room.s
    return _key_of(case, s, at, s[FutureRow.SIZE, at], s[FutureRow.RATE, at], max(0.0, now - s[FutureRow.SINCE, at]))


@kernel
def _note_lowest(room: FutureRoom, count: int) -> None:
    """The key of the lowest rank that runs."""
    keys, lowest = room.s[FutureRow.KEY], -np.inf
    for at in range(count):
        lowest = max(lowest, keys[at])
    room.t[FutureTime.LOWEST] = lowest
    for at in range(count, room.n[FutureCount.RUNNING]):  # gangs that have begun in this walk
        lowest = max(lowest, keys[at])
    room.t[FutureTime.HIGHEST] = lowest


@kernel
def rank_running(case: FutureCase, room: FutureRoom, now: float) -> None:
    """Keys of all gangs that ran before this walk, once per decision."""
    if room.n[FutureCount.RANKED] == 1:
        return
    room.n[FutureCount.RANKED] = 1
    s, count = room.s, room.n[FutureCount.OLD]
    if case.weight[Coefficient.REMAINING] == 1.0 and only_remaining(case):  # the usual one: short enough to be done several at a time
        keys, since, done, rate, estimate = (
            s[FutureRow.KEY],
            s[FutureRow.SINCE],
            s[FutureRow.DONE],
            s[FutureRow.RATE],
            s[FutureRow.ESTIMATE],
        )
        for at in range(count):
            ran = now - since[at]
            ran = ran if ran > 0.0 else 0.0
            rest = estimate[at] - (done[at] + rate[at] * ran)
            keys[at] = rest if rest > 0.0 else 0.0
        _note_lowest(room, count)
        return
    for at in range(count):
        s[FutureRow.KEY, at] = key_of_running(case, room, at, now)
    _note_lowest(room, count)


@kernel
def slope(case: FutureCase, room: FutureRoom, at: int) -> float:
    """How fast the key of a gang that runs rises."""
    w, s = case.weight, room.s
    shrinking = s[FutureRow.RATE, at] * (w[Coefficient.REMAINING] + w[Coefficient.REMAINING_GPU] * s[FutureRow.SIZE, at])
    return float(w[Coefficient.ATTAINED] + w[Coefficient.ATTAINED_GPU] * s[FutureRow.SIZE, at] - shrinking)


@kernel
def next_level(case: FutureCase, room: FutureRoom, now: float) -> float:
    """The first instant at which a gang that runs reaches its next threshold."""
    soonest, s, thresholds = np.inf, room.s, case.thresholds
    if thresholds.shape[0] == 0:
        return soonest
    by_gpu = case.weight[Coefficient.BY_GPU] == 1.0
    for at in range(room.n[FutureCount.RUNNING]):
        speed = s[FutureRow.SIZE, at] if by_gpu else 1.0
        have = s[FutureRow.GPUTIME, at] if by_gpu else s[FutureRow.SERVICE, at]
        ran = max(0.0, now - s[FutureRow.SINCE, at])
        for place in range(thresholds.shape[0]):
            if have + speed * ran < thresholds[place]:
                soonest = min(soonest, s[FutureRow.SINCE, at] + (thresholds[place] - have) / speed)
                break
    return float(soonest)
