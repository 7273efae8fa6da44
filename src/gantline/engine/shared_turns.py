"""Commits gangs that share devices, or that name their own: after `shared_parting` they take their turns. Compiled.

The same steps as in `commit_general`, which does the rest: here members of a group have one size, every node is up, and nothing is
cordoned. So a group shares the devices of its first member.
"""

from __future__ import annotations

from typing import Final

from gantline.core.arrays import Ints
from gantline.core.columns import FREE, Device, Job, Node, Option
from gantline.core.jit import kernel
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine.find_place import find_place
from gantline.engine.gang import close_interval, halt, open_interval, price, rest, set_due, start
from gantline.engine.gang_turns import Change, Paid
from gantline.engine.log import Interval, LogColumns, LogSize
from gantline.engine.seats import GANG_FIRST, SharedSeats
from gantline.engine.settings import Amount
from gantline.engine.shared_ask import Ask, CommitMoment, End, SharedTurns, Want, Work
from gantline.engine.shared_gang import (
    MayShare,
    is_free,
    leave_devices,
    own_seats,
    restyle_seated,
    settle_down,
    touch_beside,
)

SWITCH: Final = 4  # what it pays for, as in performance.model.Act
_MOVED, _RESIZED, _RESOURCES, _FRAGMENTED = (int(r) for r in (Reason.MOVED, Reason.RESIZED, Reason.RESOURCES, Reason.FRAGMENTED))
_INFEASIBLE, _TOGETHER = int(Reason.INFEASIBLE), int(Reason.TOGETHER)


@kernel
def take_shared_turns(
    t: Matrices,
    seats: SharedSeats,
    company: MayShare,
    turns: SharedTurns,
    begin: int,
    end: int,
    moment: CommitMoment,
) -> None:
    """The turns of those in [begin, end)."""
    ask, work = turns.ask, turns.work
    for k in range(begin, end):
        if work[Work.CHANGE, k] == Change.BOUND or work[Work.END, k] != End.UNTOUCHED:
            continue
        if ask[Ask.WHOLE, k] == 1:
            _turn_together(t, seats, company, turns, ask[Ask.LEAD, k], moment)
        elif work[Work.CHANGE, k] == Change.STAYS:
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
    seats: SharedSeats,
    company: MayShare,
    turns: SharedTurns,
    leader: int,
    moment: CommitMoment,
) -> None:
    """Every member that is not in place yet gets one, or none of them does."""
    ask, work = turns.ask, turns.work
    group, failed, reason = ask[Ask.GROUP, leader], -1, 0
    pool = turns.pool[group]
    k = leader
    while k >= 0 and failed < 0:
        if work[Work.CHANGE, k] != Change.STAYS:
            reason = _TOGETHER if work[Work.CHANGE, k] == Change.BOUND else _find(t, seats, company, turns, k, moment)
            if reason != 0:
                failed = k
            else:
                _take_found(t, seats, company, turns, k)  # so that the next one finds another
        k = ask[Ask.MATE, k]
    k = leader
    while k >= 0 and k != failed:
        if work[Work.CHANGE, k] != Change.STAYS:
            leave_devices(t, seats, company, ask[Ask.ROW, k])
        k = ask[Ask.MATE, k]
    if failed >= 0:
        turns.pool[group] = pool
    for begins in range(2):
        k = leader
        while k >= 0:
            change = work[Work.CHANGE, k]
            if begins == 0 and change == Change.STAYS:
                _adjust(t, seats, company, turns, k)
            elif begins == 1 and change != Change.STAYS and change != Change.BOUND and failed < 0:
                _begin(t, seats, company, turns, k, moment)
            elif begins == 1 and change != Change.STAYS and change != Change.BOUND:
                _refuse(t, seats, company, turns, k, reason if k == failed else _TOGETHER, moment)
                if work[Work.END, k] == End.UNTOUCHED:
                    work[Work.END, k] = End.WAITED
            k = ask[Ask.MATE, k]


@kernel
def _adjust(t: Matrices, seats: SharedSeats, company: MayShare, turns: SharedTurns, k: int) -> None:
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
def _find(t: Matrices, seats: SharedSeats, company: MayShare, turns: SharedTurns, k: int, moment: CommitMoment) -> int:
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
        stays = work[Work.CHANGE, pool] == Change.STAYS
        for n in range(need):
            gets[at + n] = company.had[work[Work.HAD, pool] + n] if stays else gets[ask[Ask.GETS, pool] + n]
    elif not _choose(t, row, option, gets, at, moment):
        free = 0
        for node in range(t.NI.shape[1]):
            free += t.NI[Node.FREE, node] if t.NI[Node.TYPE, node] == t.OI[Option.TYPE, option] else 0
        return _FRAGMENTED if free >= need else _RESOURCES
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
def _take_found(t: Matrices, seats: SharedSeats, company: MayShare, turns: SharedTurns, k: int) -> None:
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
    seats: SharedSeats,
    company: MayShare,
    turns: SharedTurns,
    k: int,
    moment: CommitMoment,
) -> None:
    """The row takes the devices that were found: it starts, starts again elsewhere, or goes on after a pause."""
    F, I, ask, work, amount = t.F, t.I, turns.ask, turns.work, moment.rules.amount
    now, log, out = moment.times[0], moment.log, moment.out
    row, option, change = ask[Ask.ROW, k], ask[Ask.OPTION, k], work[Work.CHANGE, k]
    need = t.OI[Option.GPUS, option]
    if change == Change.WAITS:
        work[Work.ACT, k] = Paid.START if F[Job.FIRST_START, row] != F[Job.FIRST_START, row] else Paid.RESUME
    else:
        alike = t.OI[Option.TYPE, work[Work.OPTION, k]] == t.OI[Option.TYPE, option]
        work[Work.ACT, k] = Paid.RESIZE if work[Work.HELD, k] != need and alike else Paid.MOVE
        close_interval(I, row, now, _MOVED if work[Work.HELD, k] == need else _RESIZED, log)
    if change == Change.LEAVES:
        rest(F, I, row, now)
        out[1] += 1
    _take_found(t, seats, company, turns, k)
    if change == Change.KEEPS:
        I[Job.EPOCH, row] += 1
        F[Job.SAFE, row] = F[Job.DONE, row]
        open_interval(I, t.D, row, now, log)
    else:
        start(t, row, now, moment.rules, log)
        out[0] += 1
    if seats.gang[GANG_FIRST, row] >= 0:
        _log_seats(I, row, company.gets, ask[Ask.GETS, k], need, log)
    if change != Change.WAITS:
        F[Job.SINCE, row] = now + price(amount[Amount.RESIZE] if work[Work.ACT, k] == Paid.RESIZE else amount[Amount.MOVE], need, amount)
        set_due(F, row)
    elif ask[Ask.RETURNS, k] == 1 and work[Work.ACT, k] == Paid.RESUME:
        work[Work.ACT, k] = SWITCH
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
def _refuse(t: Matrices, seats: SharedSeats, company: MayShare, turns: SharedTurns, k: int, reason: int, moment: CommitMoment) -> None:
    """The row gets nothing of this, and goes back to what it had, if that is still free."""
    ask, work = turns.ask, turns.work
    row, change = ask[Ask.ROW, k], work[Work.CHANGE, k]
    t.I[Job.REASON, row] = reason
    if change != Change.KEEPS and change != Change.LEAVES:
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
