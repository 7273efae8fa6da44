"""Machines for the matching: devices, and as many jobs' worth of cores as the nodes of a type hold.

On GPUs a machine is a device. For jobs that run on cores alone it is what the largest such job asks for: a whole node where
nodes are as large as jobs (AlloX' setting), several machines per node otherwise.
"""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import compiled_from_zero as compiled
from gantline.core.jit import kernel_from_zero as kernel
from gantline.systems.allox.policies.columns import EngineTables
from gantline.systems.allox.policies.gather import believed, need_of, remaining


@compiled
def machines(
    tables: EngineTables, stay: Ints, now: float, types: int, way_kind: Ints, way_need: Floats, speed: Floats
) -> tuple[Ints, Floats, Bools]:
    """Per machine its kind, when it should be free, and whether it is; idle ones no more than the jobs could fill.

    ``stay`` are the rows that keep what they hold.
    """
    F, I, OF, OI, NF, NI = tables
    kinds = 2 * types
    unit, wanted = np.zeros(kinds, np.float64), np.zeros(kinds, np.int64)
    for w in range(way_kind.size):
        kind = way_kind[w]
        unit[kind] = max(unit[kind], way_need[w, types + kind // 2])
        wanted[kind] += max(1, int(way_need[w, kind // 2]))
    need = np.zeros(3 * types, np.float64)
    busy = 0
    for row in stay:
        if I[c.OPTION, row] >= 0:
            kind = need_of(OF, OI, I[c.OPTION, row], types, need)
            unit[kind] = max(unit[kind], need[types + kind // 2])
            busy += max(1, int(need[kind // 2]))
    idle = np.zeros(kinds, np.int64)
    for node in range(NI.shape[1]):
        if NI[c.N_UP, node] == 1:
            kind = 2 * NI[c.N_TYPE, node]
            idle[kind] += NI[c.N_FREE, node]
            if wanted[kind + 1] > 0:
                fitting = int((NF[c.N_CPUS, node] + 1e-9) / unit[kind + 1]) if unit[kind + 1] > 0.0 else wanted[kind + 1]
                idle[kind + 1] += fitting
    count = busy
    for kind in range(kinds):
        idle[kind] = min(idle[kind], wanted[kind])
        count += idle[kind]
    found, release, free = np.zeros(count, np.int64), np.full(count, now, np.float64), np.zeros(count, np.bool_)
    at = 0
    for kind in range(kinds):
        for _ in range(idle[kind]):
            found[at], free[at] = kind, True
            at += 1
    for i in range(stay.size):
        row = stay[i]
        option = I[c.OPTION, row]
        if option < 0:
            continue
        kind = need_of(OF, OI, option, types, need)
        until = max(now, F[c.SINCE, row]) + remaining(F, I, row, now) / believed(OF, OI, option, i, speed)
        for _ in range(max(1, int(need[kind // 2]))):
            found[at], release[at] = kind, until
            at += 1
    return found, release, free


@compiled
def by_kind(owner: Ints, job: Ints, kind: Ints, time: Floats, need: Floats, capacity: Floats) -> tuple[Ints, Floats, Floats, Floats, Ints]:
    """Jobs by kinds: the way, its seconds, what it adds to its user's score, its cores and memory, and its width.

    Of several ways of one kind the one with the smallest area (seconds x devices) stands for all. A way adds the dominant share
    of the job's fastest way, as much less as it is slower (AlloX, EuroSys 2020, section 4.3); of equally fast ones that with
    devices counts.
    """
    types = capacity.size // 3
    jobs, kinds = owner.size, 2 * types
    way, width = np.full((jobs, kinds), -1, np.int64), np.full((jobs, kinds), 1, np.int64)
    seconds, gain = np.full((jobs, kinds), np.inf, np.float64), np.zeros((jobs, kinds), np.float64)
    further, fastest = np.empty((jobs, kinds, kinds)), np.full(jobs, -1, np.int64)
    for j in range(jobs):
        for k in range(kinds):
            for r in range(kinds):
                further[j, k, r] = 0.0
    for w in range(job.size):
        j, k = job[w], kind[w]
        devices = max(1, int(need[w, k // 2]))
        if way[j, k] >= 0 and seconds[j, k] * width[j, k] <= time[w] * devices:
            continue
        way[j, k], seconds[j, k], width[j, k] = w, time[w], devices
        for r in range(2 * types):
            further[j, k, r] = need[w, types + r]
    for j in range(owner.size):
        for k in range(2 * types):
            w, best = way[j, k], fastest[j]
            if w >= 0 and (best < 0 or time[w] < time[best] or (time[w] == time[best] and k % 2 < kind[best] % 2)):
                fastest[j] = w
        if fastest[j] >= 0:
            share = dominant(need[fastest[j]], capacity)
            for k in range(2 * types):
                if way[j, k] >= 0:
                    gain[j, k] = share * time[fastest[j]] / seconds[j, k]
    return way, seconds, gain, further, width


@kernel
def dominant(need: Floats, capacity: Floats) -> float:
    """The largest share of a type's devices, of all cores or of all memory."""
    types = capacity.size // 3
    largest = 0.0
    for first in (types, 2 * types):
        mine = whole = 0.0
        for r in range(first, first + types):
            mine += need[r]
            whole += capacity[r]
        if whole > 0.0:
            largest = max(largest, mine / whole)
    for r in range(types):
        if capacity[r] > 0.0:
            largest = max(largest, need[r] / capacity[r])
    return largest


@compiled
def scores(I: Ints, OF: Floats, OI: Ints, stay: Ints, users: int, capacity: Floats, speed: Floats) -> Floats:
    """What the running jobs of each user add up to: of each the same gain, in the way that it runs."""
    types = capacity.size // 3
    score, need = np.zeros(users, np.float64), np.zeros(3 * types, np.float64)
    for i in range(stay.size):
        row = stay[i]
        option = I[c.OPTION, row]
        if option < 0:
            continue
        first, best = I[c.OPTION_FIRST, row], option
        mine = fast = believed(OF, OI, option, i, speed)
        for o in range(first, first + I[c.OPTION_COUNT, row]):
            rate = believed(OF, OI, o, i, speed)
            if rate > fast or (rate == fast and OI[c.O_GPUS, o] > 0 and OI[c.O_GPUS, best] == 0):
                best, fast = o, rate
        if fast > 0.0:
            need_of(OF, OI, best, types, need)
            score[I[c.USER, row]] += dominant(need, capacity) * mine / fast
    return score
