"""The verbs of the loop on the tables: keys are evaluated by a tape, or given by the policy, which is asked in between.

They call the same kernels as the stepping loop, so that the loop can stop before any decision and leave the rest to it. Keys of
rows that run are evaluated at every decision; those of rows that wait only if time changes them, or something has happened to the row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job, Node
from gantline.core.constants import Constants
from gantline.core.gather import elapsed
from gantline.core.jit import kernel, variant
from gantline.core.plan import Misfit
from gantline.core.tables import Matrices
from gantline.engine.advance import arrive as let_in
from gantline.engine.advance import finish_due, next_finish, next_movable
from gantline.engine.drivers.loop_clock import LoopClock, LoopCount, LoopTime, Outcome, Stage
from gantline.engine.drivers.python_keys.evaluate import evaluate
from gantline.engine.drivers.python_keys.tape import Tape
from gantline.engine.drivers.six_steps import Verbs, loop_over
from gantline.engine.instants import answer_ends
from gantline.engine.lists import Lists, RowCount
from gantline.engine.log import LogColumns, LogSize
from gantline.engine.quota_walk import QuotaNotes, any_exceeded, count_running, walk_lines
from gantline.engine.ranks import sort_rows
from gantline.engine.settings import Amount, EngineRules, Switch
from gantline.engine.walk import walk


class How(Constants):
    """Places of `how`: whether time changes keys of rows that wait, decisions until keys are held against the
    policy's, whether the policy need not be asked while nothing can start, whether levels are counted by GPU-
    seconds."""

    AGES, UNTIL_CHECK, PASSES, BY_GPU = range(4)


OFTEN = 4096  # instants after which the loop comes back in any case, so that alarms are noticed
# known when a loop is compiled (`variant`): whether the policy gives the keys, and whether quotas bound what jobs may hold
ASKS, BOUNDED = False, False

_STOP = int(Misfit.STOP)


class OnTables(NamedTuple):
    """All that the loop works on."""

    t: Matrices
    lists: Lists
    rules: EngineRules
    log: LogColumns
    scratch: Ints
    out: Ints
    tape: Tape
    levels: Floats  # service at which a row that runs falls behind at that very instant
    how: Ints
    fresh: Ints  # rows with unknown keys
    said: Floats  # keys of all active rows, as the policy gives them
    quotas: QuotaNotes


@kernel
def has_room(on: OnTables, number: Ints, clock: LoopClock) -> bool:
    log, devices = on.log, on.t.D.shape[1]
    if clock.number[LoopCount.INSTANTS] % OFTEN == 0 or log.written[LogSize.DEVICES] + 4 * devices + 64 > log.device.shape[0]:
        return False
    return bool(log.written[LogSize.INTERVALS] + devices + number[RowCount.ACTIVE] + 64 <= log.entry.shape[1])


@kernel
def has_ended(on: OnTables, row: int) -> bool:
    return not np.isnan(on.t.F[Job.FINISH, row])


@kernel
def due(on: OnTables, number: Ints) -> float:
    """When the next row arrives."""
    F = on.t.F
    return float(F[Job.ARRIVAL, number[RowCount.NEXT]]) if number[RowCount.NEXT] < F.shape[1] else np.inf


@kernel
def next_end(on: OnTables, number: Ints) -> float:
    return next_finish(on.t.F, on.t.I, on.lists)


@kernel
def finish(on: OnTables, number: Ints, now: float) -> None:
    finish_due(on.t, on.lists, now, on.rules, on.log)


@kernel
def arrive(on: OnTables, number: Ints, now: float, load_limit: float) -> None:
    let_in(on.t.F, on.t.I, on.lists, now, load_limit)


@kernel
def _evaluate(on: OnTables, now: float) -> bool:
    """Keys of all rows that may have changed; False: the policy must be asked."""
    t, tape, running, waiting, stale, count = on.t, on.tape, on.lists.running, on.lists.waiting, on.tape.stale, on.lists.number
    good = evaluate(t, running, count[RowCount.RUNNING], now, tape)
    for place in range(count[RowCount.RUNNING]):
        stale[running[place]] = True  # it will have another key when it waits
    if on.how[How.AGES] == 1:
        return evaluate(t, waiting, count[RowCount.WAITING], now, tape) and good
    fresh = 0
    for place in range(count[RowCount.WAITING]):
        row = waiting[place]
        if stale[row]:
            stale[row] = False
            on.fresh[fresh] = row
            fresh += 1
    return evaluate(t, on.fresh, fresh, now, tape) and good


@kernel
def _enter(F: Floats, lists: Lists, said: Floats) -> bool:
    """Keys that the policy has given, if all of them are numbers."""
    for place in range(lists.number[RowCount.ACTIVE]):
        if np.isnan(said[place]):
            return False
    for place in range(lists.number[RowCount.ACTIVE]):
        F[Job.KEY, lists.active[place]] = said[place]
    return True


@kernel
def _nothing_fits(NI: Ints, lists: Lists, rules: EngineRules) -> bool:
    """Whether all that wait ask for more than is free of any type, so that no order could start one of them."""
    if rules.switch[Switch.PREEMPT] == 1 or rules.switch[Switch.KEEP_EVICTIONS] == 1 or rules.switch[Switch.MISFIT] == _STOP:
        return False
    smallest, sizes, types = 0, lists.demand.shape[0], 0
    while smallest < sizes and lists.demand[smallest] == 0:
        smallest += 1
    for node in range(NI.shape[1]):
        types = max(types, NI[Node.TYPE, node] + 1)
    for kind in range(types):
        free = 0
        for node in range(NI.shape[1]):
            if NI[Node.TYPE, node] == kind:
                free += NI[Node.FREE, node]
        if free >= smallest:
            return False
    return True


@kernel
def decide(on: OnTables, number: Ints, clock: LoopClock, now: float) -> int:
    """Nothing is to be decided while nothing waits and no quota is exceeded; before a decision the policy may have to say something."""
    count, how, out, F = clock.number, on.how, on.out, on.t.F
    if BOUNDED:
        count_running(on.t, on.lists, on.quotas)
    if number[RowCount.WAITING] == 0 and not (BOUNDED and any_exceeded(on.quotas.books)):
        return Outcome.GO_ON
    if count[LoopCount.READY] == Stage.BEFORE:
        if ASKS:
            if not BOUNDED and how[How.PASSES] == 1 and _nothing_fits(on.t.NI, on.lists, on.rules):
                count[LoopCount.DECISIONS] += 1
                out[0], out[1] = 0, 0
                return Outcome.GO_ON
            count[LoopCount.READY] = Stage.KNOWN
            return Outcome.KEYS
        if not _evaluate(on, now):
            return Outcome.ASK
        how[How.UNTIL_CHECK] -= 1
        if how[How.UNTIL_CHECK] == 0:
            count[LoopCount.READY] = Stage.KNOWN
            return Outcome.CHECK
    if ASKS and not _enter(F, on.lists, on.said):
        return Outcome.ASK
    count[LoopCount.DECISIONS] += 1
    sort_rows(F, on.lists.running, number[RowCount.RUNNING])
    sort_rows(F, on.lists.waiting, number[RowCount.WAITING])
    if BOUNDED:
        walk_lines(on.t, on.lists, now, on.rules, on.log, on.scratch, out, on.quotas)
    else:
        walk(on.t, on.lists, now, on.rules, on.log, on.scratch, out)
    count[LoopCount.STARTED] += out[0]
    count[LoopCount.STOPPED] += out[1]
    return Outcome.GO_ON


@kernel
def wake(on: OnTables, number: Ints, clock: LoopClock, now: float) -> float:
    """When the answer ends, a row that runs reaches a level, or a gang may be stopped that may not yet."""
    if number[RowCount.WAITING] == 0 and not (BOUNDED and any_exceeded(on.quotas.books)):
        return np.inf
    time = clock.time
    soonest = answer_ends(time[LoopTime.VALID], now, time[LoopTime.ROUND], time[LoopTime.QUANTUM])
    if on.levels.shape[0] > 0:
        soonest = min(soonest, answer_ends(_next_level(on, now), now, time[LoopTime.ROUND], time[LoopTime.QUANTUM]))
    if BOUNDED or on.rules.switch[Switch.PREEMPT] == 1:  # by their quotas gangs give way under every policy
        soonest = min(soonest, next_movable(on.t.F, on.lists, now, on.rules.amount[Amount.MIN_RUN]))
    return soonest


@kernel
def _next_level(on: OnTables, now: float) -> float:
    """The first instant at which a row that runs reaches its next level."""
    F, I, lists, levels, by_gpu = on.t.F, on.t.I, on.lists, on.levels, on.how[How.BY_GPU] == 1
    soonest = np.inf
    for place in range(lists.number[RowCount.RUNNING]):
        row = lists.running[place]
        speed = float(I[Job.HELD, row]) if by_gpu else 1.0
        have = F[Job.GPUTIME, row] if by_gpu else F[Job.SERVICE, row]
        reached = have + speed * elapsed(F, I, row, now)
        for level in levels:
            if reached < level and speed > 0.0:
                soonest = min(soonest, F[Job.SINCE, row] + (level - have) / speed)
                break
    return soonest


_VERBS = Verbs(due, finish, arrive, decide, wake, has_room, has_ended, next_end)
_WITHIN_QUOTAS = _VERBS._replace(decide=variant(decide, "decide_bounded", BOUNDED=True), wake=variant(wake, "wake_bounded", BOUNDED=True))
_ASKING_WITHIN_QUOTAS = _WITHIN_QUOTAS._replace(decide=variant(decide, "decide_asking_bounded", ASKS=True, BOUNDED=True))
run_tape = loop_over(_VERBS, "run_tape", __name__)
run_asking = loop_over(_VERBS._replace(decide=variant(decide, "decide_asking", ASKS=True)), "run_asking", __name__)
run_tape_bounded = loop_over(_WITHIN_QUOTAS, "run_tape_bounded", __name__)
run_asking_bounded = loop_over(_ASKING_WITHIN_QUOTAS, "run_asking_bounded", __name__)
