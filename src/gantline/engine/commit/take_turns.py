"""The turns of a commit, in the order of the plan: a gang starts, goes on with more or fewer devices, starts again elsewhere, or gets back
what it had. Compiled.

Members of a group have one size and their devices are open, so a group shares the devices of its first member; what else there is goes
one by one (`one_by_one`).
"""

from __future__ import annotations

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.jit import kernel
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine import log as g
from gantline.engine import settings as s
from gantline.engine.commit.resize import Spots, extension, grow_chain, has_side, nodes_of, restore_gang, restyle
from gantline.engine.commit.turns import (
    A_FIRST,
    A_GETS,
    A_GROUP,
    A_LEAD,
    A_MATE,
    A_OPTION,
    A_RETURNS,
    A_ROW,
    A_WANTS,
    A_WHOLE,
    BOUND,
    GRANTED,
    HALTED,
    IN_PART,
    JOINS,
    KEEPS,
    LEAVES,
    MOVE,
    OWNS_NAMED,
    PLACED,
    RESIZE,
    RESTORED,
    RESUME,
    SHARES_NAMED,
    START,
    STAYS,
    SWITCH,
    UNTOUCHED,
    W_ACT,
    W_CHANGE,
    W_END,
    W_HAD,
    W_HELD,
    W_KEPT,
    W_OPTION,
    W_SHARED,
    WAITED,
    WAITS,
    CommitMoment,
    GangTurns,
)
from gantline.engine.gang import close_interval, find_place, give_back, halt, open_interval, price, rate_of, rest, set_due, start, take
from gantline.engine.log import LogColumns
from gantline.engine.shared_devices import (
    GANG_FIRST,
    Partners,
    SharedDevices,
    is_free,
    leave_devices,
    own_seats,
    restyle_seated,
    settle_down,
    touch_beside,
)
from gantline.policies.placement.rule import Together

_SENSITIVE, _ALWAYS = int(Together.SENSITIVE), int(Together.ALWAYS)
_MOVED, _RESIZED, _RESOURCES, _FRAGMENTED = (int(r) for r in (Reason.MOVED, Reason.RESIZED, Reason.RESOURCES, Reason.FRAGMENTED))
_INFEASIBLE, _TOGETHER = int(Reason.INFEASIBLE), int(Reason.TOGETHER)


@kernel
def take_turns(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, moment: CommitMoment) -> None:
    """One gang after the other."""
    ask, work = turns.ask, turns.work
    for k in range(turns.size[0]):
        if work[W_CHANGE, k] == BOUND or work[W_END, k] != UNTOUCHED:
            continue
        if ask[A_WANTS, k] == PLACED:
            _turn_of_placed(t, company, turns, k, moment)
        elif ask[A_WHOLE, k] == 1:
            _turn_together(t, seats, company, turns, ask[A_LEAD, k], moment)
        elif work[W_CHANGE, k] == STAYS:
            _adjust(t, seats, company, turns, k)
        else:
            reason = _find(t, seats, company, turns, k, moment)
            if reason == 0:
                _begin(t, seats, company, turns, k, moment)
            else:
                _refuse(t, seats, company, turns, k, reason, moment)


@kernel
def _turn_together(
    t: Matrices,
    seats: SharedDevices,
    company: Partners,
    turns: GangTurns,
    leader: int,
    moment: CommitMoment,
) -> None:
    """Every member that is not in place yet gets one, or none of them does."""
    ask, work = turns.ask, turns.work
    group, failed, reason = ask[A_GROUP, leader], -1, 0
    pool = turns.pool[group]
    k = leader
    while k >= 0 and failed < 0:
        if work[W_CHANGE, k] != STAYS:
            reason = _TOGETHER if work[W_CHANGE, k] == BOUND else _find(t, seats, company, turns, k, moment)
            if reason != 0:
                failed = k
            else:
                _take_found(t, seats, company, turns, k)  # so that the next one finds another
        k = ask[A_MATE, k]
    k = leader
    while k >= 0 and k != failed:
        if work[W_CHANGE, k] != STAYS:
            leave_devices(t, seats, company, ask[A_ROW, k])
        k = ask[A_MATE, k]
    if failed >= 0:
        turns.pool[group] = pool
    for begins in range(2):
        k = leader
        while k >= 0:
            change = work[W_CHANGE, k]
            if begins == 0 and change == STAYS:
                _adjust(t, seats, company, turns, k)
            elif begins == 1 and change != STAYS and change != BOUND and failed < 0:
                _begin(t, seats, company, turns, k, moment)
            elif begins == 1 and change != STAYS and change != BOUND:
                _refuse(t, seats, company, turns, k, reason if k == failed else _TOGETHER, moment)
                if work[W_END, k] == UNTOUCHED:
                    work[W_END, k] = WAITED
            k = ask[A_MATE, k]


