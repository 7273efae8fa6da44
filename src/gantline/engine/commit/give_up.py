"""What a plan means for gangs that hold something, and what each gives up before the turns come. Compiled."""

from __future__ import annotations

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.jit import kernel
from gantline.core.phases import PENDING
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine.commit.resize import cut_chain, restyle
from gantline.engine.commit.turns import (
    A_COUNT,
    A_FIRST,
    A_GETS,
    A_GROUP,
    A_OPTION,
    A_ROW,
    A_WANTS,
    A_WIDEST,
    BOUND,
    JOINS,
    KEEPS,
    LEAVES,
    NOTHING,
    OWN_PLACE,
    PLACED,
    SHARES_NAMED,
    STAYS,
    UNTOUCHED,
    W_ACT,
    W_CHANGE,
    W_END,
    W_HAD,
    W_HELD,
    W_KEPT,
    W_OPTION,
    W_SHARED,
    WAITS,
    GangTurns,
)
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
        row = ask[A_ROW, k]
        work[W_CHANGE, k], work[W_ACT, k], work[W_END, k], work[W_KEPT, k] = WAITS, NOTHING, UNTOUCHED, 0
        if t.I[c.PHASE, row] == PENDING:
            continue
        work[W_CHANGE, k], work[W_HAD, k] = BOUND, at
        if ask[A_OPTION, k] < 0:
            continue
        work[W_OPTION, k], work[W_SHARED, k] = t.I[c.OPTION, row], int(seats.gang[GANG_FIRST, row] >= 0)
        if t.I[c.NODE, row] >= 0:  # a gang without devices
            company.had[at] = -1 - t.I[c.NODE, row]
            at += 1
        else:
            work[W_HELD, k] = list_devices(t, seats, row, company.had, at)
            at += work[W_HELD, k]
        seat = seats.gang[GANG_FIRST, row]
        while seat >= 0:
            seats.seat[SEAT_KEPT, seat] = 0
            seat = seats.seat[SEAT_NEXT, seat]
    for n in range(turns.size[0]):
        k = ask[A_WIDEST, n]
        if ask[A_WANTS, k] == JOINS and work[W_CHANGE, k] == BOUND and ask[A_OPTION, k] >= 0:
            _settle_in(t, seats, company, turns, k)
    for k in range(turns.size[0]):
        if work[W_CHANGE, k] != WAITS and ask[A_OPTION, k] >= 0:
            _decide_change(t, seats, company, turns, k, now, min_run)


@kernel
def _settle_in(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int) -> None:
    """A member of a group may stay where it is, if the group has no other devices yet."""
    ask, work, had = turns.ask, turns.work, company.had
    row, option, old = ask[A_ROW, k], ask[A_OPTION, k], work[W_OPTION, k]
    if t.OI[c.O_TYPE, old] != t.OI[c.O_TYPE, option] or t.OI[c.O_GPUS, option] != work[W_HELD, k]:
        return
    first = turns.pool[ask[A_GROUP, k]]
    if first >= 0:
        for mine in range(work[W_HELD, k]):
            inside = False
            for theirs in range(work[W_HELD, first]):
                inside = inside or had[work[W_HAD, k] + mine] == had[work[W_HAD, first] + theirs]
            if not inside:
                return
    if keeps_seats(t, seats, company, row, True, had, work[W_HAD, k], work[W_HELD, k]):
        work[W_CHANGE, k] = STAYS
        if first < 0:
            turns.pool[ask[A_GROUP, k]] = k


@kernel
def _decide_change(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int, now: float, min_run: float) -> None:
    ask, work, had = turns.ask, turns.work, company.had
    row, option, wants, first = ask[A_ROW, k], ask[A_OPTION, k], ask[A_WANTS, k], work[W_HAD, k]
    shared, change, kept = work[W_SHARED, k] == 1, LEAVES, 0
    if wants == PLACED:
        change = _change_of_placed(t.I, t.OI, row, option)
    elif wants == JOINS:
        change = STAYS if work[W_CHANGE, k] == STAYS else LEAVES
    elif wants == OWN_PLACE:
        old, spread = work[W_OPTION, k], t.OI[c.O_NODES, option]
        alike = t.OI[c.O_TYPE, old] == t.OI[c.O_TYPE, option] and t.OI[c.O_GPUS, option] == work[W_HELD, k]
        if alike and (spread == 0 or spread == t.I[c.SPREAD, row]):
            change, kept = STAYS, work[W_HELD, k]
    else:
        kept = _common_first(turns, company, k)
        same = kept == work[W_HELD, k] and kept == ask[A_COUNT, k]
        for n in range(kept):
            same = same and had[first + n] == turns.named[ask[A_FIRST, k] + n]
        change = STAYS if same else (KEEPS if kept > 0 else LEAVES)
    if shared and wants != JOINS and change != LEAVES:
        if change == KEEPS:
            common = _list_common(turns, company, k)
            if not keeps_seats(t, seats, company, row, wants == SHARES_NAMED, company.gets, ask[A_GETS, k], common):
                change = LEAVES
        elif not keeps_seats(t, seats, company, row, wants == SHARES_NAMED, had, first, work[W_HELD, k]):
            change = LEAVES
    bound = change == LEAVES and now < t.F[c.LAST_START, row] + min_run
    work[W_CHANGE, k] = BOUND if bound else change


