"""From the engine's tables to the columns that AlloX and its baselines decide on, compiled: one call instead of fifty.

A *kind* is a device type used with devices (``2 x type``) or for its cores alone (``2 x type + 1``), so that an option on a
GPU node that asks for no GPU is another kind of machine. A *resource* is a type's devices, its cores or its memory: three
per type, in that order, since cores of a GPU node are of no use to a job that asks for a CPU node.

A *machine* of the matching is a device. For jobs that run on cores alone it is what the largest such job asks for: a whole
node where nodes are as large as jobs (AlloX' setting), several machines per node otherwise. `first_unseated` says what
finds no node, since totals may suffice where no single node does.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.beside import take_beside
from gantline.core.columns import Device, Job, Node, Option
from gantline.core.gather import elapsed
from gantline.core.jit import compiled_from_zero as compiled
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.policies.placement.few_nodes import NodeCounts, supply_for
from gantline.policies.placement.fit import choose_first_free
from gantline.systems.allox.policies.columns import EngineTables

#: Estimates that ran out still leave something to do.
LEAST = 1e-6


@compiled
def split(I: Ints, everyone: bool) -> tuple[Ints, Ints, Ints]:
    """Positions of jobs that stay as they are, the options they run with, and positions of those that compete.

    Without ``everyone`` all jobs that hold something stay; with it only those whose grant is locked, or on its way out, do.
    """
    jobs = I.shape[1]
    stay, way, compete = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    staying = competing = 0
    for row in range(jobs):
        phase = I[Job.PHASE, row]
        if phase == PENDING or (everyone and I[Job.LOCKED, row] == 0 and (phase == STARTING or phase == RUNNING)):
            compete[competing] = row
            competing += 1
        else:
            stay[staying] = row
            way[staying] = I[Job.OPTION, row] - I[Job.OPTION_FIRST, row]
            staying += 1
    return stay[:staying], way[:staying], compete[:competing]


@kernel
def need_of(OF: Floats, OI: Ints, option: int, types: int, into: Floats) -> int:
    """Write what an option takes of each resource; its kind comes back."""
    for r in range(into.size):
        into[r] = 0.0
    kind: int = OI[Option.TYPE, option]
    gpus: int = OI[Option.GPUS, option]
    per = max(gpus, 1)
    into[kind] = gpus
    into[types + kind] = OF[Option.CPUS, option] * per
    into[2 * types + kind] = OF[Option.MEMORY, option] * per
    return 2 * kind + (1 if gpus == 0 else 0)


@kernel
def remaining(F: Floats, I: Ints, row: int, now: float) -> float:
    """Estimated work left."""
    done: float = F[Job.DONE, row] + F[Job.RATE, row] * elapsed(F, I, row, now)
    left: float = F[Job.ESTIMATE, row] - done
    return max(left, LEAST)


@kernel
def believed(OF: Floats, OI: Ints, option: int, i: int, speed: Floats) -> float:
    """The speed of an option as job i is believed to run: as listed, corrected by ``speed[type, i]`` unless that is empty."""
    rate: float = OF[Option.RATE, option]
    if speed.shape[0] > 0:
        rate *= speed[OI[Option.TYPE, option], i]
    return rate


@compiled
def vacate(I: Ints, OF: Floats, OI: Ints, NF: Floats, NI: Ints, D: Ints, leaving: Ints) -> tuple[Floats, Ints]:
    """Copies of the node tables as they would be had the given rows nothing."""
    NF, NI = NF.copy(), NI.copy()
    for row in leaving:
        option = I[Job.OPTION, row]
        if option < 0:
            continue
        if I[Job.NODE, row] >= 0:
            take_beside(OF, NF, option, I[Job.NODE, row], -1)
        device = I[Job.HEAD, row]
        while device >= 0:
            node = D[Device.NODE, device]
            NI[Node.FREE, node] += NI[Node.UP, node] * (1 - D[Device.CLOSED, device])
            take_beside(OF, NF, option, node, -1)
            device = D[Device.NEXT, device]
    return NF, NI


@compiled
def pool(I: Ints, OF: Floats, OI: Ints, NF: Floats, NI: Ints, stay: Ints, users: int, types: int) -> tuple[Floats, Floats, Floats]:
    """What there is, what is free and what the staying rows of each user hold, per resource."""
    free, used = np.zeros(3 * types, np.float64), np.zeros((users, 3 * types), np.float64)
    for node in range(NI.shape[1]):
        if NI[Node.UP, node] == 1:
            kind = NI[Node.TYPE, node]
            free[kind] += NI[Node.FREE, node]
            free[types + kind] += NF[Node.CPUS, node]
            free[2 * types + kind] += NF[Node.MEMORY, node]
    need = np.zeros(3 * types, np.float64)
    capacity = free.copy()
    for row in stay:
        if I[Job.OPTION, row] >= 0:
            need_of(OF, OI, I[Job.OPTION, row], types, need)
            for r in range(3 * types):
                used[I[Job.USER, row], r] += need[r]
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
        count += I[Job.OPTION_COUNT, row]
    job, option, kind = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    time, need = np.zeros(count, np.float64), np.zeros((count, 3 * types), np.float64)
    at = 0
    for j in range(rows.size):
        row = rows[j]
        left = remaining(F, I, row, now)
        for k in range(I[Job.OPTION_COUNT, row]):
            o = I[Job.OPTION_FIRST, row] + k
            if OF[Option.RATE, o] <= 0.0:
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
def owners(F: Floats, I: Ints, compete: Ints, users: int) -> tuple[Ints, Floats, Floats]:
    """User and arrival of each row that competes, and what each user weighs: the most that one of its active rows says."""
    owner, arrival, weight = np.zeros(compete.size, np.int64), np.zeros(compete.size, np.float64), np.zeros(users, np.float64)
    for j in range(compete.size):
        owner[j], arrival[j] = I[Job.USER, compete[j]], F[Job.ARRIVAL, compete[j]]
    for row in range(I.shape[1]):
        weight[I[Job.USER, row]] = max(weight[I[Job.USER, row]], F[Job.WEIGHT, row])
    for u in range(users):
        if weight[u] <= 0.0:
            weight[u] = 1.0
    return owner, arrival, weight


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
        if I[Job.OPTION, row] >= 0:
            kind = need_of(OF, OI, I[Job.OPTION, row], types, need)
            unit[kind] = max(unit[kind], need[types + kind // 2])
            busy += max(1, int(need[kind // 2]))
    idle = np.zeros(kinds, np.int64)
    for node in range(NI.shape[1]):
        if NI[Node.UP, node] == 1:
            kind = 2 * NI[Node.TYPE, node]
            idle[kind] += NI[Node.FREE, node]
            if wanted[kind + 1] > 0:
                fitting = int((NF[Node.CPUS, node] + 1e-9) / unit[kind + 1]) if unit[kind + 1] > 0.0 else wanted[kind + 1]
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
        option = I[Job.OPTION, row]
        if option < 0:
            continue
        kind = need_of(OF, OI, option, types, need)
        until = max(now, F[Job.SINCE, row]) + remaining(F, I, row, now) / believed(OF, OI, option, i, speed)
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
        option = I[Job.OPTION, row]
        if option < 0:
            continue
        first, best = I[Job.OPTION_FIRST, row], option
        mine = fast = believed(OF, OI, option, i, speed)
        for o in range(first, first + I[Job.OPTION_COUNT, row]):
            rate = believed(OF, OI, o, i, speed)
            if rate > fast or (rate == fast and OI[Option.GPUS, o] > 0 and OI[Option.GPUS, best] == 0):
                best, fast = o, rate
        if fast > 0.0:
            need_of(OF, OI, best, types, need)
            score[I[Job.USER, row]] += dominant(need, capacity) * mine / fast
    return score


def first_unseated(OF: Floats, OI: Ints, NF: Floats, NI: Ints, options: Ints) -> int:
    """The first of the options, in order, that finds no node with room once the earlier ones are seated; -1: all do."""
    return take_seats(OF, OI, NF.copy(), NI.copy(), options)


def take_seats(OF: Floats, OI: Ints, NF: Floats, NI: Ints, options: Ints) -> int:
    """Seat the options in order and write down what they take; the first that finds no room, -1: all do."""
    return seat(OF, OI, NF, NI, options, np.empty(NI.shape[1] + 1, np.int64), np.empty(NI.shape[1] + 1, np.int64))


@kernel
def seat(OF: Floats, OI: Ints, NF: Floats, NI: Ints, options: Ints, nodes: Ints, counts: Ints) -> int:
    """The same with room for the nodes of one option, and one more."""
    seats = NodeCounts(nodes, counts)
    for i in range(options.size):
        o = options[i]
        supply = supply_for(NF, NI, OF, OI, o, False)
        used = choose_first_free(supply, OI[Option.GPUS, o], OI[Option.NODES, o], seats)
        if used == 0:
            return i
        for k in range(used):
            NI[Node.FREE, nodes[k]] -= counts[k]
            take_beside(OF, NF, o, nodes[k], max(counts[k], 1))
    return -1
