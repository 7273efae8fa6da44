"""One event of AlloX: which jobs start where, when something arrived or ended (AlloX, EuroSys 2020, Algorithm 1).

1. Aged jobs, if ageing is on, start or reserve (``ageing.py``).
2. The users with the lowest scores are let in (``users.py``), and their jobs are matched to machines (``flow.py``).
3. A job that heads the list of an idle machine starts. When all users compete, all heads start; else the one of the
   user with the lowest score, since its start changes whose turn it is.
4. If nothing could start, alpha is doubled for the rest of the event, until all users compete.
5. A job that heads the list of an idle machine and yet cannot start, a gang or one that lacks memory, is left out of this
   event and the others are matched once more: nothing stays idle that someone's matching would use.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import compiled_from_zero as compiled
from gantline.core.jit import kernel_from_zero as kernel
from gantline.systems.allox.policies.ageing import serve_aged
from gantline.systems.allox.policies.columns import MachineColumns, SlotPrices, UserScores, WaitingJobs
from gantline.systems.allox.policies.fill import fits, take
from gantline.systems.allox.policies.matching import sequence
from gantline.systems.allox.policies.slot_flow import FORBIDDEN, solve_slots
from gantline.systems.allox.policies.slot_ties import settle
from gantline.systems.allox.policies.users import let_in


@compiled
def decide_columns(
    now: int, waiting: WaitingJobs, users: UserScores, alpha: float, aged: Ints, there: MachineColumns, prices: SlotPrices
) -> tuple[Ints, Floats, int]:
    """The whole event: per job the type on which it starts (below 0: none), the scores afterwards, matchings solved.

    ``aged`` lists the jobs that go first. A machine whose release is past is free now. Only the solver's prices are changed.
    """
    owner = waiting.owner
    users = UserScores(users.score.copy(), users.weight)
    machines = MachineColumns(there.kind, there.release.copy(), there.idle.copy(), there.free.copy())
    for m in range(machines.release.size):
        if machines.idle[m] or machines.release[m] < now:
            machines.release[m] = now
    started = np.full(owner.size, -1, np.int64)
    for j in range(owner.size):
        if not has_way(waiting.times, j):
            started[j] = -2  # all its ways were found to have no node; a matching with it has no answer
    serve_aged(aged, waiting, machines, started)
    for j in aged:
        if started[j] >= 0:
            users.score[owner[j]] += waiting.gain[j, started[j]]
        else:
            started[j] = -2  # waits for what is reserved
    solved = start_matched(now, waiting, users, alpha, machines, prices, started)
    return started, users.score, solved


@compiled
def start_matched(
    now: int, waiting: WaitingJobs, users: UserScores, alpha: float, machines: MachineColumns, prices: SlotPrices, started: Ints
) -> int:
    """Match and start until nothing more can; ``started[j]`` becomes the type on which job j starts.

    Rows with ``started[j] != -1`` take no part. Changes scores, machines and prices. Returns how many it solved.
    """
    owner = waiting.owner
    active = np.zeros(users.score.size, np.bool_)
    for j in range(owner.size):
        if started[j] == -1:
            active[owner[j]] = True
    tried, blocked = np.zeros(users.score.size, np.bool_), np.zeros(owner.size, np.bool_)
    failed = False
    solved = 0
    while any_set(machines.idle):
        chosen = let_in(users.score, users.weight, active, alpha)
        everyone = same(chosen, active)
        if not (failed and same(chosen, tried)):
            rows = rows_of(chosen, owner, started)
            if rows.size > 0:
                solved += 1
                count = start_heads(now, rows, everyone, waiting, users, machines, prices, started, blocked)
                if count > 0 and not everyone:
                    failed = False
                    continue
                if everyone and leave_out(rows, blocked, started) > 0:
                    failed = False
                    continue
            failed, tried = True, chosen
        if everyone:
            break
        alpha *= 2.0
    return solved


@kernel
def has_way(times: Ints, j: int) -> bool:
    """Whether a job could run on something."""
    ways = 0
    for kind in range(times.shape[0]):
        ways += times[kind, j] != FORBIDDEN
    return ways > 0


@kernel
def leave_out(rows: Ints, blocked: Bools, started: Ints) -> int:
    """Take the rows that could not start out of this event; how many there are."""
    count = 0
    for j in rows:
        if blocked[j] and started[j] == -1:
            started[j] = -2
            count += 1
    return count


@kernel
def any_set(flags: Bools) -> bool:
    """Whether one of them is set; written out, as are the next two, because this compiles in a fraction of the time."""
    count = 0
    for flag in flags:
        count += flag
    return count > 0


@kernel
def same(one: Bools, other: Bools) -> bool:
    """Whether the same flags are set."""
    differing = 0
    for i in range(one.size):
        differing += one[i] != other[i]
    return differing == 0


@compiled
def rows_of(chosen: Bools, owner: Ints, started: Ints) -> Ints:
    """The jobs of the chosen users that take part."""
    rows, count = np.zeros(owner.size, np.int64), 0
    for j in range(owner.size):
        if started[j] == -1 and chosen[owner[j]]:
            rows[count] = j
            count += 1
    return rows[:count]


@compiled
def start_heads(
    now: int,
    rows: Ints,
    all_heads: bool,
    waiting: WaitingJobs,
    users: UserScores,
    machines: MachineColumns,
    prices: SlotPrices,
    started: Ints,
    blocked: Bools,
) -> int:
    """Match some rows and start heads of idle machines: all, or the one of the user with the lowest score.

    ``blocked[j]`` is set for heads that found too few idle machines or too little of something else.
    """
    owner, times, width, need = waiting.owner, waiting.times, waiting.width, waiting.need
    score, weight = users.score, users.weight
    machine_kind, release, idle, free = machines
    place = prices.place
    types = times.shape[0]
    by_release, offset = sort_machines(machines, types)
    weighed = np.zeros((types, rows.size), np.int64)
    for i in range(rows.size):
        for t in range(types):
            time = times[t, rows[i]]
            weighed[t, i] = FORBIDDEN if time == FORBIDDEN else time * width[t, rows[i]]
    mine, free_at = np.zeros(rows.size, np.int64), np.zeros(release.size, np.int64)
    for i in range(rows.size):
        mine[i], blocked[rows[i]] = place[rows[i]], False
    for i in range(release.size):
        free_at[i] = release[by_release[i]]
    if solve_slots(weighed, free_at, offset, prices.price, prices.depth, mine) < 0:
        return 0
    settle(weighed, free_at, offset, prices.price, prices.depth, mine)
    for i in range(rows.size):
        place[rows[i]] = mine[i]
    slot, begin = sequence(weighed, free_at, offset, prices.price.shape[1], mine)
    count = 0
    while True:
        best = -1
        for i in range(rows.size):
            j, m = rows[i], by_release[slot[i]]
            kind = machine_kind[m]
            if started[j] != -1 or not idle[m] or begin[i] != release[m]:
                continue
            narrow = width[kind, j] == 1 or idle_machines(machines, kind) >= width[kind, j]
            blocked[j] = not narrow or not fits(need[j, kind], free)
            if blocked[j]:
                continue
            if best < 0 or score[owner[j]] / weight[owner[j]] < score[owner[rows[best]]] / weight[owner[rows[best]]]:
                best = i
        if best < 0:
            return count
        j, m = rows[best], by_release[slot[best]]
        kind = machine_kind[m]
        started[j] = kind
        score[owner[j]] += waiting.gain[j, kind]
        take(need[j, kind], free)
        occupy(m, kind, width[kind, j], now + times[kind, j], machines)
        count += 1
        if not all_heads:
            return count


@compiled
def sort_machines(machines: MachineColumns, types: int) -> tuple[Ints, Ints]:
    """Machines by type, then release time, then idle ones before those overdue, then number; and where each type begins."""
    kinds, release, idle, _ = machines
    key, by_release = np.zeros(release.size, np.int64), np.zeros(release.size, np.int64)
    for m in range(release.size):
        key[m] = 2 * release[m] + (not idle[m])
    order = np.argsort(key, kind="mergesort")
    offset = np.zeros(types + 1, np.int64)
    for kind in kinds:
        offset[kind + 1] += 1
    for kind in range(types):
        offset[kind + 1] += offset[kind]
    end = offset.copy()
    for m in order:
        by_release[end[kinds[m]]] = m
        end[kinds[m]] += 1
    return by_release, offset


@kernel
def idle_machines(machines: MachineColumns, kind: int) -> int:
    """How many machines of a type are idle."""
    count = 0
    kinds, idle = machines.kind, machines.idle
    for m in range(idle.size):
        count += idle[m] and kinds[m] == kind
    return count


@kernel
def occupy(m: int, kind: int, width: int, until: int, machines: MachineColumns) -> None:
    """Take machine m, and for a gang further idle machines of its type, the last ones first."""
    kinds, release, idle, _ = machines
    release[m], idle[m] = until, False
    left = width - 1
    for other in range(kinds.size - 1, -1, -1):
        if left == 0:
            return
        if idle[other] and kinds[other] == kind:
            release[other], idle[other] = until, False
            left -= 1
