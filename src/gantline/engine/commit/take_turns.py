"""The turns of a commit, in the order of the plan: a gang starts, goes on with more or fewer devices, starts again elsewhere, or gets back
what it had. Compiled.

Members of a group have one size and their devices are open, so a group shares the devices of its first member; what else there is goes
one by one (`one_by_one`).
"""

from __future__ import annotations

from gantline.core.arrays import Ints
from gantline.core.columns import FREE, Device, Job, Node, Option
from gantline.core.jit import kernel
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine.commit.resize import Spots, extension, grow_chain, has_side, nodes_of, restore_gang, restyle
from gantline.engine.commit.turns import Ask, CommitMoment, Course, End, GangTurns, Paid, Want, Work
from gantline.engine.gang import close_interval, find_place, give_back, halt, open_interval, price, rate_of, rest, set_due, start, take
from gantline.engine.log import Interval, LogColumns, LogSize
from gantline.engine.settings import Amount, Switch
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
from gantline.policies.placement.rules import Together

_SENSITIVE, _ALWAYS = int(Together.SENSITIVE), int(Together.ALWAYS)
_MOVED, _RESIZED, _RESOURCES, _FRAGMENTED = (int(r) for r in (Reason.MOVED, Reason.RESIZED, Reason.RESOURCES, Reason.FRAGMENTED))
_INFEASIBLE, _TOGETHER = int(Reason.INFEASIBLE), int(Reason.TOGETHER)


@kernel
def take_turns(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, moment: CommitMoment) -> None:
    """One gang after the other."""
    ask, work = turns.ask, turns.work
    for k in range(turns.size[0]):
        if work[Work.CHANGE, k] == Course.BOUND or work[Work.END, k] != End.UNTOUCHED:
            continue
        if ask[Ask.WANTS, k] == Want.PLACED:
            _turn_of_placed(t, company, turns, k, moment)
        elif ask[Ask.WHOLE, k] == 1:
            _turn_together(t, seats, company, turns, ask[Ask.LEAD, k], moment)
        elif work[Work.CHANGE, k] == Course.STAYS:
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
    group, failed, reason = ask[Ask.GROUP, leader], -1, 0
    pool = turns.pool[group]
    k = leader
    while k >= 0 and failed < 0:
        if work[Work.CHANGE, k] != Course.STAYS:
            reason = _TOGETHER if work[Work.CHANGE, k] == Course.BOUND else _find(t, seats, company, turns, k, moment)
            if reason != 0:
                failed = k
            else:
                _take_found(t, seats, company, turns, k)  # so that the next one finds another
        k = ask[Ask.MATE, k]
    k = leader
    while k >= 0 and k != failed:
        if work[Work.CHANGE, k] != Course.STAYS:
            leave_devices(t, seats, company, ask[Ask.ROW, k])
        k = ask[Ask.MATE, k]
    if failed >= 0:
        turns.pool[group] = pool
    for begins in range(2):
        k = leader
        while k >= 0:
            change = work[Work.CHANGE, k]
            if begins == 0 and change == Course.STAYS:
                _adjust(t, seats, company, turns, k)
            elif begins == 1 and change != Course.STAYS and change != Course.BOUND and failed < 0:
                _begin(t, seats, company, turns, k, moment)
            elif begins == 1 and change != Course.STAYS and change != Course.BOUND:
                _refuse(t, seats, company, turns, k, reason if k == failed else _TOGETHER, moment)
                if work[Work.END, k] == End.UNTOUCHED:
                    work[Work.END, k] = End.WAITED
            k = ask[Ask.MATE, k]


@kernel
def _adjust(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int) -> None:
    """Change in place what needs no restart: CPUs, and whether it shares."""
    ask, work = turns.ask, turns.work
    row = ask[Ask.ROW, k]
    shared = seats.gang[GANG_FIRST, row] >= 0
    whole = restyle_seated(t, seats, company, row, ask[Ask.OPTION, k], False, ask[Ask.GETS, k])
    if not whole:
        t.I[Job.REASON, row] = _RESOURCES
    if ask[Ask.WANTS, k] > Want.SHARES_NAMED and seats.gang[GANG_FIRST, row] >= 0:
        own_seats(t, seats, company, row, ask[Ask.GETS, k])
    touch_beside(seats, company, row)
    if whole or shared:
        work[Work.END, k] = End.GRANTED if whole else End.IN_PART