@kernel
def _adjust(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int) -> None:
    """Change in place what needs no restart: CPUs, and whether it shares."""
    ask, work = turns.ask, turns.work
    row = ask[A_ROW, k]
    shared = seats.gang[GANG_FIRST, row] >= 0
    whole = restyle_seated(t, seats, company, row, ask[A_OPTION, k], False, ask[A_GETS, k])
    if not whole:
        t.I[c.REASON, row] = _RESOURCES
    if ask[A_WANTS, k] > SHARES_NAMED and seats.gang[GANG_FIRST, row] >= 0:
        own_seats(t, seats, company, row, ask[A_GETS, k])
    touch_beside(seats, company, row)
    if whole or shared:
        work[W_END, k] = GRANTED if whole else IN_PART


@kernel
def _find(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int, moment: CommitMoment) -> int:
    """Write down the devices that a row gets, which are free; or why there are none (0: there are)."""
    ask, work, gets = turns.ask, turns.work, company.gets
    row, option, wants, at = ask[A_ROW, k], ask[A_OPTION, k], ask[A_WANTS, k], ask[A_GETS, k]
    if option < 0:
        return _INFEASIBLE
    need = t.OI[c.O_GPUS, option]
    pool = turns.pool[ask[A_GROUP, k]] if wants == JOINS else -1
    if wants == SHARES_NAMED or wants == OWNS_NAMED:
        for n in range(need):
            gets[at + n] = turns.named[ask[A_FIRST, k] + n]
    elif pool >= 0:
        stays = work[W_CHANGE, pool] == STAYS
        for n in range(need):
            gets[at + n] = company.had[work[W_HAD, pool] + n] if stays else gets[ask[A_GETS, pool] + n]
    elif not _choose(t, row, option, gets, at, moment):
        return _FRAGMENTED if _free_of(t, t.OI[c.O_TYPE, option]) >= need else _RESOURCES
    if work[W_KEPT, k] > 0:
        leave_devices(t, seats, company, row)
        work[W_KEPT, k] = 0
    if not is_free(t, seats, company, row, option, gets, at, need, wants <= SHARES_NAMED, False):
        return _RESOURCES
    return 0


@kernel
def _choose(t: Matrices, row: int, option: int, gets: Ints, at: int, moment: CommitMoment) -> bool:
    """A place by the rule: the first free devices of each node."""
    nodes, counts = moment.scratch[0], moment.scratch[1]
    used = find_place(t, moment.rules, row, option, False, nodes, counts)
    for n in range(used):
        device, left = t.NI[c.N_FIRST, nodes[n]], counts[n]
        while left > 0:
            if t.D[c.D_HOLDER, device] == c.FREE:
                gets[at] = device
                at += 1
                left -= 1
            device += 1
    return used > 0


@kernel
def _take_found(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int) -> None:
    ask = turns.ask
    wants, option, group = ask[A_WANTS, k], ask[A_OPTION, k], ask[A_GROUP, k]
    settle_down(t, seats, company, ask[A_ROW, k], option, company.gets, ask[A_GETS, k], t.OI[c.O_GPUS, option], wants <= SHARES_NAMED)
    if wants == JOINS and turns.pool[group] < 0:
        turns.pool[group] = k


