"""Ageing against starvation: jobs that have waited too long go first, the oldest before all.

AlloX' matching lets short jobs overtake a long one for ever. Aged jobs therefore leave the matching: in order of
arrival each takes the machines on which it would end first, and if these are not idle yet they are kept for it. An
aged job is thus delayed by running jobs and by older ones only.
"""

from __future__ import annotations

from math import inf

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled_from_zero as compiled
from gantline.core.jit import kernel_from_zero as kernel
from gantline.systems.allox.policies.columns import MachineColumns, WaitingJobs
from gantline.systems.allox.policies.fill import fits, take
from gantline.systems.allox.policies.slot_flow import FAR, FORBIDDEN


def next_ageing(arrival: Floats, now: float, age: float) -> float:
    """When the next waiting job will have waited that long."""
    if age == inf:
        return inf
    young = arrival[now - arrival < age]
    return float(young.min()) + age if len(young) else inf


@kernel
def earliest(kind: int, width: int, machines: MachineColumns, found: Ints) -> int:
    """The ``width`` machines of a type that are free first, idle ones before others; returns how many there are."""
    kinds, release, idle, _ = machines
    count = 0
    for _ in range(width):
        best = -1
        for m in range(idle.size):
            taken = kinds[m] != kind
            for i in range(count):
                taken |= found[i] == m
            if taken:
                continue
            if best < 0 or release[m] < release[best] or (release[m] == release[best] and idle[m] and not idle[best]):
                best = m
        if best < 0:
            return count
        found[count] = best
        count += 1
    return count


@compiled
def serve_aged(aged: Ints, waiting: WaitingJobs, machines: MachineColumns, started: Ints) -> None:
    """Start or reserve for the aged jobs, in the order given; ``started[j]`` becomes the type of those that start.

    Changes the machines to what is left for the others: reserved ones are neither idle nor free before the aged job would
    end on them.
    """
    times, width, need = waiting.times, waiting.width, waiting.need
    release, idle, free = machines.release, machines.idle, machines.free
    found, chosen = np.zeros(idle.size, np.int64), np.zeros(idle.size, np.int64)
    for j in aged:
        best_end, best_kind = FAR, -1
        for kind in range(times.shape[0]):
            if times[kind, j] == FORBIDDEN:
                continue
            count = earliest(kind, width[kind, j], machines, found)
            if count < width[kind, j]:
                continue
            ready = release[found[count - 1]]
            if ready + times[kind, j] < best_end:
                best_end, best_kind = ready + times[kind, j], kind
                for i in range(count):
                    chosen[i] = found[i]
        if best_kind < 0:
            continue
        ready_now = fits(need[j, best_kind], free)
        for i in range(width[best_kind, j]):
            m = chosen[i]
            ready_now = ready_now and idle[m]
            release[m], idle[m] = best_end, False
        if ready_now:
            started[j] = best_kind
        take(need[j, best_kind], free)
