"""Backfilling: who may pass a job that does not fit without delaying those in front.

Both kinds look at counts of free devices over time, from the estimated ends of those who run; placement may still keep a gang
out, and then it waits. Estimates that prove too low shorten nobody's run: the reservation moves, as in every batch system.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gantline.core.plan import Plan, Reservation
from gantline.core.snapshot import Snapshot

Floats = NDArray[np.float64]


def _running_ends(snapshot: Snapshot) -> tuple[Floats, NDArray[np.int64]]:
    """Estimated ends of the gangs that run, soonest first, and what each frees."""
    jobs = snapshot.jobs
    runs = np.flatnonzero(jobs.running)
    rate = np.where(jobs.rate[runs] > 0, jobs.rate[runs], 1.0)
    ends = snapshot.now + np.maximum(jobs.remaining[runs], 1e-6) / rate
    by_end = np.lexsort((runs, ends))
    return ends[by_end], jobs.held[runs][by_end]


def easy(snapshot: Snapshot, key: Floats) -> Plan:
    """EASY: the first job that does not fit gets a reservation; others may start if they do not delay it."""
    jobs = snapshot.jobs
    rank = np.array(key)
    waiting = np.flatnonzero(~jobs.running)
    waiting = waiting[np.lexsort((waiting, rank[waiting]))]
    free = snapshot.cluster.free
    gpus, remaining = jobs.gpus, jobs.remaining
    shadow, spare = math.inf, 0
    reservations: tuple[Reservation, ...] = ()
    ends, frees = _running_ends(snapshot)
    started: list[tuple[float, int]] = []
    for job in waiting:
        need = int(gpus[job])
        if math.isinf(shadow):
            if need <= free:
                free -= need
                started.append((snapshot.now + float(remaining[job]), need))
                continue
            # the head: when will it fit, and what is spare then?
            times = np.concatenate([ends, [t for t, _ in started]])
            counts = np.concatenate([frees, [n for _, n in started]])
            have = free
            for at in np.lexsort((np.arange(len(times)), times)):
                have += int(counts[at])
                if have >= need:
                    shadow, spare = float(times[at]), have - need
                    break
            if math.isinf(shadow):
                shadow = math.inf if not len(times) else float(times.max())
            reservations = (Reservation(shadow, shadow + float(remaining[job]), need, job=int(job)),)
            rank[job] = np.inf
            if math.isinf(shadow):
                break
            continue
        ends_in_time = snapshot.now + float(remaining[job]) <= shadow
        if need <= free and (ends_in_time or need <= spare):
            free -= need
            if not ends_in_time:
                spare -= need
        else:
            rank[job] = np.inf
    return Plan.rank(rank, preempt=False, valid_until=math.inf, reservations=reservations)


def conservative(snapshot: Snapshot, key: Floats) -> Plan:
    """Conservative: every waiting job gets the earliest slot that delays nobody in front; those whose slot is now start."""
    jobs = snapshot.jobs
    rank = np.array(key)
    waiting = np.flatnonzero(~jobs.running)
    waiting = waiting[np.lexsort((waiting, rank[waiting]))]
    ends, frees = _running_ends(snapshot)
    times = [snapshot.now]
    free = [snapshot.cluster.free]
    for end, count in zip(ends.tolist(), frees.tolist()):
        if end > times[-1]:
            times.append(end)
            free.append(free[-1] + count)
        else:
            free[-1] += count
    reservations: list[Reservation] = []
    gpus, remaining = jobs.gpus, jobs.remaining
    for job in waiting:
        need, length = int(gpus[job]), max(float(remaining[job]), 1e-6)
        start = _earliest(times, free, need, length)
        if start is None:
            rank[job] = np.inf
            continue
        _occupy(times, free, start, start + length, need)
        if start > snapshot.now:
            rank[job] = np.inf
            reservations.append(Reservation(start, start + length, need, job=int(job)))
    return Plan.rank(rank, preempt=False, valid_until=math.inf, reservations=tuple(reservations))


def _earliest(times: list[float], free: list[int], need: int, length: float) -> float | None:
    """The first breakpoint from which `need` devices are free for `length` seconds."""
    i = 0
    while i < len(times):
        if free[i] < need:
            i += 1
            continue
        end = times[i] + length
        j = i
        while j < len(times) and times[j] < end:
            if free[j] < need:
                break
            j += 1
        else:
            return times[i]
        i = j
    return None


def _occupy(times: list[float], free: list[int], start: float, end: float, need: int) -> None:
    """Take `need` devices out of the profile from start to end."""
    for at in (start, end):
        position = int(np.searchsorted(times, at))
        if position == len(times) or times[position] != at:
            times.insert(position, at)
            free.insert(position, free[position - 1])
    for k in range(int(np.searchsorted(times, start)), int(np.searchsorted(times, end))):
        free[k] -= need
