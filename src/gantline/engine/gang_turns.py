"""Commits unshared gangs that the engine places: rows that change give up what the plan takes away, then take their turns. Compiled.

`part_with` comes first for all, so that the order of the plan does not decide which row may use what others leave. `take_turns` then
goes through the plan: a gang starts, goes on with more or fewer devices, starts again elsewhere, or gets back what it had.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.phases import PENDING
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine import settings as s
from gantline.engine.find_place import find_place
from gantline.engine.gang import close_interval, give_back, halt, open_interval, price, rate_of, rest, set_due, settle, start, take
from gantline.engine.gang_moves import Spots, cut_chain, extension, grow_chain, has_side, nodes_of, restore_gang, restyle
from gantline.engine.log import LogColumns
from gantline.engine.settings import EngineRules
from gantline.policies.placement.rules import Together

#: what a gang does in a commit
WAITS: Final = 0  # it holds nothing yet
STAYS: Final = 1  # keeps its devices
KEEPS: Final = 2  # keeps some of its devices in place
LEAVES: Final = 3  # gives up all of them
BOUND: Final = 4  # would have to leave within its minimum run

#: rows of `GangTurns.work`: what it does; option and devices until now, where these are listed; what it paid for
W_CHANGE, W_OPTION, W_HELD, W_FIRST, W_ACT, W_ROWS = range(6)
#: what it paid for, as in performance.model.Act; -1: nothing
NOTHING, START, RESUME, RESIZE, MOVE = -1, 0, 1, 2, 3

_SENSITIVE, _ALWAYS = int(Together.SENSITIVE), int(Together.ALWAYS)
_MOVED, _RESIZED, _RESOURCES, _FRAGMENTED = (int(r) for r in (Reason.MOVED, Reason.RESIZED, Reason.RESOURCES, Reason.FRAGMENTED))


class GangTurns(NamedTuple):
    """The gangs of a commit in the order of their turns, the options they shall have, and what is kept of each meanwhile."""

    rows: Ints
    options: Ints
    work: Ints  # (W_CHANGE .. W_ACT, gang)
    listed: Ints  # devices that gangs had, one after the other; -1 - node for a gang without devices


@kernel
def change_of(I: Ints, OI: Ints, row: int, option: int) -> int:
    """What the wanted option means for a gang that holds something: it stays if it is of the right type, spread and size."""
    held, spread = I[c.OPTION, row], OI[c.O_NODES, option]
    need = OI[c.O_GPUS, option]
    same_kind = OI[c.O_TYPE, held] == OI[c.O_TYPE, option] and (need == 0) == (I[c.NODE, row] >= 0)
    if not same_kind or (spread > 0 and spread != I[c.SPREAD, row]):
        return LEAVES
    if need == I[c.HELD, row]:
        return STAYS
    return LEAVES if spread > 0 and I[c.CONSOLIDATE, row] != c.ASKED_TOGETHER else KEEPS


@kernel
def part_with(t: Matrices, turns: GangTurns, now: float, min_run: float) -> None:
    """Every row gives up what the plan takes away; `turns` keeps what that was."""
    F, I, work, listed = t.F, t.I, turns.work, turns.listed
    at = 0
    for k in range(turns.rows.shape[0]):
        row, option = turns.rows[k], turns.options[k]
        work[W_CHANGE, k], work[W_ACT, k] = WAITS, NOTHING
        if I[c.PHASE, row] == PENDING:
            continue
        change = change_of(I, t.OI, row, option)
        if change == LEAVES and now < F[c.LAST_START, row] + min_run:
            change = BOUND
        work[W_CHANGE, k], work[W_OPTION, k], work[W_HELD, k], work[W_FIRST, k] = change, I[c.OPTION, row], I[c.HELD, row], at
        if change == STAYS:
            if I[c.OPTION, row] != option:
                restyle(t, row, option, True)
            continue
        if change == BOUND:
            continue
        settle(F, I, row, now)  # while it still counts as holding everything
        device = I[c.HEAD, row]
        while device >= 0:
            listed[at] = device
            at += 1
            device = t.D[c.D_NEXT, device]
        if I[c.NODE, row] >= 0:
            listed[at] = -1 - I[c.NODE, row]
            at += 1
        if change == LEAVES:
            give_back(t, row)
        elif t.OI[c.O_GPUS, option] < I[c.HELD, row]:
            cut_chain(t, row, t.OI[c.O_GPUS, option])


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
        row, option, change = turns.rows[k], turns.options[k], turns.work[W_CHANGE, k]
        if change == BOUND:
            continue
        if change == STAYS:
            if I[c.OPTION, row] != option and not restyle(t, row, option, False):
                I[c.REASON, row] = _RESOURCES
            continue
        kind, need = t.OI[c.O_TYPE, option], t.OI[c.O_GPUS, option]
        free = 0.0
        for node in range(t.NI.shape[1]):
            if t.NI[c.N_TYPE, node] == kind:
                free += t.NI[c.N_FREE, node]
        spare = free - reserved[kind] + 1e-6  # shares of the time come first
        used, lacks = 0, need == 0
        if change == KEEPS:
            change, used, lacks = _in_place_or_elsewhere(t, turns, k, spare, now, rules, found)
            if change == KEEPS and used >= 0:
                _go_on(t, turns, k, used, now, rules, log, found)
                continue
        elif need <= spare:
            used = find_place(t, rules, row, option, False, found.nodes, found.counts)
        if used > 0 and change != KEEPS:
            _begin_there(t, turns, k, change, used, now, rules, log, found, out)
            continue
        reason = _FRAGMENTED if free >= need and not lacks else _RESOURCES
        I[c.REASON, row] = reason
        if change == WAITS:
            continue
        if not restore_gang(t, row, turns.work[W_OPTION, k], turns.listed, turns.work[W_FIRST, k], turns.work[W_HELD, k]):
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
    need = t.OI[c.O_GPUS, option]
    kept, used = min(need, work[W_HELD, k]), 0
    if need > kept and need - kept <= spare:
        used = extension(t, rules, row, option, kept, found)
    fits = (used > 0 or need == kept) and has_side(t, row, option, found, used)
    lacks = not fits and (used > 0 or need == kept)  # devices, but not the CPUs or the memory
    likes = rules.switch[s.S_TOGETHER]
    together = likes == _ALWAYS or (likes == _SENSITIVE and t.I[c.CONSOLIDATE, row] > 0)
    may_move = now >= t.F[c.LAST_START, row] + rules.amount[s.S_MIN_RUN]
    if need > kept and may_move and (not fits or together):
        span = nodes_of(t.I, t.D, row, found.nodes, used) if fits else 1 << 60
        if span > 1:  # it would be spread or stay as it is: is there a better place for the whole gang?
            old = t.I[c.OPTION, row]
            give_back(t, row)
            elsewhere = find_place(t, rules, row, option, False, found.nodes, found.counts)
            if elsewhere > 0 and elsewhere < span and need - kept <= spare:
                return LEAVES, elsewhere, lacks
            restore_gang(t, row, old, turns.listed, work[W_FIRST, k], work[W_HELD, k])
            if fits:
                used = extension(t, rules, row, option, kept, found)
    return KEEPS, used if fits else -1, lacks


@kernel
def _go_on(t: Matrices, turns: GangTurns, k: int, used: int, now: float, rules: EngineRules, log: LogColumns, found: Spots) -> None:
    """It goes on with more or fewer devices, after a pause."""
    F, I, row, option = t.F, t.I, turns.rows[k], turns.options[k]
    need = t.OI[c.O_GPUS, option]
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
def _begin_there(
    t: Matrices, turns: GangTurns, k: int, change: int, used: int, now: float, rules: EngineRules, log: LogColumns, found: Spots, out: Ints
) -> None:
    """It starts at the place that was found; one that leaves another for it pays for that."""
    F, I, row, option, work = t.F, t.I, turns.rows[k], turns.options[k], turns.work
    kind, need, amount = t.OI[c.O_TYPE, option], t.OI[c.O_GPUS, option], rules.amount
    if change == LEAVES:
        resized = work[W_HELD, k] != need
        close_interval(I, row, now, _RESIZED if resized else _MOVED, log)
        rest(F, I, row, now)
        out[1] += 1
        work[W_ACT, k] = RESIZE if resized and t.OI[c.O_TYPE, work[W_OPTION, k]] == kind else MOVE
    else:
        work[W_ACT, k] = START if F[c.FIRST_START, row] != F[c.FIRST_START, row] else RESUME
    take(t, row, option, found.nodes, found.counts, used)
    start(t, row, now, rules, log)
    out[0] += 1
    if change == LEAVES:
        F[c.SINCE, row] = now + price(amount[s.S_RESIZE] if work[W_ACT, k] == RESIZE else amount[s.S_MOVE], need, amount)
        set_due(F, row)
