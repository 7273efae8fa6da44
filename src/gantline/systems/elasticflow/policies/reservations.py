"""Plans over time for jobs with deadlines: the least size that meets each, reserved in what those before it leave free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import compiled, kernel

# The free map: how many GPUs are free from each breakpoint to the next, as two arrays and a count.
#
# The first breakpoint is now; beyond the last one the whole cluster counts as free.


@kernel
def up(x: float, now: float, slot: float) -> float:
    """The next slot boundary, counted from now."""
    if x == float("inf"):
        return x
    q = (x - now) / slot
    whole = float(int(q))
    if q > whole:
        whole += 1.0
    return now + whole * slot


@kernel
def ceiling(x: float) -> float:
    """The next whole number."""
    whole = float(int(x))
    return whole + 1.0 if x > whole else whole


@kernel
def in_force(t: Floats, n: int, x: float) -> int:
    """The interval that x lies in: the last breakpoint not after it."""
    low, high = 0, n - 1
    while low < high:
        middle = (low + high + 1) // 2
        if t[middle] <= x:
            low = middle
        else:
            high = middle - 1
    return low


@kernel
def put(t: Floats, v: Ints, n: int, x: float, value: int) -> int:
    """Set the value at a breakpoint, made if absent; how many there are then."""
    at = in_force(t, n, x)
    if t[at] == x:
        v[at] = value
        return n
    if t[at] < x:
        at += 1
    for k in range(n, at, -1):
        t[k], v[k] = t[k - 1], v[k - 1]
    t[at], v[at] = x, value
    return n + 1


@kernel
def canonical(t: Floats, v: Ints, n: int) -> int:
    """Drop breakpoints at which nothing changes; how many are left."""
    kept = 1
    for k in range(1, n):
        if v[k] != v[kept - 1]:
            t[kept], v[kept] = t[k], v[k]
            kept += 1
    return kept


@kernel
def gpu_seconds(at: Floats, av: Ints, count: int, end: float) -> float:
    """What a plan holds in all, its last entry until the end."""
    total = 0.0
    for k in range(count - 1):
        total += av[k] * (at[k + 1] - at[k])
    if av[count - 1] > 0:
        total += av[count - 1] * (end - at[count - 1])
    return total


@kernel
def give_back(ft: Floats, fv: Ints, fn: int, at: Floats, av: Ints, count: int, end: float, ht: Floats, hv: Ints) -> int:
    """The free map (ht, hv) as it would be without a plan that ends at `end`; how many breakpoints it has."""
    i = k = n = 0
    held = 0
    ended = False
    while i < fn or k < count or not ended:
        x = np.inf
        if i < fn:
            x = min(x, ft[i])
        if k < count:
            x = min(x, at[k])
        if not ended:
            x = min(x, end)
        while i < fn and ft[i] <= x:
            i += 1
        while k < count and at[k] <= x:
            held = av[k]
            k += 1
        if x >= end:
            ended = True
        ht[n], hv[n] = x, fv[i - 1] + (0 if ended else held)
        n += 1
    return canonical(ht, hv, n)


# Plans over time for jobs with deadlines: the least size that meets each, booked into what those before it leave free.
#
# A plan is GPUs from each of its breakpoints on, until its end. A change of size costs seconds in which nothing is
# done, and may be carried out some seconds after it was due; a job that has changed keeps its size for the shortest run
# that there is. All of that is planned for, so that a plan that is in time stays in time when it is followed. Sizes are
# entries of a curve (see `elastic.curves`), `top` the largest a job may have.

FULL = -1  # no room left for plans: make it larger and ask again
CLOSE = 1e-6  # seconds that arithmetic may be off


class ReservationTable(NamedTuple):
    """What planning reads and writes, a column per job of a pool."""

    first: Ints  # of each job's sizes in `size` and `rate`
    size: Ints
    rate: Floats
    top: Ints  # entry of the largest size it may have
    left: Floats  # work left
    deadline: Floats  # infinity: none
    held: Ints  # GPUs now
    lag: Floats  # seconds until it progresses, if it keeps them
    ran: Bools  # whether it ever ran
    bound: Floats  # until then it keeps what it has
    begin: Floats  # per size: seconds that a first start costs
    again: Floats  # a start after a stop
    change: Floats  # another size without a stop
    capacity: int
    soon: float  # seconds from now until a change that is due now is carried out
    later: float  # the same for one that is due later, at most
    min_run: float  # seconds after a change in which a job cannot be made to give anything up
    grid: float  # changes happen at whole multiples of it; 0: at any time
    free_t: Floats  # the free map: used[0] breakpoints
    free_v: Ints
    plan_t: Floats  # entries of all plans: used[1] of them
    plan_v: Ints
    plan_first: Ints
    plan_count: Ints  # zero: it has no plan
    finish: Floats
    end: Floats  # when its GPUs are free again
    used: Ints  # breakpoints of the free map, entries of plans
    scratch_t: Floats
    scratch_v: Ints


@kernel
def boundary(x: float, grid: float) -> float:
    """The next moment at which something can change."""
    if grid <= 0.0 or x == np.inf:
        return x
    steps = np.floor(x / grid)
    return x if x - steps * grid <= CLOSE else (steps + 1.0) * grid


@kernel
def fits(first: int, top: int, size: Ints, gpus: int) -> int:
    """The largest entry up to `top` that so many GPUs allow; first - 1: none."""
    entry = top
    while entry >= first and size[entry] > gpus:
        entry -= 1
    return entry


@kernel
def walk(b: ReservationTable, job: int, forced: int, entry: int, t: Floats, v: Ints, n: int, at: Floats, av: Ints) -> tuple[int, float]:
    """Follow a job through a free map, with `forced` (-1: not) in the first interval and up to `entry` later; entries, finish."""
    left, before, wait, count = b.left[job], b.held[job], 0.0, 0
    ran, bounded, bound = b.ran[job], b.min_run > 0.0, b.bound[job]
    for k in range(n):
        if bounded and t[k] < bound - CLOSE:
            if v[k] < before or (k == 0 and forced >= 0 and b.size[forced] != before):
                return count, np.inf
            a, gpus = fits(b.first[job], b.first[job + 1] - 1, b.size, before), before
        else:
            if k == 0 and forced >= 0:
                a = forced
            elif bounded:
                a = _lasting(b, job, entry, before, t, v, n, k)
            else:
                a = fits(b.first[job], entry, b.size, v[k])
            gpus = b.size[a] if a >= b.first[job] else 0
        if k == 0 and gpus == b.held[job]:
            wait = b.lag[job]
        elif gpus != before and gpus > 0:
            delay = b.soon if k == 0 else b.later
            wait = delay + (b.change[a] if before > 0 else b.again[a] if ran else b.begin[a])
            ran, bound = True, t[k] + delay + b.min_run
        at[count], av[count] = t[k], gpus
        count += 1
        if gpus > 0:
            until = t[k + 1] if k + 1 < n else np.inf
            ends = t[k] + wait + left / b.rate[a]
            if ends <= until:
                return count, ends
            span = until - t[k]
            if wait < span:
                left -= (span - wait) * b.rate[a]
                wait = 0.0
            else:
                wait -= span
        before = gpus
    return count, np.inf


@kernel
def _lasting(b: ReservationTable, job: int, entry: int, before: int, t: Floats, v: Ints, n: int, k: int) -> int:
    """The largest entry that is free from breakpoint k on for a whole minimum run; or what the job has, while that is free and more."""
    until = t[k] + (b.soon if k == 0 else b.later) + b.min_run
    room, j = v[k], k + 1
    while j < n and t[j] < until - CLOSE:
        room = min(room, v[j])
        j += 1
    a = fits(b.first[job], entry, b.size, room)
    gpus = b.size[a] if a >= b.first[job] else 0
    if gpus < before and before <= v[k] and before <= b.size[entry]:
        return fits(b.first[job], entry, b.size, before)
    return a


@kernel
def open_map(b: ReservationTable, now: float) -> int:
    """A free map without plans: all GPUs but those of jobs that cannot be made to give them up yet. Returns the number of breakpoints."""
    n = 1
    b.free_t[0], b.free_v[0] = now, b.capacity
    if b.min_run > 0.0:
        for job in range(b.held.size):
            n = hold(b, job, now, n, b.held[job])
    return n


@kernel
def hold(b: ReservationTable, job: int, now: float, n: int, gpus: int) -> int:
    """Take out of the free map what a job keeps for the time being; fewer than none: put it back, to plan the job."""
    until = b.bound[job]
    if gpus == 0 or until <= now + CLOSE:
        return n
    n = split(b.free_t, b.free_v, n, until)
    for k in range(n):
        if b.free_t[k] < until - CLOSE:
            b.free_v[k] -= gpus
    return n


@compiled
def clear_plans(b: ReservationTable, now: float) -> None:
    """No plans at all."""
    b.plan_count[:] = 0
    b.used[0], b.used[1] = open_map(b, now), 0


@kernel
def least(b: ReservationTable, job: int, now: float, forced: int, t: Floats, v: Ints, n: int, at: Floats, av: Ints) -> tuple[int, float]:
    """The plan of the smallest size that is in time; finish is infinity if none is."""
    limit, left, since = b.deadline[job] + CLOSE, b.left[job], now
    if forced >= 0 and n > 1:
        left, since = max(left - (t[1] - now) * b.rate[forced], 0.0), t[1]
    for entry in range(b.first[job], b.top[job] + 1):
        if since + left / b.rate[entry] > limit:
            continue  # not even if it had them all the time
        count, finish = walk(b, job, forced, entry, t, v, n, at, av)
        if finish <= limit:
            return count, finish
    return 0, np.inf


@kernel
def take_out(t: Floats, v: Ints, n: int, av: Ints, count: int, end: float) -> int:
    """Take a plan, one entry per interval, out of a free map; how many breakpoints it has then."""
    free_again = v[count - 1]
    for k in range(count):
        v[k] -= av[k]
    if end != np.inf and (count == n or t[count] != end):
        n = put(t, v, n, end, free_again)
    return n


@compiled
def reserve_all(b: ReservationTable, order: Ints, now: float, widest: bool, late: Bools) -> int:
    """Plan jobs in the given order; those that cannot be in time are marked late and get no plan, unless as wide as can be is wanted."""
    n, used = open_map(b, now), 0
    for job in order:
        if used + n + 4 > b.plan_t.size or 2 * n + 16 > b.free_t.size:
            return FULL
        n, used = _book(b, job, now, n, used, widest, late)
    b.used[0], b.used[1] = n, used
    return n


@compiled
def reserve_more(b: ReservationTable, job: int, now: float, widest: bool, late: Bools) -> int:
    """Plan one more job into what all others leave."""
    n, used = b.used[0], b.used[1]
    if used + n + 4 > b.plan_t.size or 2 * n + 16 > b.free_t.size:
        return FULL
    b.used[0], b.used[1] = _book(b, job, now, n, used, widest, late)
    return int(b.used[0])


@kernel
def _book(b: ReservationTable, job: int, now: float, n: int, used: int, widest: bool, late: Bools) -> tuple[int, int]:
    at, av = b.plan_t[used:], b.plan_v[used:]
    b.plan_count[job], late[job] = 0, False
    n = hold(b, job, now, n, -b.held[job])
    if widest:
        count, finish = walk(b, job, -1, b.top[job], b.free_t, b.free_v, n, at, av)
    else:
        count, finish = least(b, job, now, -1, b.free_t, b.free_v, n, at, av)
    late[job] = finish > b.deadline[job] + CLOSE
    if count == 0 or finish == np.inf:
        return hold(b, job, now, n, b.held[job]), used
    return keep(b, job, n, used, count, finish)


@kernel
def keep(b: ReservationTable, job: int, n: int, used: int, count: int, finish: float) -> tuple[int, int]:
    """Note a plan that begins at `used` and take it out of the free map."""
    end = _snapped(b.free_t, n, boundary(finish, b.grid))
    n = canonical(b.free_t, b.free_v, take_out(b.free_t, b.free_v, n, b.plan_v[used:], count, end))
    count = canonical(b.plan_t[used:], b.plan_v[used:], count)
    b.plan_first[job], b.plan_count[job], b.finish[job], b.end[job] = used, count, finish, end
    return n, used + count


@kernel
def _snapped(t: Floats, n: int, x: float) -> float:
    """The breakpoint that a time differs from by rounding only, else the time itself: no interval is shorter than rounding."""
    for k in range(n):
        if abs(t[k] - x) <= CLOSE:
            return float(t[k])
    return x


@compiled
def earliest_end(b: ReservationTable, job: int) -> float:
    """When a job would end at the earliest in what all plans leave free."""
    best = np.inf
    for entry in range(b.first[job], b.top[job] + 1):
        _, finish = walk(b, job, -1, entry, b.free_t, b.free_v, b.used[0], b.scratch_t[0], b.scratch_v[0])
        best = min(best, finish)
    return boundary(best, b.grid)


@compiled
def follow(b: ReservationTable, job: int, now: float, at: Floats, av: Ints, end: float) -> bool:
    """ReservationTable a plan made earlier, from now on; False: it is not in time, or not free any more."""
    n, used = b.used[0], b.used[1]
    if used + n + at.size + 8 > b.plan_t.size or 2 * (n + at.size) + 16 > b.free_t.size:
        return False
    t, v = b.scratch_t[0], b.scratch_v[0]  # the free map cut down to the plan
    m = 0
    for k in range(at.size):
        until = at[k + 1] if k + 1 < at.size else np.inf
        if until <= now:
            continue
        t[m], v[m] = max(at[k], now), av[k]
        m += 1
    if m == 0 or t[0] > now:
        return False
    n = hold(b, job, now, n, -b.held[job])
    count, finish = walk(b, job, -1, b.top[job], t, v, m, b.scratch_t[1], b.scratch_v[1])
    if finish > b.deadline[job] + CLOSE or boundary(finish, b.grid) > end + CLOSE:
        return False
    stop = boundary(finish, b.grid)
    stop = end if stop > end - CLOSE else _snapped(b.free_t, n, stop)
    for k in range(count):
        b.plan_t[used + k], b.plan_v[used + k] = t[k], b.scratch_v[1, k]
    used_by = canonical(b.plan_t[used:], b.plan_v[used:], count)
    for k in range(used_by):  # every change and the end become breakpoints, then the plan is taken out
        n = split(b.free_t, b.free_v, n, b.plan_t[used + k])
    n = split(b.free_t, b.free_v, n, stop)
    at_entry = 0
    for k in range(n):
        if b.free_t[k] >= stop:
            break
        while at_entry + 1 < used_by and b.plan_t[used + at_entry + 1] <= b.free_t[k]:
            at_entry += 1
        b.free_v[k] -= b.plan_v[used + at_entry]
        if b.free_v[k] < 0:
            return False
    b.used[0], b.used[1] = canonical(b.free_t, b.free_v, n), used + used_by
    b.plan_first[job], b.plan_count[job], b.finish[job], b.end[job] = used, used_by, finish, stop
    return True


@kernel
def split(t: Floats, v: Ints, n: int, x: float) -> int:
    """A breakpoint at x, with the value in force."""
    if x == np.inf:
        return n
    for k in range(n - 1, -1, -1):
        if t[k] == x:
            return n
        if t[k] < x:
            return put(t, v, n, x, v[k])
    return n