@kernel
def _find(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int, moment: CommitMoment) -> int:
    """Write down the devices that a row gets, which are free; or why there are none (0: there are)."""
    ask, work, gets = turns.ask, turns.work, company.gets
    row, option, wants, at = ask[Ask.ROW, k], ask[Ask.OPTION, k], ask[Ask.WANTS, k], ask[Ask.GETS, k]
    if option < 0:
        return _INFEASIBLE
    need = t.OI[Option.GPUS, option]
    pool = turns.pool[ask[Ask.GROUP, k]] if wants == Want.JOINS else -1
    if wants == Want.SHARES_NAMED or wants == Want.OWNS_NAMED:
        for n in range(need):
            gets[at + n] = turns.named[ask[Ask.FIRST, k] + n]
    elif pool >= 0:
        stays = work[Work.CHANGE, pool] == Course.STAYS
        for n in range(need):
            gets[at + n] = company.had[work[Work.HAD, pool] + n] if stays else gets[ask[Ask.GETS, pool] + n]
    elif not _choose(t, row, option, gets, at, moment):
        return _FRAGMENTED if _free_of(t, t.OI[Option.TYPE, option]) >= need else _RESOURCES
    if work[Work.KEPT, k] > 0:
        leave_devices(t, seats, company, row)
        work[Work.KEPT, k] = 0
    if not is_free(t, seats, company, row, option, gets, at, need, wants <= Want.SHARES_NAMED, False):
        return _RESOURCES
    return 0


@kernel
def _choose(t: Matrices, row: int, option: int, gets: Ints, at: int, moment: CommitMoment) -> bool:
    """A place by the rule: the first free devices of each node."""
    nodes, counts = moment.scratch[0], moment.scratch[1]
    used = find_place(t, moment.rules, row, option, False, nodes, counts)
    for n in range(used):
        device, left = t.NI[Node.FIRST, nodes[n]], counts[n]
        while left > 0:
            if t.D[Device.HOLDER, device] == FREE:
                gets[at] = device
                at += 1
                left -= 1
            device += 1
    return used > 0


@kernel
def _take_found(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int) -> None:
    ask = turns.ask
    wants, option, group = ask[Ask.WANTS, k], ask[Ask.OPTION, k], ask[Ask.GROUP, k]
    settle_down(
        t, seats, company, ask[Ask.ROW, k], option, company.gets, ask[Ask.GETS, k], t.OI[Option.GPUS, option], wants <= Want.SHARES_NAMED
    )
    if wants == Want.JOINS and turns.pool[group] < 0:
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
    row, option, change = ask[Ask.ROW, k], ask[Ask.OPTION, k], work[Work.CHANGE, k]
    need = t.OI[Option.GPUS, option]
    if change == Course.WAITS:
        work[Work.ACT, k] = Paid.START if F[Job.FIRST_START, row] != F[Job.FIRST_START, row] else Paid.RESUME
    else:
        alike = t.OI[Option.TYPE, work[Work.OPTION, k]] == t.OI[Option.TYPE, option]
        work[Work.ACT, k] = Paid.RESIZE if work[Work.HELD, k] != need and alike else Paid.MOVE
        close_interval(I, row, now, _MOVED if work[Work.HELD, k] == need else _RESIZED, log)
    if change == Course.LEAVES:
        rest(F, I, row, now)
        out[1] += 1
    _take_found(t, seats, company, turns, k)
    if change == Course.KEEPS:
        I[Job.EPOCH, row] += 1
        F[Job.SAFE, row] = F[Job.DONE, row]
        open_interval(I, t.D, row, now, log)
    else:
        start(t, row, now, moment.rules, log)
        out[0] += 1
    if seats.gang[GANG_FIRST, row] >= 0:
        _log_seats(I, row, company.gets, ask[Ask.GETS, k], need, log)
    if change != Course.WAITS:
        F[Job.SINCE, row] = now + price(amount[Amount.RESIZE] if work[Work.ACT, k] == Paid.RESIZE else amount[Amount.MOVE], need, amount)
        set_due(F, row)
    elif ask[Ask.RETURNS, k] == 1 and work[Work.ACT, k] == Paid.RESUME:
        work[Work.ACT, k] = Paid.SWITCH
        F[Job.SINCE, row] = now + price(moment.times[1], need, amount)
        set_due(F, row)
    work[Work.END, k] = End.GRANTED


