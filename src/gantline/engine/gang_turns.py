"""Commits unshared gangs that the engine places: rows that change give up what the plan takes away, then take their turns. Compiled.

`part_with` comes first for all, so that the order of the plan does not decide which row may use what others leave. `take_turns` then
goes through the plan: a gang starts, goes on with more or fewer devices, starts again elsewhere, or gets back what it had.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import ASKED_TOGETHER, Device, Job, Node, Option
from gantline.core.constants import Constants
from gantline.core.jit import kernel
from gantline.core.phases import PENDING
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine.find_place import find_place
from gantline.engine.gang import close_interval, give_back, halt, open_interval, price, rate_of, rest, set_due, settle, start, take
from gantline.engine.gang_moves import Spots, cut_chain, extension, grow_chain, has_side, nodes_of, restore_gang, restyle
from gantline.engine.log import LogColumns
from gantline.engine.settings import Amount, EngineRules, Switch
from gantline.policies.placement.rule import Together


class Change(Constants):
    """What a gang does in a commit."""

    WAITS: Final = 0  # it holds nothing yet
    STAYS: Final = 1  # keeps its devices
    KEEPS: Final = 2  # keeps some of its devices in place
    LEAVES: Final = 3  # gives up all of them
    BOUND: Final = 4  # would have to leave within its minimum run


class GangWork(Constants):
    """Rows of `GangTurns.work`: what it does; option and devices until now, where these are listed; what it paid
    for."""

    CHANGE, OPTION, HELD, FIRST, ACT = range(5)


class Paid(Constants):
    """What it paid for, as in performance.model.Act; -1: nothing."""

    NOTHING, START, RESUME, RESIZE, MOVE = -1, 0, 1, 2, 3


_SENSITIVE, _ALWAYS = int(Together.SENSITIVE), int(Together.ALWAYS)
_MOVED, _RESIZED, _RESOURCES, _FRAGMENTED = (int(r) for r in (Reason.MOVED, Reason.RESIZED, Reason.RESOURCES, Reason.FRAGMENTED))


class GangTurns(NamedTuple):
    """The gangs of a commit in the order of their turns, the options they shall have, and what is kept of each meanwhile."""

    rows: Ints
    options: Ints
    work: Ints  # (GangWork.CHANGE .. GangWork.ACT, gang)
    listed: Ints  # devices that gangs had, one after the other; -1 - node for a gang without devices


@kernel
def change_of(I: Ints, OI: Ints, row: int, option: int) -> int:
    """What the wanted option means for a gang that holds something: it stays if it is of the right type, spread and size."""
    held, spread = I[Job.OPTION, row], OI[Option.NODES, option]
    need = OI[Option.GPUS, option]
    same_kind = OI[Option.TYPE, held] == OI[Option.TYPE, option] and (need == 0) == (I[Job.NODE, row] >= 0)
    if not same_kind or (spread > 0 and spread != I[Job.SPREAD, row]):
        return Change.LEAVES
    if need == I[Job.HELD, row]:
        return Change.STAYS
    return Change.LEAVES if spread > 0 and I[Job.CONSOLIDATE, row] != ASKED_TOGETHER else Change.KEEPS


@kernel
def part_with(t: Matrices, turns: GangTurns, now: float, min_run: float) -> None:
    """Every row gives up what the plan takes away; `turns` keeps what that was."""
    F, I, work, listed = t.F, t.I, turns.work, turns.listed
    at = 0
    for k in range(turns.rows.shape[0]):
        row, option = turns.rows[k], turns.options[k]
        work[GangWork.CHANGE, k], work[GangWork.ACT, k] = Change.WAITS, Paid.NOTHING
        if I[Job.PHASE, row] == PENDING:
            continue
        change = change_of(I, t.OI, row, option)
        if change == Change.LEAVES and now < F[Job.LAST_START, row] + min_run:
            change = Change.BOUND
        work[GangWork.CHANGE, k], work[GangWork.OPTION, k], work[GangWork.HELD, k], work[GangWork.FIRST, k] = (
            change,
            I[Job.OPTION, row],
            I[Job.HELD, row],
            at,
        )
        if change == Change.STAYS:
            if I[Job.OPTION, row] != option:
                restyle(t, row, option, True)
            continue
        if change == Change.BOUND:
            continue
        settle(F, I, row, now)  # while it still counts as holding everything
        device = I[Job.HEAD, row]
        while device >= 0:
            listed[at] = device
            at += 1
            device = t.D[Device.NEXT, device]
        if I[Job.NODE, row] >= 0:
            listed[at] = -1 - I[Job.NODE, row]
            at += 1
        if change == Change.LEAVES:
            give_back(t, row)
        elif t.OI[Option.GPUS, option] < I[Job.HELD, row]:
            cut_chain(t, row, t.OI[Option.GPUS, option])


@kernel
def take_turns(
    t: Matrices,
    turns: GangTurns,
    begin: int,
    end: int,
    reserved: Floats,
    now: float,
    rules: EngineRules,
    log: LogColumns,
    scratch: Ints,
    out: Ints,
) -> None:
    """One gang after the other. `reserved` is, per type, what shares of the time were promised; out: started, stopped."""
    I, found = t.I, Spots(scratch[0], scratch[1], scratch[2], scratch[3])
    for k in range(begin, end):
        row, option, change = turns.rows[k], turns.options[k], turns.work[GangWork.CHANGE, k]
        if change == Change.BOUND:
            continue
        if change == Change.STAYS:
            if I[Job.OPTION, row] != option and not restyle(t, row, option, False):
                I[Job.REASON, row] = _RESOURCES
            continue
        kind, need = t.OI[Option.TYPE, option], t.OI[Option.GPUS, option]
        free = 0.0
        for node in range(t.NI.shape[1]):
            if t.NI[Node.TYPE, node] == kind:
                free += t.NI[Node.FREE, node]
        spare = free - reserved[kind] + 1e-6  # shares of the time come first
        used, lacks = 0, need == 0
        if change == Change.KEEPS:
            change, used, lacks = _in_place_or_elsewhere(t, turns, k, spare, now, rules, found)
            if change == Change.KEEPS and used >= 0:
                _go_on(t, turns, k, used, now, rules, log, found)
                continue
        elif need <= spare:
            used = find_place(t, rules, row, option, False, found.nodes, found.counts)
        if used > 0 and change != Change.KEEPS:
            _begin_there(t, turns, k, change, used, now, rules, log, found, out)
            continue
        reason = _FRAGMENTED if free >= need and not lacks else _RESOURCES
        I[Job.REASON, row] = reason
        if change == Change.WAITS:
            continue
        if not restore_gang(
            t, row, turns.work[GangWork.OPTION, k], turns.listed, turns.work[GangWork.FIRST, k], turns.work[GangWork.HELD, k]
        ):
            give_back(t, row)
            halt(t.F, I, row, now, reason, log)
            out[1] += 1


@kernel
def _in_place_or_elsewhere(
    t: Matrices, turns: GangTurns, k: int, spare: float, now: float, rules: EngineRules, found: Spots
) -> tuple[int, int, bool]:
    """A gang that may keep some of its devices: does it go on there, or as a whole elsewhere?

    What it does (KEEPS, LEAVES), how many nodes more it gets (-1: it cannot go on), and whether it only lacks CPUs or memory.
    """
    row, option, work = turns.rows[k], turns.options[k], turns.work
    need = t.OI[Option.GPUS, option]
    kept, used = min(need, work[GangWork.HELD, k]), 0
    if need > kept and need - kept <= spare:
        used = extension(t, rules, row, option, kept, found)
    fits = (used > 0 or need == kept) and has_side(t, row, option, found, used)
    lacks = not fits and (used > 0 or need == kept)  # devices, but not the CPUs or the memory
    likes = rules.switch[Switch.TOGETHER]
    together = likes == _ALWAYS or (likes == _SENSITIVE and t.I[Job.CONSOLIDATE, row] > 0)
    may_move = now >= t.F[Job.LAST_START, row] + rules.amount[Amount.MIN_RUN]
    if need > kept and may_move and (not fits or together):
        span = nodes_of(t.I, t.D, row, found.nodes, used) if fits else 1 << 60
        if span > 1:  # it would be spread or stay as it is: is there a better place for the whole gang?
            old = t.I[Job.OPTION, row]
            give_back(t, row)
            elsewhere = find_place(t, rules, row, option, False, found.nodes, found.counts)
            if elsewhere > 0 and elsewhere < span and need - kept <= spare:
                return Change.LEAVES, elsewhere, lacks
            restore_gang(t, row, old, turns.listed, work[GangWork.FIRST, k], work[GangWork.HELD, k])
            if fits:
                used = extension(t, rules, row, option, kept, found)
    return Change.KEEPS, used if fits else -1, lacks


@kernel
def _go_on(t: Matrices, turns: GangTurns, k: int, used: int, now: float, rules: EngineRules, log: LogColumns, found: Spots) -> None:
    """It goes on with more or fewer devices, after a pause."""
    F, I, row, option = t.F, t.I, turns.rows[k], turns.options[k]
    need = t.OI[Option.GPUS, option]
    grow_chain(t, row, option, min(need, turns.work[GangWork.HELD, k]), found, used)
    I[Job.SPREAD, row] = nodes_of(I, t.D, row, found.nodes, 0)
    close_interval(I, row, now, _RESIZED, log)
    I[Job.EPOCH, row] += 1
    I[Job.REASON, row] = 0
    F[Job.SAFE, row] = F[Job.DONE, row]
    F[Job.SINCE, row] = now + price(rules.amount[Amount.RESIZE], need, rules.amount)
    F[Job.RATE, row] = rate_of(t, row)
    set_due(F, row)
    open_interval(I, t.D, row, now, log)
    turns.work[GangWork.ACT, k] = Paid.RESIZE


@kernel
def _begin_there(
    t: Matrices, turns: GangTurns, k: int, change: int, used: int, now: float, rules: EngineRules, log: LogColumns, found: Spots, out: Ints
) -> None:
    """It starts at the place that was found; one that leaves another for it pays for that."""
    F, I, row, option, work = t.F, t.I, turns.rows[k], turns.options[k], turns.work
    kind, need, amount = t.OI[Option.TYPE, option], t.OI[Option.GPUS, option], rules.amount
    if change == Change.LEAVES:
        resized = work[GangWork.HELD, k] != need
        close_interval(I, row, now, _RESIZED if resized else _MOVED, log)
        rest(F, I, row, now)
        out[1] += 1
        work[GangWork.ACT, k] = Paid.RESIZE if resized and t.OI[Option.TYPE, work[GangWork.OPTION, k]] == kind else Paid.MOVE
    else:
        work[GangWork.ACT, k] = Paid.START if F[Job.FIRST_START, row] != F[Job.FIRST_START, row] else Paid.RESUME
    take(t, row, option, found.nodes, found.counts, used)
    start(t, row, now, rules, log)
    out[0] += 1
    if change == Change.LEAVES:
        F[Job.SINCE, row] = now + price(
            amount[Amount.RESIZE] if work[GangWork.ACT, k] == Paid.RESIZE else amount[Amount.MOVE], need, amount
        )
        set_due(F, row)
