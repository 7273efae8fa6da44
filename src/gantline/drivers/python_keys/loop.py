"""The loop of decisions for a key in Python: the steps of the driver, with the key evaluated in between, or asked for.

It works on the tables with the very kernels that the stepping loop calls, so that it can stop before any decision and leave the rest to it.
Keys of those who run are evaluated at every decision; those of who waits only if time changes them, or something has happened to the row.
"""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.plan import Misfit
from gantline.core.tables import Matrices
from gantline.drivers import loop_clock as lc
from gantline.drivers.loop_clock import LoopClock
from gantline.drivers.python_keys.evaluate import evaluate, load
from gantline.drivers.python_keys.tape import OUT, Tape
from gantline.engine import lists as ls
from gantline.engine import settings as s
from gantline.engine.advance import arrive, finish_due, next_finish, next_look, next_movable
from gantline.engine.lists import Lists
from gantline.engine.log import DEVICES, INTERVALS, LogColumns
from gantline.engine.ranks import sort_rows
from gantline.engine.settings import EngineRules
from gantline.engine.walk import walk

# places of `how`: whether time changes keys of those who wait, decisions until the policy is asked, decisions in a row in which nothing
# changed, how far this instant has come, who knows the keys, how many rows are asked about, instants so far,
# whether nobody need be asked while nobody can start
AGES, UNTIL_CHECK, IDLE, READY, WHO, COUNT, STEPS, PASSES, PLACES = range(9)
OFTEN = 4096  # instants after which the loop comes back in any case, so that alarms are received
# of READY: nothing has been done; rows are asked about; all keys are there; others have come so far that rows can be asked about
BEFORE, ASKED, KNOWN, BEGUN = range(4)
# of WHO: the tape; the policy, which makes whole plans; its key for each job by itself; its key for all jobs at once
TAPE, POLICY, KEY_BY_JOB, KEY_OF_ALL = range(4)
# ask the policy before this decision; it must be asked from here on; nothing is to come; the loop cannot run this; ask about some rows;
# another loop can go on
CHECK, ASK, STALLED, NOT_BEGUN, KEYS, LEAVE = 3, 4, 5, 6, 7, 8

_STOP = int(Misfit.STOP)


@kernel
def _rank(t: Matrices, lists: Lists, now: float, tape: Tape, how: Ints, fresh: Ints) -> bool:
    """Keys of all that may have changed; False: the policy must be asked."""
    running, waiting, stale = lists.running, lists.waiting, tape.stale
    good = evaluate(t, running, lists.number[ls.RUNNING], now, tape)
    for place in range(lists.number[ls.RUNNING]):
        stale[running[place]] = True  # it will have another key when it waits
    if how[AGES] == 1:
        good = evaluate(t, waiting, lists.number[ls.WAITING], now, tape) and good
    else:
        count = 0
        for place in range(lists.number[ls.WAITING]):
            row = waiting[place]
            if stale[row]:
                stale[row] = False
                fresh[count] = row
                count += 1
        good = evaluate(t, fresh, count, now, tape) and good
    return good


@kernel
def _gather(t: Matrices, lists: Lists, now: float, tape: Tape, how: Ints, fresh: Ints) -> None:
    """List the rows whose keys may have changed, or all in order of arrival, and what the policy reads of them."""
    running, waiting, stale = lists.running, lists.waiting, tape.stale
    count = lists.number[ls.RUNNING]
    if how[WHO] == KEY_OF_ALL:
        count = lists.number[ls.ACTIVE]
        for place in range(count):
            fresh[place] = lists.active[place]
    else:
        for place in range(count):
            fresh[place] = running[place]
            stale[running[place]] = True  # it will have another key when it waits
        for place in range(lists.number[ls.WAITING]):
            row = waiting[place]
            if stale[row] or how[AGES] == 1:
                stale[row] = False
                fresh[count] = row
                count += 1
    for k in range(tape.code.shape[0] - 1):
        load(t, fresh, 0, count, now, tape, k)
    tape.counts[2] += count
    how[COUNT] = count


@kernel
def _take_keys(t: Matrices, tape: Tape, how: Ints, fresh: Ints) -> bool:
    """Enter what the policy has said, if all of it are numbers."""
    said = tape.code[tape.code.shape[0] - 1, OUT]
    for i in range(how[COUNT]):
        if np.isnan(tape.real[said, i]):
            return False
    for i in range(how[COUNT]):
        t.F[c.KEY, fresh[i]] = tape.real[said, i]
    return True


@kernel
def _nobody_fits(NI: Ints, lists: Lists, rules: EngineRules) -> bool:
    """Whether all who wait ask for more than is free of any type, so that no order could start one of them."""
    if rules.switch[s.S_PREEMPT] == 1 or rules.switch[s.S_KEEP_EVICTIONS] == 1 or rules.switch[s.S_MISFIT] == _STOP:
        return False
    smallest, sizes, types = 0, lists.demand.shape[0], 0
    while smallest < sizes and lists.demand[smallest] == 0:
        smallest += 1
    for node in range(NI.shape[1]):
        types = max(types, NI[c.N_TYPE, node] + 1)
    for kind in range(types):
        free = 0
        for node in range(NI.shape[1]):
            if NI[c.N_TYPE, node] == kind:
                free += NI[c.N_FREE, node]
        if free >= smallest:
            return False
    return True