@kernel
def _log_seats(I: Ints, row: int, devices: Ints, first: int, count: int, log: LogColumns) -> None:
    """Shared devices are in no chain that the log could follow."""
    at, offset = I[Job.INTERVAL, row], log.written[LogSize.DEVICES]
    for n in range(count):
        log.device[offset + n] = devices[first + n]
    log.written[LogSize.DEVICES] = offset + count
    log.entry[Interval.COUNT, at] = count


@kernel
def _refuse(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int, reason: int, moment: CommitMoment) -> None:
    """The row gets nothing of this, and goes back to what it had, if that is still free."""
    ask, work = turns.ask, turns.work
    row, change = ask[Ask.ROW, k], work[Work.CHANGE, k]
    t.I[Job.REASON, row] = reason
    if change != Course.KEEPS and change != Course.LEAVES:
        return
    if work[Work.KEPT, k] > 0:
        leave_devices(t, seats, company, row)
        work[Work.KEPT, k] = 0
    old, first, count, shared = work[Work.OPTION, k], work[Work.HAD, k], work[Work.HELD, k], work[Work.SHARED, k] == 1
    if is_free(t, seats, company, row, old, company.had, first, count, shared, True):
        settle_down(t, seats, company, row, old, company.had, first, count, shared)
        work[Work.END, k] = End.RESTORED
        return
    halt(t.F, t.I, row, moment.times[0], reason, moment.log)
    moment.out[1] += 1
    work[Work.END, k] = End.HALTED


# --- gangs that the rule places ----------------------------------------------------------------------------------------
@kernel
def _turn_of_placed(t: Matrices, company: Partners, turns: GangTurns, k: int, moment: CommitMoment) -> None:
    """A gang of its own: it starts, goes on where it is with more or fewer devices, or starts again elsewhere."""
    I, scratch, work = t.I, moment.scratch, turns.work
    found = Spots(scratch[0], scratch[1], scratch[2], scratch[3])
    row, option, change = turns.ask[Ask.ROW, k], turns.ask[Ask.OPTION, k], work[Work.CHANGE, k]
    if option < 0:
        I[Job.REASON, row] = _INFEASIBLE
        return
    if change == Course.STAYS:
        if I[Job.OPTION, row] != option and not restyle(t, row, option, False):
            I[Job.REASON, row] = _RESOURCES
        return
    need, free = t.OI[Option.GPUS, option], _free_of(t, t.OI[Option.TYPE, option])
    used, lacks = 0, need == 0
    if change == Course.KEEPS:
        change, used, lacks = _in_place_or_elsewhere(t, company, turns, k, free, moment, found)
        if change == Course.KEEPS and used >= 0:
            _go_on(t, turns, k, used, moment, found)
            return
    elif need <= free:
        used = find_place(t, moment.rules, row, option, False, found.nodes, found.counts)
    if used > 0 and change != Course.KEEPS:
        _begin_there(t, turns, k, change, used, moment, found)
        return
    reason = _FRAGMENTED if free >= need and not lacks else _RESOURCES
    I[Job.REASON, row] = reason
    if change != Course.WAITS and not restore_gang(t, row, work[Work.OPTION, k], company.had, work[Work.HAD, k], work[Work.HELD, k]):
        give_back(t, row)
        halt(t.F, I, row, moment.times[0], reason, moment.log)
        moment.out[1] += 1
        work[Work.END, k] = End.HALTED


@kernel
def _free_of(t: Matrices, kind: int) -> int:
    free = 0
    for node in range(t.NI.shape[1]):
        free += t.NI[Node.FREE, node] if t.NI[Node.TYPE, node] == kind else 0
    return int(free)


