"""What a plan means for gangs that hold something, and what each gives up before the turns come. Compiled."""

from __future__ import annotations

from gantline.core.arrays import Ints
from gantline.core.columns import ASKED_TOGETHER, Job, Option
from gantline.core.jit import kernel
from gantline.core.phases import PENDING
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine.commit.resize import cut_chain, restyle
from gantline.engine.commit.turns import Ask, Course, End, GangTurns, Paid, Want, Work
from gantline.engine.gang import give_back, settle
from gantline.engine.shared_devices import (
    GANG_FIRST,
    SEAT_KEPT,
    SEAT_NEXT,
    TOUCHED,
    Partners,
    SharedDevices,
    keeps_seats,
    leave_devices,
    list_devices,
    restyle_seated,
    settle_down,
)

_RESOURCES = int(Reason.RESOURCES)


@kernel
def decide_changes(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, now: float, min_run: float) -> None:
    """What the plan means for each row that holds something; `turns` keeps what that is. Nothing is touched yet."""
    ask, work = turns.ask, turns.work
    at = 0
    for k in range(turns.size[0]):
        row = ask[Ask.ROW, k]
        work[Work.CHANGE, k], work[Work.ACT, k], work[Work.END, k], work[Work.KEPT, k] = Course.WAITS, Paid.NOTHING, End.UNTOUCHED, 0
        if t.I[Job.PHASE, row] == PENDING:
            continue
        work[Work.CHANGE, k], work[Work.HAD, k] = Course.BOUND, at
        if ask[Ask.OPTION, k] < 0:
            continue
        work[Work.OPTION, k], work[Work.SHARED, k] = t.I[Job.OPTION, row], int(seats.gang[GANG_FIRST, row] >= 0)
        if t.I[Job.NODE, row] >= 0:  # a gang without devices
            company.had[at] = -1 - t.I[Job.NODE, row]
            at += 1
        else:
            work[Work.HELD, k] = list_devices(t, seats, row, company.had, at)
            at += work[Work.HELD, k]
        seat = seats.gang[GANG_FIRST, row]
        while seat >= 0:
            seats.seat[SEAT_KEPT, seat] = 0
            seat = seats.seat[SEAT_NEXT, seat]
    for n in range(turns.size[0]):
        k = ask[Ask.WIDEST, n]
        if ask[Ask.WANTS, k] == Want.JOINS and work[Work.CHANGE, k] == Course.BOUND and ask[Ask.OPTION, k] >= 0:
            _settle_in(t, seats, company, turns, k)
    for k in range(turns.size[0]):
        if work[Work.CHANGE, k] != Course.WAITS and ask[Ask.OPTION, k] >= 0:
            _decide_change(t, seats, company, turns, k, now, min_run)


@kernel
def _settle_in(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int) -> None:
    """A member of a group may stay where it is, if the group has no other devices yet."""
    ask, work, had = turns.ask, turns.work, company.had
    row, option, old = ask[Ask.ROW, k], ask[Ask.OPTION, k], work[Work.OPTION, k]
    if t.OI[Option.TYPE, old] != t.OI[Option.TYPE, option] or t.OI[Option.GPUS, option] != work[Work.HELD, k]:
        return
    first = turns.pool[ask[Ask.GROUP, k]]
    if first >= 0:
        for mine in range(work[Work.HELD, k]):
            inside = False
            for theirs in range(work[Work.HELD, first]):
                inside = inside or had[work[Work.HAD, k] + mine] == had[work[Work.HAD, first] + theirs]
            if not inside:
                return
    if keeps_seats(t, seats, company, row, True, had, work[Work.HAD, k], work[Work.HELD, k]):
        work[Work.CHANGE, k] = Course.STAYS
        if first < 0:
            turns.pool[ask[Ask.GROUP, k]] = k


@kernel
def _decide_change(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int, now: float, min_run: float) -> None:
    ask, work, had = turns.ask, turns.work, company.had
    row, option, wants, first = ask[Ask.ROW, k], ask[Ask.OPTION, k], ask[Ask.WANTS, k], work[Work.HAD, k]
    shared, change, kept = work[Work.SHARED, k] == 1, Course.LEAVES, 0
    if wants == Want.PLACED:
        change = _change_of_placed(t.I, t.OI, row, option)
    elif wants == Want.JOINS:
        change = Course.STAYS if work[Work.CHANGE, k] == Course.STAYS else Course.LEAVES
    elif wants == Want.OWN_PLACE:
        old, spread = work[Work.OPTION, k], t.OI[Option.NODES, option]
        alike = t.OI[Option.TYPE, old] == t.OI[Option.TYPE, option] and t.OI[Option.GPUS, option] == work[Work.HELD, k]
        if alike and (spread == 0 or spread == t.I[Job.SPREAD, row]):
            change, kept = Course.STAYS, work[Work.HELD, k]
    else:
        kept = _common_first(turns, company, k)
        same = kept == work[Work.HELD, k] and kept == ask[Ask.COUNT, k]
        for n in range(kept):
            same = same and had[first + n] == turns.named[ask[Ask.FIRST, k] + n]
        change = Course.STAYS if same else (Course.KEEPS if kept > 0 else Course.LEAVES)
    if shared and wants != Want.JOINS and change != Course.LEAVES:
        if change == Course.KEEPS:
            common = _list_common(turns, company, k)
            if not keeps_seats(t, seats, company, row, wants == Want.SHARES_NAMED, company.gets, ask[Ask.GETS, k], common):
                change = Course.LEAVES
        elif not keeps_seats(t, seats, company, row, wants == Want.SHARES_NAMED, had, first, work[Work.HELD, k]):
            change = Course.LEAVES
    bound = change == Course.LEAVES and now < t.F[Job.LAST_START, row] + min_run
    work[Work.CHANGE, k] = Course.BOUND if bound else change