@kernel
def _begin(
    t: Matrices,
    seats: SharedDevices,
    company: Partners,
    turns: GangTurns,
    k: int,
    moment: CommitMoment,
) -> None:
    """The row takes the devices that were found: it starts, starts again elsewhere, or goes on after a pause."""
    F, I, ask, work, amount = t.F, t.I, turns.ask, turns.work, moment.rules.amount
    now, log, out = moment.times[0], moment.log, moment.out
    row, option, change = ask[A_ROW, k], ask[A_OPTION, k], work[W_CHANGE, k]
    need = t.OI[c.O_GPUS, option]
    if change == WAITS:
        work[W_ACT, k] = START if F[c.FIRST_START, row] != F[c.FIRST_START, row] else RESUME
    else:
        alike = t.OI[c.O_TYPE, work[W_OPTION, k]] == t.OI[c.O_TYPE, option]
        work[W_ACT, k] = RESIZE if work[W_HELD, k] != need and alike else MOVE
        close_interval(I, row, now, _MOVED if work[W_HELD, k] == need else _RESIZED, log)
    if change == LEAVES:
        rest(F, I, row, now)
        out[1] += 1
    _take_found(t, seats, company, turns, k)
    if change == KEEPS:
        I[c.EPOCH, row] += 1
        F[c.SAFE, row] = F[c.DONE, row]
        open_interval(I, t.D, row, now, log)
    else:
        start(t, row, now, moment.rules, log)
        out[0] += 1
    if seats.gang[GANG_FIRST, row] >= 0:
        _log_seats(I, row, company.gets, ask[A_GETS, k], need, log)
    if change != WAITS:
        F[c.SINCE, row] = now + price(amount[s.S_RESIZE] if work[W_ACT, k] == RESIZE else amount[s.S_MOVE], need, amount)
        set_due(F, row)
    elif ask[A_RETURNS, k] == 1 and work[W_ACT, k] == RESUME:
        work[W_ACT, k] = SWITCH
        F[c.SINCE, row] = now + price(moment.times[1], need, amount)
        set_due(F, row)
    work[W_END, k] = GRANTED


@kernel
def _log_seats(I: Ints, row: int, devices: Ints, first: int, count: int, log: LogColumns) -> None:
    """Shared devices are in no chain that the log could follow."""
    at, offset = I[c.INTERVAL, row], log.written[g.DEVICES]
    for n in range(count):
        log.device[offset + n] = devices[first + n]
    log.written[g.DEVICES] = offset + count
    log.entry[g.L_COUNT, at] = count


@kernel
def _refuse(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int, reason: int, moment: CommitMoment) -> None:
    """The row gets nothing of this, and goes back to what it had, if that is still free."""
    ask, work = turns.ask, turns.work
    row, change = ask[A_ROW, k], work[W_CHANGE, k]
    t.I[c.REASON, row] = reason
    if change != KEEPS and change != LEAVES:
        return
    if work[W_KEPT, k] > 0:
        leave_devices(t, seats, company, row)
        work[W_KEPT, k] = 0
    old, first, count, shared = work[W_OPTION, k], work[W_HAD, k], work[W_HELD, k], work[W_SHARED, k] == 1
    if is_free(t, seats, company, row, old, company.had, first, count, shared, True):
        settle_down(t, seats, company, row, old, company.had, first, count, shared)
        work[W_END, k] = RESTORED
        return
    halt(t.F, t.I, row, moment.times[0], reason, moment.log)
    moment.out[1] += 1
    work[W_END, k] = HALTED


# --- gangs that the rule places ----------------------------------------------------------------------------------------
@kernel
def _turn_of_placed(t: Matrices, company: Partners, turns: GangTurns, k: int, moment: CommitMoment) -> None:
    """A gang of its own: it starts, goes on where it is with more or fewer devices, or starts again elsewhere."""
    I, scratch, work = t.I, moment.scratch, turns.work
    found = Spots(scratch[0], scratch[1], scratch[2], scratch[3])
    row, option, change = turns.ask[A_ROW, k], turns.ask[A_OPTION, k], work[W_CHANGE, k]
    if option < 0:
        I[c.REASON, row] = _INFEASIBLE
        return
    if change == STAYS:
        if I[c.OPTION, row] != option and not restyle(t, row, option, False):
            I[c.REASON, row] = _RESOURCES
        return
    need, free = t.OI[c.O_GPUS, option], _free_of(t, t.OI[c.O_TYPE, option])
    used, lacks = 0, need == 0
    if change == KEEPS:
        change, used, lacks = _in_place_or_elsewhere(t, company, turns, k, free, moment, found)
        if change == KEEPS and used >= 0:
            _go_on(t, turns, k, used, moment, found)
            return
    elif need <= free:
        used = find_place(t, moment.rules, row, option, False, found.nodes, found.counts)
    if used > 0 and change != KEEPS:
        _begin_there(t, turns, k, change, used, moment, found)
        return
    reason = _FRAGMENTED if free >= need and not lacks else _RESOURCES
    I[c.REASON, row] = reason
    if change != WAITS and not restore_gang(t, row, work[W_OPTION, k], company.had, work[W_HAD, k], work[W_HELD, k]):
        give_back(t, row)
        halt(t.F, I, row, moment.times[0], reason, moment.log)
        moment.out[1] += 1
        work[W_END, k] = HALTED


@kernel
def _free_of(t: Matrices, kind: int) -> int:
    free = 0
    for node in range(t.NI.shape[1]):
        free += t.NI[c.N_FREE, node] if t.NI[c.N_TYPE, node] == kind else 0
    return int(free)


