"""Committing gangs of their own that the engine places: who changes gives up what the plan takes away, then takes its turn. Compiled.

`part_with` comes first for all of them, so that the order of the plan does not decide who may use what others leave. `take_turns` then
goes through the plan: a gang starts, goes on with more or fewer devices, starts again elsewhere, or gets back what it had.
"""

from __future__ import annotations

from typing import Final

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints, Ints32
from gantline.core.jit import kernel
from gantline.core.phases import PENDING
from gantline.core.reasons import Reason
from gantline.engine import settings as s
from gantline.engine.gang import close_interval, give_back, halt, open_interval, price, rate_of, rest, set_due, settle, start, take
from gantline.engine.gang_moves import cut_chain, extension, grow_chain, has_side, nodes_of, restore_gang, restyle
from gantline.placement.fit import CONSOLIDATED, PREFERRED, SKEW, choose, mix

#: what a gang does in a commit
WAITS: Final = 0  # it holds nothing yet
STAYS: Final = 1  # keeps its devices
KEEPS: Final = 2  # keeps some of its devices in place
LEAVES: Final = 3  # gives up all of them
BOUND: Final = 4  # would have to leave within its minimum run

#: rows of `work`, one entry per gang of the commit
W_WAY, W_OPTION, W_HELD, W_FIRST, W_ACT, W_ROWS = range(
    6
)  # what it does; option and devices until now, where these are listed; what it paid for
#: what it paid for, as in performance.model.Act; -1: nothing
NOTHING, START, RESUME, RESIZE, MOVE = -1, 0, 1, 2, 3

_MOVED, _RESIZED, _RESOURCES, _FRAGMENTED = (int(r) for r in (Reason.MOVED, Reason.RESIZED, Reason.RESOURCES, Reason.FRAGMENTED))


@kernel
def way_of(I: Ints, OI: Ints, row: int, option: int) -> int:
    """What the wanted option means for a gang that holds something: it stays if it is of the right type, spread and size."""
    held, spread = I[c.OPTION, row], OI[c.O_NODES, option]
    need = OI[c.O_GPUS, option]
    same_kind = OI[c.O_TYPE, held] == OI[c.O_TYPE, option] and (need == 0) == (I[c.NODE, row] >= 0)
    if not same_kind or (spread > 0 and spread != I[c.SPREAD, row]):
        return LEAVES
    if need == I[c.HELD, row]:
        return STAYS
    return LEAVES if spread > 0 else KEEPS


@kernel
def part_with(
    F: Floats, I: Ints, OF: Floats, OI: Ints, NF: Floats, NI: Ints, D: Ints,
    rows: Ints, options: Ints, work: Ints, listed: Ints, now: float, SF: Floats,
) -> None:  # fmt: skip
    """Everybody gives up what the plan takes away; `work` and `listed` keep what that was."""
    at = 0
    for k in range(rows.shape[0]):
        row, option = rows[k], options[k]
        work[W_WAY, k], work[W_ACT, k] = WAITS, NOTHING
        if I[c.PHASE, row] == PENDING:
            continue
        way = way_of(I, OI, row, option)
        if way == LEAVES and now < F[c.LAST_START, row] + SF[s.S_MIN_RUN]:
            way = BOUND
        work[W_WAY, k], work[W_OPTION, k], work[W_HELD, k], work[W_FIRST, k] = way, I[c.OPTION, row], I[c.HELD, row], at
        if way == STAYS:
            if I[c.OPTION, row] != option:
                restyle(I, OF, OI, NF, NI, D, row, option, True)
            continue
        if way == BOUND:
            continue
        settle(F, I, row, now)  # while it still counts as holding everything
        device = I[c.HEAD, row]
        while device >= 0:
            listed[at] = device
            at += 1
            device = D[c.D_NEXT, device]
        if I[c.NODE, row] >= 0:
            listed[at] = -1 - I[c.NODE, row]
            at += 1
        if way == LEAVES:
            give_back(I, OF, OI, NF, NI, D, row)
        elif OI[c.O_GPUS, option] < I[c.HELD, row]:
            cut_chain(I, OF, NF, NI, D, row, OI[c.O_GPUS, option])