@kernel
def next_instant(time: Floats, due: float) -> float:
    """The instant of the next decision, given when something is due."""
    length = time[lc.ROUND]
    if length <= 0.0:
        return float(max(due, time[lc.NOW]))
    boundary = max(0.0, np.ceil(due / length - 1e-9)) * length
    now = max(boundary, time[lc.NOW] + length) if time[lc.LAST_DECISION] >= 0.0 else boundary
    if time[lc.STEP_ALL] == 1.0 and time[lc.LAST_DECISION] >= 0.0:
        now = time[lc.NOW] + length
    return float(np.round(now / length) * length)


@kernel
def _tracked_done(t: Matrices, lists: Lists, count: Ints) -> bool:
    if count[lc.TRACK_HIGH] < 0 or lists.number[ls.FINISHED] == 0:
        return False
    row = count[lc.TRACK_LOW]
    while row < count[lc.TRACK_HIGH] and not np.isnan(t.F[c.FINISH, row]):
        row += 1
    return bool(row >= count[lc.TRACK_HIGH])


@kernel
def run_tape(
    t: Matrices,
    lists: Lists,
    rules: EngineRules,
    log: LogColumns,
    scratch: Ints,
    out: Ints,
    tape: Tape,
    how: Ints,
    fresh: Ints,
    clock: LoopClock,
) -> int:
    """Run until everything has ended (or a bound is reached); comes back early when the log is full, or before a decision."""
    F, I, time, count = t.F, t.I, clock.time, clock.number
    rows, length, devices = F.shape[1], time[lc.ROUND], t.D.shape[1]
    while True:
        now = time[lc.NOW]
        if how[READY] == BEFORE:
            how[STEPS] += 1
            if how[STEPS] % OFTEN == 0:
                return lc.NEED_LOG
            if log.written[INTERVALS] + devices + lists.number[ls.ACTIVE] + 64 > log.entry.shape[1]:
                return lc.NEED_LOG
            if log.written[DEVICES] + 4 * devices + 64 > log.device.shape[0]:
                return lc.NEED_LOG
            # 1. the next instant
            due = time[lc.WAKE]
            if lists.number[ls.NEXT] < rows:
                due = min(due, F[c.ARRIVAL, lists.number[ls.NEXT]])
            if due == np.inf:
                return lc.DONE
            now = next_instant(time, due)
            if now > time[lc.UNTIL]:
                return lc.CUT
            time[lc.NOW] = now
            time[lc.LAST_DECISION] = now
            # 2. who has finished, 3. who has arrived
            finish_due(t, lists, now, rules, log)
            arrive(F, I, lists, now, time[lc.LOAD_LIMIT])
            if _tracked_done(t, lists, count):
                return lc.DONE
        changed = lists.number[ls.FINISHED] > 0 or lists.number[ls.ADMITTED] > 0
        # 4. order, 5. walk; nothing to decide while nobody waits
        if how[PASSES] == 1 and how[READY] == BEFORE and lists.number[ls.WAITING] > 0 and _nobody_fits(t.NI, lists, rules):
            count[lc.DECISIONS] += 1
            out[0], out[1], out[2] = 0, 0, lists.number[ls.WAITING]
        elif lists.number[ls.WAITING] > 0:
            if (how[READY] == BEFORE or how[READY] == BEGUN) and how[WHO] >= KEY_BY_JOB:
                _gather(t, lists, now, tape, how, fresh)
                how[READY] = ASKED
                return KEYS
            if how[READY] != KNOWN:
                if how[WHO] == TAPE and not _rank(t, lists, now, tape, how, fresh):
                    return ASK
                if how[WHO] >= KEY_BY_JOB and not _take_keys(t, tape, how, fresh):
                    return ASK
                how[UNTIL_CHECK] -= 1
                if how[UNTIL_CHECK] == 0:
                    how[READY] = KNOWN
                    return CHECK
            if how[WHO] == POLICY and not _take_keys(t, tape, how, fresh):
                return ASK
            count[lc.DECISIONS] += 1
            sort_rows(F, lists.running, lists.number[ls.RUNNING])
            sort_rows(F, lists.waiting, lists.number[ls.WAITING])
            walk(t, lists, now, rules, log, scratch, out)
            count[lc.STARTED] += out[0]
            count[lc.STOPPED] += out[1]
            changed = changed or out[0] + out[1] > 0
        how[READY] = BEFORE
        how[IDLE] = 0 if changed else how[IDLE] + 1
        # 6. when to look again
        wake = next_finish(F, I, lists)
        if how[IDLE] > lc.STALL and wake == np.inf and lists.number[ls.NEXT] >= rows:
            return STALLED
        if lists.number[ls.WAITING] > 0:
            again = time[lc.VALID]
            if np.isnan(again) or (length <= 0.0 and again <= now):
                again = now + length if length > 0.0 else next_look(now, now, time[lc.QUANTUM])
            wake = min(wake, again)
            wake = min(wake, next_movable(F, lists, now, rules.amount[s.S_MIN_RUN]))
        if lists.number[ls.HELD] < lists.number[ls.NEXT] and length > 0.0 and lists.number[ls.ADMITTED] > 0:
            wake = min(wake, now + length)
        time[lc.WAKE] = wake