@kernel
def _in_place_or_elsewhere(
    t: Matrices, company: Partners, turns: GangTurns, k: int, free: int, moment: CommitMoment, found: Spots
) -> tuple[int, int, bool]:
    """A gang that may keep some of its devices: does it go on there, or as a whole elsewhere?

    What it does (KEEPS, LEAVES), how many nodes more it gets (-1: it cannot go on), and whether it only lacks CPUs or memory.
    """
    row, option, work, rules = turns.ask[A_ROW, k], turns.ask[A_OPTION, k], turns.work, moment.rules
    need = t.OI[c.O_GPUS, option]
    kept, used = min(need, work[W_HELD, k]), 0
    if need > kept and need - kept <= free:
        used = extension(t, rules, row, option, kept, found)
    fits = (used > 0 or need == kept) and has_side(t, row, option, found, used)
    lacks = not fits and (used > 0 or need == kept)  # devices, but not the CPUs or the memory
    likes = rules.switch[s.S_TOGETHER]
    together = likes == _ALWAYS or (likes == _SENSITIVE and t.I[c.CONSOLIDATE, row] > 0)
    may_move = moment.times[0] >= t.F[c.LAST_START, row] + rules.amount[s.S_MIN_RUN]
    if need > kept and may_move and (not fits or together):
        span = nodes_of(t.I, t.D, row, found.nodes, used) if fits else 1 << 60
        if span > 1:  # it would be spread or stay as it is: is there a better place for the whole gang?
            old = t.I[c.OPTION, row]
            give_back(t, row)
            elsewhere = find_place(t, rules, row, option, False, found.nodes, found.counts)
            if elsewhere > 0 and elsewhere < span and need - kept <= free:
                return LEAVES, elsewhere, lacks
            restore_gang(t, row, old, company.had, work[W_HAD, k], work[W_HELD, k])
            if fits:
                used = extension(t, rules, row, option, kept, found)
    return KEEPS, used if fits else -1, lacks


@kernel
def _go_on(t: Matrices, turns: GangTurns, k: int, used: int, moment: CommitMoment, found: Spots) -> None:
    """It goes on with more or fewer devices, after a pause."""
    F, I, row, option = t.F, t.I, turns.ask[A_ROW, k], turns.ask[A_OPTION, k]
    now, rules, log, need = moment.times[0], moment.rules, moment.log, t.OI[c.O_GPUS, option]
    grow_chain(t, row, option, min(need, turns.work[W_HELD, k]), found, used)
    I[c.SPREAD, row] = nodes_of(I, t.D, row, found.nodes, 0)
    close_interval(I, row, now, _RESIZED, log)
    I[c.EPOCH, row] += 1
    I[c.REASON, row] = 0
    F[c.SAFE, row] = F[c.DONE, row]
    F[c.SINCE, row] = now + price(rules.amount[s.S_RESIZE], need, rules.amount)
    F[c.RATE, row] = rate_of(t, row)
    set_due(F, row)
    open_interval(I, t.D, row, now, log)
    turns.work[W_ACT, k] = RESIZE


@kernel
def _begin_there(t: Matrices, turns: GangTurns, k: int, change: int, used: int, moment: CommitMoment, found: Spots) -> None:
    """It starts at the place that was found; one that leaves another for it pays for that."""
    F, I, row, option, work = t.F, t.I, turns.ask[A_ROW, k], turns.ask[A_OPTION, k], turns.work
    now, log, out, amount = moment.times[0], moment.log, moment.out, moment.rules.amount
    kind, need = t.OI[c.O_TYPE, option], t.OI[c.O_GPUS, option]
    if change == LEAVES:
        resized = work[W_HELD, k] != need
        close_interval(I, row, now, _RESIZED if resized else _MOVED, log)
        rest(F, I, row, now)
        out[1] += 1
        work[W_ACT, k] = RESIZE if resized and t.OI[c.O_TYPE, work[W_OPTION, k]] == kind else MOVE
    else:
        work[W_ACT, k] = START if F[c.FIRST_START, row] != F[c.FIRST_START, row] else RESUME
    take(t, row, option, found.nodes, found.counts, used)
    start(t, row, now, moment.rules, log)
    out[0] += 1
    if change == LEAVES:
        F[c.SINCE, row] = now + price(amount[s.S_RESIZE] if work[W_ACT, k] == RESIZE else amount[s.S_MOVE], need, amount)
        set_due(F, row)
