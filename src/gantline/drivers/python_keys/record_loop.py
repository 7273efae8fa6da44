"""The loop on records for a key that is asked about each job by itself: it comes back at every decision, with the jobs to be asked about.

A key that was asked for stands where a priority does, and counts as a declared key that is the priority alone. Whoever runs is asked about
anew each time, and so are those who have come or been stopped since; whoever waits keeps its place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.jit import variant
from gantline.core.phases import PENDING, RUNNING
from gantline.drivers import loop_clock as lc
from gantline.drivers.dense_loop import finish, finish_without_ranks, let_in, next_movable, tracked_done
from gantline.drivers.loop_clock import LoopClock
from gantline.drivers.python_keys import loop as lp
from gantline.drivers.python_keys import tape as p
from gantline.drivers.python_keys.tape import Tape
from gantline.engine import lists as ls
from gantline.engine import settings as s
from gantline.engine.advance import next_look
from gantline.engine.dense import low_ranks as w
from gantline.engine.dense import records as r
from gantline.engine.dense.devices import Devices
from gantline.engine.dense.gangs import LoopLog, LoopSetting, next_due
from gantline.engine.dense.heap import DUE, RANK, Heaps, first
from gantline.engine.dense.keys import Key
from gantline.engine.dense.low_ranks import Pass
from gantline.engine.dense.queues import Lanes, enter, remove
from gantline.engine.dense.records import Records
from gantline.engine.dense.walk import walk, walk_without_stops

PREEMPTS = True  # whether gangs may be stopped; known when it is compiled (`variant`)
# of `how[READY]`, whose first are those of `loop`: all are asked about
_ALL_ASKED = 4


class AsSubmitted(NamedTuple):
    """Columns that no event changes."""

    F: Floats
    I: Ints


class Addressees(NamedTuple):
    """Who is asked about."""

    rows: Ints
    how: Ints  # see `loop`
    stopped: Ints  # by the last pass, and not asked about since; their number comes first


@kernel
def _list_changed(h: Heaps, asked: Addressees, number: Ints) -> int:
    """Those who run, where they can be stopped; those who were; those who have just come."""
    count = 0
    if PREEMPTS:
        for place in range(h.size[RANK]):
            asked.rows[count] = h.row[RANK, place]
            count += 1
    for place in range(asked.stopped[0]):
        asked.rows[count] = asked.stopped[1 + place]
        count += 1
    for row in range(number[ls.HELD] - number[ls.ADMITTED], number[ls.HELD]):
        asked.rows[count] = row
        count += 1
    return count


@kernel
def _list_all(jobs: Records, asked: Addressees, number: Ints) -> int:
    """Everybody who is inside, in order of arrival; who runs only where that matters."""
    count = 0
    for row in range(number[ls.HELD]):
        state = jobs.i[row, r.STATE]
        if state == PENDING or (PREEMPTS and state == RUNNING):
            asked.rows[count] = row
            count += 1
    return count


@kernel
def _gather(jobs: Records, given: AsSubmitted, tape: Tape, asked: Addressees, count: int, now: float) -> None:
    """What the policy reads of these rows, as it sees it."""
    f, i, rows, real, whole = jobs.f, jobs.i, asked.rows, tape.real, tape.whole
    asked.how[lp.COUNT] = count
    tape.counts[2] += count
    for k in range(tape.code.shape[0] - 1):
        what, out, column = tape.code[k, p.WHAT], tape.code[k, p.OUT], tape.code[k, p.A]
        for at in range(count):
            row = rows[at]
            runs = i[row, r.STATE] == RUNNING
            ran = max(0.0, now - f[row, r.SINCE]) if runs else 0.0
            if what == p.SERVED:
                if column == c.SERVICE:
                    real[out, at] = f[row, r.SERVICE] + ran
                elif column == c.GPUTIME:
                    real[out, at] = f[row, r.GPUTIME] + (i[row, r.NEED] * ran if runs else 0.0)
                else:
                    real[out, at] = f[row, r.DONE] + f[row, r.RATE] * ran
            elif what == p.REMAINING:
                real[out, at] = max(f[row, r.ESTIMATE] - (f[row, r.DONE] + f[row, r.RATE] * ran), 0.0)
            elif what == p.RUNNING:
                tape.flag[out, at] = runs
            elif what == p.RATE:
                real[out, at] = f[row, r.RATE] if runs else 0.0
            elif what == p.FLOATS:
                if column == c.ESTIMATE:
                    real[out, at] = f[row, r.ESTIMATE]
                elif column == c.FIRST_START:
                    real[out, at] = f[row, r.FIRST_START]
                elif column == c.LAST_START:
                    real[out, at] = f[row, r.LAST_START]
                else:
                    real[out, at] = given.F[column, row]
            elif column == c.HELD:
                whole[out, at] = i[row, r.NEED] if runs else 0
            elif column == c.SPREAD:
                whole[out, at] = i[row, r.SPREAD]
            elif column == c.PHASE:
                whole[out, at] = i[row, r.STATE]
            elif column == c.PREEMPTIONS:
                whole[out, at] = i[row, r.STOPS]
            elif column == c.RESTARTS:
                whole[out, at] = max(i[row, r.STARTS] - 1, 0)
            else:
                whole[out, at] = given.I[column, row]


@kernel
def _take_keys(jobs: Records, qs: Lanes, tape: Tape, asked: Addressees, number: Ints) -> bool:
    """Enter what the policy has said; False: a key is no number, or infinite."""
    said, count = tape.code[tape.code.shape[0] - 1, p.OUT], asked.how[lp.COUNT]
    for at in range(count):
        if not np.isfinite(tape.real[said, at]):
            return False
    came = count - number[ls.ADMITTED]
    again = came - asked.stopped[0]
    for at in range(count):
        row, key = asked.rows[at], tape.real[said, at]
        jobs.f[row, r.PRIORITY] = key
        if at >= again:
            if at < came:
                if jobs.f[row, r.KEY] == key:
                    continue
                remove(qs, jobs.i[row, r.LANE], jobs.f[row, r.KEY], row)
            jobs.f[row, r.KEY] = key
            enter(qs, jobs.i[row, r.LANE], key, row, 0.0)
    asked.stopped[0] = 0
    return True


@kernel
def _as_before(jobs: Records, tape: Tape, asked: Addressees) -> bool:
    """Whether the policy, asked about all, says what it has said before."""
    said, same = tape.code[tape.code.shape[0] - 1, p.OUT], True
    for at in range(asked.how[lp.COUNT]):
        same = same and tape.real[said, at] == jobs.f[asked.rows[at], r.PRIORITY]
    return same


@kernel
def _note_stopped(jobs: Records, work: Pass, asked: Addressees) -> None:
    """Those who have lost their devices for good in the last pass."""
    count = 0
    for place in range(work.number[w.AT_VICTIMS]):
        row = work.line[w.VICTIMS, place]
        if jobs.i[row, r.STATE] == PENDING:
            count += 1
            asked.stopped[count] = row
    asked.stopped[0] = count


class Everything(NamedTuple):
    """All that the loop works on, in one, because it is handed over at every decision."""

    jobs: Records
    h: Heaps
    qs: Lanes
    ds: Devices
    log: LoopLog
    setting: LoopSetting
    key: Key
    work: Pass
    given: AsSubmitted
    tape: Tape
    asked: Addressees
    number: Ints
    clock: LoopClock


@kernel
def _run(everything: Everything) -> int:
    """Until everything has ended; comes back with rows to be asked about, when the log is full, or where the tables must go on."""
    jobs, h, qs, ds, log, setting, key, work, given, tape, asked, number, clock = everything
    time, count, how = clock.time, clock.number, asked.how
    rows, room, length = jobs.f.shape[0], work.line.shape[1] + 64, clock.time[lc.ROUND]
    while True:
        now = time[lc.NOW]
        if how[lp.READY] == lp.BEFORE:
            how[lp.STEPS] += 1
            if how[lp.STEPS] % lp.OFTEN == 0:
                return lc.NEED_LOG
            if log.LN[0] + room > log.LI.shape[1] or log.LN[1] + room > log.LD.shape[0]:
                return lc.NEED_LOG
            # 1. the next instant
            due = time[lc.WAKE]
            if number[ls.NEXT] < rows:
                due = min(due, jobs.f[number[ls.NEXT], r.ARRIVAL])
            if due == np.inf:
                return lc.DONE
            now = lp.next_instant(time, due)
            if now > time[lc.UNTIL]:
                return lc.CUT
            time[lc.NOW] = now
            time[lc.LAST_DECISION] = now
            # 2. who has finished, 3. who has arrived
            finish(jobs, h, ds, log, setting, key, work, number, now)
            let_in(jobs, number, now, time[lc.LOAD_LIMIT])  # in front of the lanes, until their keys are known
            if count[lc.TRACK_HIGH] >= 0 and number[ls.FINISHED] > 0 and tracked_done(jobs, count[lc.TRACK_LOW], count[lc.TRACK_HIGH]):
                return lc.DONE
        changed = number[ls.FINISHED] > 0 or number[ls.ADMITTED] > 0
        # 4. order, 5. walk; nothing to decide while nobody waits
        if qs.waiting[0] > 0 or number[ls.ADMITTED] > 0:
            if how[lp.READY] == lp.BEFORE:
                _gather(jobs, given, tape, asked, _list_changed(h, asked, number), now)
                how[lp.READY] = lp.ASKED
                return lp.KEYS
            if how[lp.READY] == lp.ASKED:
                if not _take_keys(jobs, qs, tape, asked, number):
                    return lp.LEAVE
                how[lp.UNTIL_CHECK] -= 1
                if how[lp.UNTIL_CHECK] == 0:
                    _gather(jobs, given, tape, asked, _list_all(jobs, asked, number), now)
                    how[lp.READY] = _ALL_ASKED
                    return lp.CHECK
            elif not _as_before(jobs, tape, asked):
                return lp.ASK
            count[lc.DECISIONS] += 1
            before = work.number[w.STARTED] + work.number[w.STOPPED]
            walk(jobs, h, qs, ds, log, setting, key, work, now)
            if PREEMPTS:
                _note_stopped(jobs, work, asked)
            changed = changed or work.number[w.STARTED] + work.number[w.STOPPED] > before
        how[lp.READY] = lp.BEFORE
        how[lp.IDLE] = 0 if changed else how[lp.IDLE] + 1
        # 6. when to look again
        wake = next_due(jobs, h) if PREEMPTS else first(h, DUE)
        if how[lp.IDLE] > lc.STALL and wake == np.inf and number[ls.NEXT] >= rows:
            return lp.STALLED
        if qs.waiting[0] > 0:
            again = time[lc.VALID]
            if np.isnan(again) or (length <= 0.0 and again <= now):
                again = now + length if length > 0.0 else next_look(now, now, time[lc.QUANTUM])
            wake = min(wake, again)
            if PREEMPTS:
                wake = min(wake, next_movable(jobs, h, now, setting.SF[s.S_MIN_RUN]))
        if number[ls.HELD] < number[ls.NEXT] and length > 0.0 and number[ls.ADMITTED] > 0:
            wake = min(wake, now + length)
        time[lc.WAKE] = wake


run_with_stops = _run
_list_waiting = variant(_list_changed, "_list_waiting", PREEMPTS=False)
_list_all_waiting = variant(_list_all, "_list_all_waiting", PREEMPTS=False)
_WITHOUT = {"walk": walk_without_stops, "finish": finish_without_ranks, "_list_changed": _list_waiting, "_list_all": _list_all_waiting}
run_in_order = variant(_run, "run_in_order", PREEMPTS=False, **_WITHOUT)