@kernel
def _change_of_placed(I: Ints, OI: Ints, row: int, option: int) -> int:
    """A gang that the engine places stays if it is of the right type, spread and size."""
    held, spread = I[c.OPTION, row], OI[c.O_NODES, option]
    need = OI[c.O_GPUS, option]
    same_kind = OI[c.O_TYPE, held] == OI[c.O_TYPE, option] and (need == 0) == (I[c.NODE, row] >= 0)
    if not same_kind or (spread > 0 and spread != I[c.SPREAD, row]):
        return LEAVES
    if need == I[c.HELD, row]:
        return STAYS
    return LEAVES if spread > 0 and I[c.CONSOLIDATE, row] != c.ASKED_TOGETHER else KEEPS


@kernel
def give_up(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, now: float) -> None:
    """Every row gives up what the plan takes away, so that the order of the plan does not decide which row may use it."""
    for k in range(turns.size[0]):
        if turns.work[W_CHANGE, k] == WAITS or turns.work[W_CHANGE, k] == BOUND:
            continue
        if turns.ask[A_WANTS, k] == PLACED:
            _part_with_places(t, turns, k, now)
        else:
            _part_with(t, seats, company, turns, k, now)


@kernel
def _part_with_places(t: Matrices, turns: GangTurns, k: int, now: float) -> None:
    row, option, change = turns.ask[A_ROW, k], turns.ask[A_OPTION, k], turns.work[W_CHANGE, k]
    if change == STAYS:
        if t.I[c.OPTION, row] != option:
            restyle(t, row, option, True)
        return
    settle(t.F, t.I, row, now)  # while it still counts as holding everything
    if change == LEAVES:
        give_back(t, row)
    elif t.OI[c.O_GPUS, option] < t.I[c.HELD, row]:
        cut_chain(t, row, t.OI[c.O_GPUS, option])


@kernel
def _part_with(t: Matrices, seats: SharedDevices, company: Partners, turns: GangTurns, k: int, now: float) -> None:
    ask, work, had = turns.ask, turns.work, company.had
    row, option, wants, first = ask[A_ROW, k], ask[A_OPTION, k], ask[A_WANTS, k], work[W_HAD, k]
    shared, change = work[W_SHARED, k] == 1, work[W_CHANGE, k]
    if change == STAYS:
        if wants <= SHARES_NAMED and not shared:
            leave_devices(t, seats, company, row)
            settle_down(t, seats, company, row, work[W_OPTION, k], had, first, work[W_HELD, k], True)
        if not restyle_seated(t, seats, company, row, option, True, ask[A_GETS, k]) and seats.gang[GANG_FIRST, row] >= 0:
            t.I[c.REASON, row] = _RESOURCES
        return
    settle(t.F, t.I, row, now)  # while it still counts as holding everything
    leave_devices(t, seats, company, row)
    company.row[TOUCHED, row] = 1
    if change == KEEPS:
        work[W_KEPT, k] = _list_common(turns, company, k)
        settle_down(t, seats, company, row, work[W_OPTION, k], company.gets, ask[A_GETS, k], work[W_KEPT, k], shared)


@kernel
def _common_first(turns: GangTurns, company: Partners, k: int) -> int:
    """How many of its devices a gang is to keep."""
    ask, work, count = turns.ask, turns.work, 0
    for n in range(work[W_HELD, k]):
        for m in range(ask[A_COUNT, k]):
            count += int(company.had[work[W_HAD, k] + n] == turns.named[ask[A_FIRST, k] + m])
    return count


@kernel
def _list_common(turns: GangTurns, company: Partners, k: int) -> int:
    """Write down those, in the order in which it has them."""
    ask, work, count = turns.ask, turns.work, 0
    for n in range(work[W_HELD, k]):
        for m in range(ask[A_COUNT, k]):
            if company.had[work[W_HAD, k] + n] == turns.named[ask[A_FIRST, k] + m]:
                company.gets[ask[A_GETS, k] + count] = company.had[work[W_HAD, k] + n]
                count += 1
    return count
