"""From the engine's tables to the columns that AlloX and its baselines decide on, compiled: one call instead of fifty.

A *kind* is a device type used with devices (``2 x type``) or for its cores alone (``2 x type + 1``), so that an option on a
GPU node that asks for no GPU is another kind of machine. A *resource* is a type's devices, its cores or its memory: three
per type, in that order, since cores of a GPU node are of no use to a job that asks for a CPU node.
"""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.beside import take_beside
from gantline.core.gather import elapsed
from gantline.core.jit import compiled_from_zero as compiled
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.phases import PENDING, RUNNING, STARTING

#: Estimates that ran out still leave something to do.
LEAST = 1e-6


@compiled
def split(I: Ints, rows: Ints, everyone: bool) -> tuple[Ints, Ints, Ints]:
    """Positions of jobs that stay as they are, the options they run with, and positions of those that compete.

    Without ``everyone`` all jobs that hold something stay; with it only those whose grant is locked, or on its way out, do.
    """
    stay, way, compete = np.zeros(rows.size, np.int64), np.zeros(rows.size, np.int64), np.zeros(rows.size, np.int64)
    staying = competing = 0
    for i in range(rows.size):
        row = rows[i]
        phase = I[c.PHASE, row]
        if phase == PENDING or (everyone and I[c.LOCKED, row] == 0 and (phase == STARTING or phase == RUNNING)):
            compete[competing] = i
            competing += 1
        else:
            stay[staying] = i
            way[staying] = I[c.OPTION, row] - I[c.OPTION_FIRST, row]
            staying += 1
    return stay[:staying], way[:staying], compete[:competing]


@kernel
def need_of(OF: Floats, OI: Ints, option: int, types: int, into: Floats) -> int:
    """Write what an option takes of each resource; its kind comes back."""
    for r in range(into.size):
        into[r] = 0.0
    kind: int = OI[c.O_TYPE, option]
    gpus: int = OI[c.O_GPUS, option]
    per = max(gpus, 1)
    into[kind] = gpus
    into[types + kind] = OF[c.O_CPUS, option] * per
    into[2 * types + kind] = OF[c.O_MEMORY, option] * per
    return 2 * kind + (1 if gpus == 0 else 0)


@kernel
def remaining(F: Floats, I: Ints, row: int, now: float) -> float:
    """Estimated work left."""
    done: float = F[c.DONE, row] + F[c.RATE, row] * elapsed(F, I, row, now)
    left: float = F[c.ESTIMATE, row] - done
    return max(left, LEAST)


@kernel
def believed(OF: Floats, OI: Ints, option: int, i: int, speed: Floats) -> float:
    """The speed of an option as job i is believed to run: as listed, corrected by ``speed[type, i]`` unless that is empty."""
    rate: float = OF[c.O_RATE, option]
    if speed.shape[0] > 0:
        rate *= speed[OI[c.O_TYPE, option], i]
    return rate


@compiled
def vacate(I: Ints, OF: Floats, OI: Ints, NF: Floats, NI: Ints, D: Ints, leaving: Ints) -> tuple[Floats, Ints]:
    """Copies of the node tables as they would be had the given rows nothing."""
    NF, NI = NF.copy(), NI.copy()
    for row in leaving:
        option = I[c.OPTION, row]
        if option < 0:
            continue
        if I[c.NODE, row] >= 0:
            take_beside(OF, NF, option, I[c.NODE, row], -1)
        device = I[c.HEAD, row]
        while device >= 0:
            node = D[c.D_NODE, device]
            NI[c.N_FREE, node] += NI[c.N_UP, node] * (1 - D[c.D_CLOSED, device])
            take_beside(OF, NF, option, node, -1)
            device = D[c.D_NEXT, device]
    return NF, NI


@compiled
def pool(I: Ints, OF: Floats, OI: Ints, NF: Floats, NI: Ints, stay: Ints, users: int, types: int) -> tuple[Floats, Floats, Floats]:
    """What there is, what is free and what the staying rows of each user hold, per resource."""
    free, used = np.zeros(3 * types, np.float64), np.zeros((users, 3 * types), np.float64)
    for node in range(NI.shape[1]):
        if NI[c.N_UP, node] == 1:
            kind = NI[c.N_TYPE, node]
            free[kind] += NI[c.N_FREE, node]
            free[types + kind] += NF[c.N_CPUS, node]
            free[2 * types + kind] += NF[c.N_MEMORY, node]
    need = np.zeros(3 * types, np.float64)
    capacity = free.copy()
    for row in stay:
        if I[c.OPTION, row] >= 0:
            need_of(OF, OI, I[c.OPTION, row], types, need)
            for r in range(3 * types):
                used[I[c.USER, row], r] += need[r]
                capacity[r] += need[r]
    return capacity, free, used


@compiled
def ways(
    F: Floats, I: Ints, OF: Floats, OI: Ints, rows: Ints, now: float, types: int, capacity: Floats, speed: Floats
) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Per way to run one of the rows: which of them, which of its options, the kind, seconds, and what it takes.

    Ways that the cluster, as it is now, could never give are left out.
    """
    count = 0
    for row in rows:
        count += I[c.OPTION_COUNT, row]
    job, option, kind = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    time, need = np.zeros(count, np.float64), np.zeros((count, 3 * types), np.float64)
    at = 0
    for j in range(rows.size):
        row = rows[j]
        left = remaining(F, I, row, now)
        for k in range(I[c.OPTION_COUNT, row]):
            o = I[c.OPTION_FIRST, row] + k
            if OF[c.O_RATE, o] <= 0.0:
                continue
            kind[at] = need_of(OF, OI, o, types, need[at])
            possible = True
            for r in range(3 * types):
                possible = possible and need[at, r] <= capacity[r] + 1e-9
            if not possible:
                continue
            job[at], option[at], time[at] = j, k, left / believed(OF, OI, o, j, speed)
            at += 1
    return job[:at], option[:at], kind[:at], time[:at], need[:at]


@compiled
def owners(F: Floats, I: Ints, rows: Ints, compete: Ints, users: int) -> tuple[Ints, Floats, Floats]:
    """User and arrival of each row that competes, and what each user weighs: the most that one of its active rows says."""
    owner, arrival, weight = np.zeros(compete.size, np.int64), np.zeros(compete.size, np.float64), np.zeros(users, np.float64)
    for j in range(compete.size):
        owner[j], arrival[j] = I[c.USER, compete[j]], F[c.ARRIVAL, compete[j]]
    for row in rows:
        weight[I[c.USER, row]] = max(weight[I[c.USER, row]], F[c.WEIGHT, row])
    for u in range(users):
        if weight[u] <= 0.0:
            weight[u] = 1.0
    return owner, arrival, weight
