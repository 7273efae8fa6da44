"""One pass over the ranks that looks only at whom it can matter for. The same outcome as `engine.walk` for one type of device.

Those who wait are looked at in order, the first of each gang size at a time. Whoever finds no free devices may stop gangs that rank
behind it, lowest first; these are found from the low end of the ranks, as far as needed. A gang that was stopped gets its turn in the same
pass: its own devices if nobody took them, else others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.core.reasons import Reason
from gantline.engine import settings as s
from gantline.engine.dense import devices as d
from gantline.engine.dense import queues as q
from gantline.engine.dense import records as r
from gantline.engine.dense.devices import Devices, choose_many, lend, reclaim, take_chosen, take_first_free, take_tightest
from gantline.engine.dense.gangs import Log, Setting, halt, start
from gantline.engine.dense.heap import DUE, FRONT, LEVEL, RANK, Heaps, drop, mend, put
from gantline.engine.dense.keys import Key, key_at, next_level
from gantline.engine.dense.queues import Queues, enter, first_lane, leave
from gantline.engine.dense.records import Records
from gantline.placement.fit import CONSOLIDATED

_PREEMPTED, _MOVED, _RESOURCES, _FRAGMENTED, _PRIORITY = (
    int(reason) for reason in (Reason.PREEMPTED, Reason.MOVED, Reason.RESOURCES, Reason.FRAGMENTED, Reason.PRIORITY)
)
_STOP = 1

# rows of `line`: gangs from the lowest rank up, those stopped on trial, those of them whose turn has not come (best last), those begun
LOW, VICTIMS, TURNS, BEGUN, LINE_ROWS = range(5)
# places of `number`: how long each of these lines is, from where on the first may still help, whether its search has begun;
# counted over the run: gangs started and stopped, rows looked at, keys evaluated
AT_LOW, AT_VICTIMS, AT_TURNS, AT_BEGUN, BACK, SEARCHING, STARTED, STOPPED, LOOKED, EVALUATED, NUMBERS = range(11)


# places of `motion`: how fast every key rises, whether all must be evaluated anew at every pass, whether any can rise
RISE, ANEW, RISES, MOTIONS = range(4)


class Pass(NamedTuple):
    line: Ints  # (what, place)
    number: Ints
    motion: Floats  # see `motion`


@kernel
def rank_key(jobs: Records, row: int, key: Key, work: Pass, now: float) -> float:
    """What the row stands by in the heap of ranks: its key at time zero if it had always risen as it does, lowest rank on top."""
    work.number[EVALUATED] += 1
    return float(work.motion[RISE] * now - key_at(jobs, row, key, now))


@kernel
def _search(jobs: Records, h: Heaps, key: Key, work: Pass, now: float) -> None:
    """Begin to go through the ranks from the low end."""
    work.number[SEARCHING] = 1
    if work.motion[ANEW] == 1.0:
        for place in range(h.size[RANK]):
            h.key[RANK, place] = -key_at(jobs, h.row[RANK, place], key, now)
        work.number[EVALUATED] += h.size[RANK]
        mend(h, RANK)
    if h.size[RANK] > 0:
        put(h, FRONT, 0, h.key[RANK, 0])


@kernel
def _extend(jobs: Records, h: Heaps, key: Key, work: Pass, now: float) -> bool:
    """The next gangs from the low end of the ranks: one, or all that are so close that only their exact keys tell them apart."""
    begin = work.number[AT_LOW]
    if h.size[FRONT] == 0:
        return False
    rise = work.motion[RISE]
    last = h.key[FRONT, 0]
    slack = 0.0 if rise == 0.0 else 1e-6 + 4e-15 * (abs(last) + abs(rise * now))
    end = begin
    while h.size[FRONT] > 0 and h.key[FRONT, 0] <= last + slack:
        last = h.key[FRONT, 0]
        place = h.row[FRONT, 0]
        drop(h, FRONT, place)
        for child in range(2 * place + 1, min(2 * place + 3, h.size[RANK])):
            put(h, FRONT, child, h.key[RANK, child])
        row = h.row[RANK, place]
        exact = -last if rise == 0.0 else key_at(jobs, row, key, now)
        jobs.f[row, r.KEY] = exact
        at = end
        while at > begin:
            other = work.line[LOW, at - 1]
            if jobs.f[other, r.KEY] > exact or (jobs.f[other, r.KEY] == exact and other > row):
                break
            work.line[LOW, at] = other
            at -= 1
        work.line[LOW, at] = row
        end += 1
        if rise < 0.0 and exact == 0.0:  # nothing is left by its estimate: such keys no longer move
            slack = np.inf
    work.number[EVALUATED] += end - begin
    work.number[AT_LOW] = end
    return True


@kernel
def _behind(jobs: Records, h: Heaps, key: Key, work: Pass, place: int, mark: float, row: int, now: float) -> int:
    """The gang at that place from the low end, if it ranks behind (mark, row); -1: from here on they rank before."""
    work.number[LOOKED] += 1
    if place >= work.number[AT_LOW] and not _extend(jobs, h, key, work, now):
        return -1
    other = work.line[LOW, place]
    if jobs.f[other, r.KEY] > mark or (jobs.f[other, r.KEY] == mark and other > row):
        return int(other)
    return -1


@kernel
def _stays(jobs: Records, row: int, now: float, min_run: float) -> bool:
    """Whether the gang cannot be stopped: it has been already, or it has not had its minimum run time."""
    return jobs.i[row, r.VICTIM] != 0 or (min_run > 0.0 and now < jobs.f[row, r.LAST_START] + min_run)


@kernel
def _stop(jobs: Records, ds: Devices, work: Pass, row: int) -> None:
    """Take the devices of a gang away on trial; its turn comes later in the pass."""
    n = work.number
    jobs.i[row, r.VICTIM] = 1
    work.line[VICTIMS, n[AT_VICTIMS]] = row
    n[AT_VICTIMS] += 1
    lend(ds, jobs.i[row, r.SEGMENT])
    at = n[AT_TURNS]
    mark = jobs.f[row, r.KEY]
    while at > 0:
        other = work.line[TURNS, at - 1]
        if jobs.f[other, r.KEY] > mark or (jobs.f[other, r.KEY] == mark and other > row):
            break
        work.line[TURNS, at] = other
        at -= 1
    work.line[TURNS, at] = row
    n[AT_TURNS] += 1


@kernel
def _clear_any(jobs: Records, h: Heaps, ds: Devices, key: Key, work: Pass, row: int, mark: float, now: float, min_run: float) -> int:
    """Stop the lowest gangs until enough devices are free anywhere, if stopping helps at all."""
    need, gain, place = jobs.i[row, r.NEED], ds.total[d.FREE_IN_ALL], work.number[BACK]
    while gain < need:
        other = _behind(jobs, h, key, work, place, mark, row, now)
        if other < 0:
            return -1
        if not _stays(jobs, other, now, min_run):
            gain += jobs.i[other, r.NEED]
        place += 1
    for at in range(work.number[BACK], place):
        other = work.line[LOW, at]
        if not _stays(jobs, other, now, min_run):
            _stop(jobs, ds, work, other)
    work.number[BACK] = place
    return take_first_free(ds, need)


@kernel
def _clear_node(jobs: Records, h: Heaps, ds: Devices, key: Key, work: Pass, row: int, mark: float, now: float, min_run: float) -> int:
    """Stop the lowest gangs on the node that stopping gangs from below would clear first."""
    need, target, place = jobs.i[row, r.NEED], -1, 0
    while target < 0:
        other = _behind(jobs, h, key, work, place, mark, row, now)
        if other < 0:
            break
        place += 1
        if _stays(jobs, other, now, min_run):
            continue
        link = jobs.i[other, r.SEGMENT]
        while link >= 0:
            node = ds.chain[d.NODE, link]
            ds.node[d.GAIN, node] += ds.chain[d.HELD, link]
            if ds.node[d.COUNT, node] + ds.node[d.GAIN, node] >= need:
                target = node
                break
            link = ds.chain[d.NEXT, link]
    for at in range(place):
        link = jobs.i[work.line[LOW, at], r.SEGMENT]
        while link >= 0:
            ds.node[d.GAIN, ds.chain[d.NODE, link]] = 0
            link = ds.chain[d.NEXT, link]
    if target < 0:
        return -1
    at = 0
    while ds.node[d.COUNT, target] < need:
        other = work.line[LOW, at]
        at += 1
        if _stays(jobs, other, now, min_run):
            continue
        link = jobs.i[other, r.SEGMENT]
        while link >= 0 and ds.chain[d.NODE, link] != target:
            link = ds.chain[d.NEXT, link]
        if link >= 0:
            _stop(jobs, ds, work, other)
    return take_tightest(ds, need)


@kernel
def _clear_nodes(
    jobs: Records, h: Heaps, ds: Devices, key: Key, work: Pass, row: int, mark: float, now: float, min_run: float, whole: bool
) -> int:
    """Stop gangs from the lowest rank up until one larger than a node fits, if it would when all of them had stopped."""
    need = jobs.i[row, r.NEED]
    for node in range(ds.node.shape[1]):
        ds.node[d.ROOM, node] = ds.node[d.COUNT, node]
    place = 0
    while True:
        other = _behind(jobs, h, key, work, place, mark, row, now)
        if other < 0:
            break
        place += 1
        if not _stays(jobs, other, now, min_run):
            link = jobs.i[other, r.SEGMENT]
            while link >= 0:
                ds.node[d.ROOM, ds.chain[d.NODE, link]] += ds.chain[d.HELD, link]
                link = ds.chain[d.NEXT, link]
    if choose_many(ds, d.ROOM, need, whole) == 0:
        return -1
    for at in range(place):
        other = work.line[LOW, at]
        if _stays(jobs, other, now, min_run):
            continue
        _stop(jobs, ds, work, other)
        if need <= ds.total[d.FREE_IN_ALL]:
            used = choose_many(ds, d.COUNT, need, whole)
            if used > 0:
                return take_chosen(ds, used)
    return -1


@kernel
def find_free(ds: Devices, need: int, rule: int, whole: bool) -> int:
    """Devices that are free; -1: none that the rule allows."""
    if rule != CONSOLIDATED:
        return take_first_free(ds, need)
    if need <= ds.total[d.LARGEST]:
        return take_tightest(ds, need)
    used = choose_many(ds, d.COUNT, need, whole)
    return take_chosen(ds, used) if used > 0 else -1


@kernel
def walk(jobs: Records, h: Heaps, qs: Queues, ds: Devices, log: Log, setting: Setting, key: Key, work: Pass, now: float) -> None:
    """Start and stop gangs as the ranks at this instant say."""
    SI, n = setting.SI, work.number
    preempt, rule, whole, min_run = SI[s.S_PREEMPT] == 1, SI[s.S_RULE], SI[s.S_WHOLE] == 1, setting.SF[s.S_MIN_RUN]
    n[AT_LOW], n[AT_VICTIMS], n[AT_TURNS], n[AT_BEGUN], n[BACK], n[SEARCHING] = 0, 0, 0, 0, 0, 0
    in_order = SI[s.S_MISFIT] == _STOP  # nobody passes one that does not fit
    tried, tried_all = 1 << 60, 1 << 60  # gang sizes from which on nothing was found: among free devices, and at all
    while True:
        lane = first_lane(qs, tried_all - 1 if preempt or in_order else min(tried_all - 1, ds.total[d.FREE_IN_ALL]))
        row, mark = -1, np.inf
        if lane >= 0:
            at = qs.lane[q.BASE, lane] + qs.lane[q.HEAD, lane]
            row, mark = qs.row[at], qs.key[at]
        again = False
        if n[AT_TURNS] > 0:
            other = work.line[TURNS, n[AT_TURNS] - 1]
            if row < 0 or jobs.f[other, r.KEY] < mark or (jobs.f[other, r.KEY] == mark and other < row):
                again, row, mark = True, other, jobs.f[other, r.KEY]
        if row < 0:
            break
        n[LOOKED] += 1
        if again:
            n[AT_TURNS] -= 1
            if reclaim(ds, jobs.i[row, r.SEGMENT]):
                jobs.i[row, r.VICTIM] = 0
                continue
        need, link = jobs.i[row, r.NEED], -1
        enough = need <= ds.total[d.FREE_IN_ALL]
        if enough and need < tried and need < tried_all:
            link = find_free(ds, need, rule, whole)
            if link < 0:
                tried = min(tried, need)
        if link < 0 and preempt and need < tried_all:
            if n[SEARCHING] == 0:
                _search(jobs, h, key, work, now)
            if rule != CONSOLIDATED:
                link = _clear_any(jobs, h, ds, key, work, row, mark, now, min_run)
            elif need <= ds.total[d.LARGEST]:
                link = _clear_node(jobs, h, ds, key, work, row, mark, now, min_run)
            else:
                link = _clear_nodes(jobs, h, ds, key, work, row, mark, now, min_run, whole)
            if link >= 0:
                tried = 1 << 60
        if link < 0:
            tried_all = min(tried_all, need)
            why = _FRAGMENTED if enough else (_PRIORITY if preempt else _RESOURCES)
            jobs.i[row, r.WHY] = why
            qs.lane[q.WHY, jobs.i[row, r.LANE]] = why
            if in_order:
                break
            continue
        if again:
            halt(jobs, ds, log, row, now, _MOVED)
            n[STOPPED] += 1
            jobs.i[row, r.VICTIM] = 0
        else:
            leave(qs, lane)
        start(jobs, h, ds, log, setting, row, link, again, now)
        n[STARTED] += 1
        work.line[BEGUN, n[AT_BEGUN]] = row
        n[AT_BEGUN] += 1
    _afterwards(jobs, h, qs, ds, log, key, work, now, preempt)


@kernel
def _afterwards(jobs: Records, h: Heaps, qs: Queues, ds: Devices, log: Log, key: Key, work: Pass, now: float, preempt: bool) -> None:
    """Those who have lost their devices for good wait again; those who have begun get their ranks."""
    n = work.number
    for place in range(h.size[FRONT]):
        h.at[FRONT, h.row[FRONT, place]] = -1
    h.size[FRONT] = 0
    for place in range(n[AT_VICTIMS]):
        row = work.line[VICTIMS, place]
        if jobs.i[row, r.VICTIM] != 0:
            jobs.i[row, r.VICTIM] = 0
            halt(jobs, ds, log, row, now, _PREEMPTED)
            n[STOPPED] += 1
            drop(h, DUE, row)
            drop(h, RANK, row)
            drop(h, LEVEL, row)
            enter(qs, jobs.i[row, r.LANE], jobs.f[row, r.KEY], row, 0.0)
    if preempt:
        levels = key.thresholds.shape[0] > 0
        for place in range(n[AT_BEGUN]):
            row = work.line[BEGUN, place]
            put(h, RANK, row, rank_key(jobs, row, key, work, now))
            if levels:
                put(h, LEVEL, row, next_level(jobs, row, key, now))