@kernel
def _in_place_or_elsewhere(
    t: Matrices, company: Partners, turns: GangTurns, k: int, free: int, moment: CommitMoment, found: Spots
) -> tuple[int, int, bool]:
    """A gang that may keep some of its devices: does it go on there, or as a whole elsewhere?

    What it does (KEEPS, LEAVES), how many nodes more it gets (-1: it cannot go on), and whether it only lacks CPUs or memory.
    """
    row, option, work, rules = turns.ask[Ask.ROW, k], turns.ask[Ask.OPTION, k], turns.work, moment.rules
    need = t.OI[Option.GPUS, option]
    kept, used = min(need, work[Work.HELD, k]), 0
    if need > kept and need - kept <= free:
        used = extension(t, rules, row, option, kept, found)
    fits = (used > 0 or need == kept) and has_side(t, row, option, found, used)
    lacks = not fits and (used > 0 or need == kept)  # devices, but not the CPUs or the memory
    likes = rules.switch[Switch.TOGETHER]
    together = likes == _ALWAYS or (likes == _SENSITIVE and t.I[Job.CONSOLIDATE, row] > 0)
    may_move = moment.times[0] >= t.F[Job.LAST_START, row] + rules.amount[Amount.MIN_RUN]
    if need > kept and may_move and (not fits or together):
        span = nodes_of(t.I, t.D, row, found.nodes, used) if fits else 1 << 60
        if span > 1:  # it would be spread or stay as it is: is there a better place for the whole gang?
            old = t.I[Job.OPTION, row]
            give_back(t, row)
            elsewhere = find_place(t, rules, row, option, False, found.nodes, found.counts)
            if elsewhere > 0 and elsewhere < span and need - kept <= free:
                return Course.LEAVES, elsewhere, lacks
            restore_gang(t, row, old, company.had, work[Work.HAD, k], work[Work.HELD, k])
            if fits:
                used = extension(t, rules, row, option, kept, found)
    return Course.KEEPS, used if fits else -1, lacks


@kernel
def _go_on(t: Matrices, turns: GangTurns, k: int, used: int, moment: CommitMoment, found: Spots) -> None:
    """It goes on with more or fewer devices, after a pause."""
    F, I, row, option = t.F, t.I, turns.ask[Ask.ROW, k], turns.ask[Ask.OPTION, k]
    now, rules, log, need = moment.times[0], moment.rules, moment.log, t.OI[Option.GPUS, option]
    grow_chain(t, row, option, min(need, turns.work[Work.HELD, k]), found, used)
    I[Job.SPREAD, row] = nodes_of(I, t.D, row, found.nodes, 0)
    close_interval(I, row, now, _RESIZED, log)
    I[Job.EPOCH, row] += 1
    I[Job.REASON, row] = 0
    F[Job.SAFE, row] = F[Job.DONE, row]
    F[Job.SINCE, row] = now + price(rules.amount[Amount.RESIZE], need, rules.amount)
    F[Job.RATE, row] = rate_of(t, row)
    set_due(F, row)
    open_interval(I, t.D, row, now, log)
    turns.work[Work.ACT, k] = Paid.RESIZE


@kernel
def _begin_there(t: Matrices, turns: GangTurns, k: int, change: int, used: int, moment: CommitMoment, found: Spots) -> None:
    """It starts at the place that was found; one that leaves another for it pays for that."""
    F, I, row, option, work = t.F, t.I, turns.ask[Ask.ROW, k], turns.ask[Ask.OPTION, k], turns.work
    now, log, out, amount = moment.times[0], moment.log, moment.out, moment.rules.amount
    kind, need = t.OI[Option.TYPE, option], t.OI[Option.GPUS, option]
    if change == Course.LEAVES:
        resized = work[Work.HELD, k] != need
        close_interval(I, row, now, _RESIZED if resized else _MOVED, log)
        rest(F, I, row, now)
        out[1] += 1
        work[Work.ACT, k] = Paid.RESIZE if resized and t.OI[Option.TYPE, work[Work.OPTION, k]] == kind else Paid.MOVE
    else:
        work[Work.ACT, k] = Paid.START if F[Job.FIRST_START, row] != F[Job.FIRST_START, row] else Paid.RESUME
    take(t, row, option, found.nodes, found.counts, used)
    start(t, row, now, moment.rules, log)
    out[0] += 1
    if change == Course.LEAVES:
        F[Job.SINCE, row] = now + price(amount[Amount.RESIZE] if work[Work.ACT, k] == Paid.RESIZE else amount[Amount.MOVE], need, amount)
        set_due(F, row)