@kernel
def _change_of_placed(I: Ints, OI: Ints, row: int, option: int) -> int:
    """A gang that the engine places stays if it is of the right type, spread and size."""
    held, spread = I[Job.OPTION, row], OI[Option.NODES, option]
    need = OI[Option.GPUS, option]
    same_kind = OI[Option.TYPE, held] == OI[Option.TYPE, option] and (need == 0) == (I[Job.NODE, row] >= 0)
    if not same_kind or (spread > 0 and spread != I[Job.SPREAD, row]):
        return Course.LEAVES
    if need == I[Job.HELD, row]:
        return Course.STAYS
    return Course.LEAVES if spread > 0 and I[Job.CONSOLIDATE, row] != ASKED_TOGETHER else Course.KEEPS


@kernel
def give_up(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, now: float) -> None:
    """Every row gives up what the plan takes away, so that the order of the plan does not decide which row may use it."""
    for k in range(turns.size[0]):
        if turns.work[Work.CHANGE, k] == Course.WAITS or turns.work[Work.CHANGE, k] == Course.BOUND:
            continue
        if turns.ask[Ask.WANTS, k] == Want.PLACED:
            _part_with_places(t, turns, k, now)
        else:
            _part_with(t, seats, company, turns, k, now)


@kernel
def _part_with_places(t: Matrices, turns: GangTurns, k: int, now: float) -> None:
    row, option, change = turns.ask[Ask.ROW, k], turns.ask[Ask.OPTION, k], turns.work[Work.CHANGE, k]
    if change == Course.STAYS:
        if t.I[Job.OPTION, row] != option:
            restyle(t, row, option, True)
        return
    settle(t.F, t.I, row, now)  # while it still counts as holding everything
    if change == Course.LEAVES:
        give_back(t, row)
    elif t.OI[Option.GPUS, option] < t.I[Job.HELD, row]:
        cut_chain(t, row, t.OI[Option.GPUS, option])


@kernel
def _part_with(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int, now: float) -> None:
    ask, work, had = turns.ask, turns.work, company.had
    row, option, wants, first = ask[Ask.ROW, k], ask[Ask.OPTION, k], ask[Ask.WANTS, k], work[Work.HAD, k]
    shared, change = work[Work.SHARED, k] == 1, work[Work.CHANGE, k]
    if change == Course.STAYS:
        if wants <= Want.SHARES_NAMED and not shared:
            leave_devices(t, seats, company, row)
            settle_down(t, seats, company, row, work[Work.OPTION, k], had, first, work[Work.HELD, k], True)
        if not restyle_seated(t, seats, company, row, option, True, ask[Ask.GETS, k]) and seats.gang[GANG_FIRST, row] >= 0:
            t.I[Job.REASON, row] = _RESOURCES
        return
    settle(t.F, t.I, row, now)  # while it still counts as holding everything
    leave_devices(t, seats, company, row)
    company.row[TOUCHED, row] = 1
    if change == Course.KEEPS:
        work[Work.KEPT, k] = _list_common(turns, company, k)
        settle_down(t, seats, company, row, work[Work.OPTION, k], company.gets, ask[Ask.GETS, k], work[Work.KEPT, k], shared)


@kernel
def _common_first(turns: GangTurns, company: Partners, k: int) -> int:
    """How many of its devices a gang is to keep."""
    ask, work, count = turns.ask, turns.work, 0
    for n in range(work[Work.HELD, k]):
        for m in range(ask[Ask.COUNT, k]):
            count += int(company.had[work[Work.HAD, k] + n] == turns.named[ask[Ask.FIRST, k] + m])
    return count


@kernel
def _list_common(turns: GangTurns, company: Partners, k: int) -> int:
    """Write down those, in the order in which it has them."""
    ask, work, count = turns.ask, turns.work, 0
    for n in range(work[Work.HELD, k]):
        for m in range(ask[Ask.COUNT, k]):
            if company.had[work[Work.HAD, k] + n] == turns.named[ask[Ask.FIRST, k] + m]:
                company.gets[ask[Ask.GETS, k] + count] = company.had[work[Work.HAD, k] + n]
                count += 1
    return count