@kernel
def take_turns(
    F: Floats, I: Ints, OF: Floats, OI: Ints, NF: Floats, NI: Ints, D: Ints,
    rows: Ints, options: Ints, begin: int, end: int, work: Ints, listed: Ints, reserved: Floats, now: float, SI: Ints, SF: Floats,
    LI: Ints32, LF: Floats, LD: Ints32, LN: Ints, scratch: Ints, out: Ints,
) -> None:  # fmt: skip
    """One gang after the other. `reserved` is, per type, what shares of the time were promised; out: started, stopped, -, refused."""
    nodes, counts, hidden, idle = scratch[0], scratch[1], scratch[2], scratch[3]
    rule, whole = SI[s.S_RULE], SI[s.S_WHOLE] == 1
    for k in range(begin, end):
        row, option, way = rows[k], options[k], work[W_WAY, k]
        kind, need, spread = OI[c.O_TYPE, option], OI[c.O_GPUS, option], OI[c.O_NODES, option]
        if way == BOUND:
            out[3] += 1
            continue
        if way == STAYS:
            if I[c.OPTION, row] != option and not restyle(I, OF, OI, NF, NI, D, row, option, False):
                I[c.REASON, row] = _RESOURCES
                out[3] += 1
            continue
        seed = mix(SI[s.S_SEED] * 1000003 + I[c.EPOCH, row] * 8191 + row)
        cpus, memory, sensitive = OF[c.O_CPUS, option], OF[c.O_MEMORY, option], I[c.CONSOLIDATE, row] == 1
        used, kept, free, lacks = 0, 0, 0.0, need == 0
        for node in range(NI.shape[1]):
            if NI[c.N_TYPE, node] == kind:
                free += NI[c.N_FREE, node]
        spare = free - reserved[kind] + 1e-6  # shares of the time come first
        if way == KEEPS:
            kept = min(need, work[W_HELD, k])
            if need > kept and need - kept <= spare:
                used = extension(I, OF, OI, NF, NI, D, row, option, kept, SI, seed, nodes, counts, hidden, idle)
            fits = (used > 0 or need == kept) and has_side(I, OF, NF, D, row, option, nodes, counts, used)
            lacks = not fits and (used > 0 or need == kept)  # devices, but not the CPUs or the memory
            together = rule == CONSOLIDATED or rule == PREFERRED or (rule == SKEW and sensitive)
            if need > kept and now >= F[c.LAST_START, row] + SF[s.S_MIN_RUN] and (not fits or together):
                span = nodes_of(I, D, row, nodes, used) if fits else 1 << 60
                if span > 1:  # it would be spread or stay as it is: is there a better place for the whole gang?
                    old = I[c.OPTION, row]
                    cut = kept
                    give_back(I, OF, OI, NF, NI, D, row)
                    elsewhere = choose(NF, NI, kind, need, spread, cpus, memory, rule, whole, sensitive, seed, False, nodes, counts)
                    if elsewhere > 0 and elsewhere < span and need - cut <= spare:
                        way, used, kept = LEAVES, elsewhere, 0
                    else:
                        restore_gang(I, OF, NF, NI, D, row, old, listed, work[W_FIRST, k], work[W_HELD, k])
                        if fits:
                            used = extension(I, OF, OI, NF, NI, D, row, option, kept, SI, seed, nodes, counts, hidden, idle)
            if way == KEEPS and fits:
                grow_chain(I, OF, NF, NI, D, row, option, kept, nodes, counts, used)
                I[c.SPREAD, row] = nodes_of(I, D, row, nodes, 0)
                close_interval(I, row, now, _RESIZED, LI, LF)
                I[c.EPOCH, row] += 1
                I[c.REASON, row] = 0
                F[c.SAFE, row] = F[c.DONE, row]
                F[c.SINCE, row] = now + price(SF[s.S_RESIZE], need, SF)
                F[c.RATE, row] = rate_of(I, OF, OI, NI, D, row)
                set_due(F, row)
                open_interval(I, D, row, now, LI, LF, LD, LN)
                work[W_ACT, k] = RESIZE
                continue
        elif need <= spare:
            used = choose(NF, NI, kind, need, spread, cpus, memory, rule, whole, sensitive, seed, False, nodes, counts)
        if used > 0 and way != KEEPS:
            if way == LEAVES:
                resized = work[W_HELD, k] != need
                close_interval(I, row, now, _RESIZED if resized else _MOVED, LI, LF)
                rest(F, I, row, now)
                out[1] += 1
                work[W_ACT, k] = RESIZE if resized and OI[c.O_TYPE, work[W_OPTION, k]] == kind else MOVE
            else:
                work[W_ACT, k] = START if F[c.FIRST_START, row] != F[c.FIRST_START, row] else RESUME
            take(I, OF, OI, NF, NI, D, row, option, nodes, counts, used)
            start(F, I, OF, OI, NI, D, row, now, SI, SF, LI, LF, LD, LN)
            out[0] += 1
            if way == LEAVES:
                F[c.SINCE, row] = now + price(SF[s.S_RESIZE] if work[W_ACT, k] == RESIZE else SF[s.S_MOVE], need, SF)
                set_due(F, row)
            continue
        reason = _FRAGMENTED if free >= need and not lacks else _RESOURCES
        out[3] += 1
        I[c.REASON, row] = reason
        if way == WAITS:
            continue
        held, first = work[W_HELD, k], work[W_FIRST, k]
        if not restore_gang(I, OF, NF, NI, D, row, work[W_OPTION, k], listed, first, held):
            give_back(I, OF, OI, NF, NI, D, row)
            halt(F, I, row, now, reason, SI, LI, LF)
            out[1] += 1
