"""One pass over the ranks that looks only at rows for which it can matter. The same outcome as `engine.walk` for one type of device.

Waiting rows are looked at in order, the first of each gang size at a time. One that finds no free devices may stop gangs that rank behind
it, lowest first; these are found from the low end of the ranks, as far as needed. A gang that was stopped gets its turn in the same pass:
its own devices if they are still free, else others.
"""

from __future__ import annotations

import numpy as np

from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.jit import variant
from gantline.core.reasons import Reason
from gantline.engine.declared_key import Coefficient
from gantline.engine.dense.devices import (
    ChainLink,
    Devices,
    NodeRow,
    Total,
    choose_many,
    lend,
    reclaim,
    take_chosen,
    take_first_free,
    take_tightest,
)
from gantline.engine.dense.gangs import LoopSetting, halt, start
from gantline.engine.dense.heap import FRONT, LEVEL, RANK, Heaps, drop, put, replace
from gantline.engine.dense.low_ranks import Pass, PassCount, PassLine, behind, rank_key, rank_of, search
from gantline.engine.dense.queues import Lane, Lanes, enter, first_lane, leave
from gantline.engine.dense.records import Key, Record, Records, next_level
from gantline.engine.log import LogColumns
from gantline.engine.settings import Amount, Switch


# --- making room: which devices a gang gets, and which lower gangs it stops for them ------------------------------------
@kernel
def _stays(jobs: Records, row: int, now: float, min_run: float) -> bool:
    """Whether the gang cannot be stopped: it has been already, or it has not had its minimum run time."""
    return jobs.i[row, Record.VICTIM] != 0 or (min_run > 0.0 and now < jobs.f[row, Record.LAST_START] + min_run)


@kernel
def _stop(jobs: Records, ds: Devices, work: Pass, row: int) -> None:
    """Take the devices of a gang away on trial; its turn comes later in the pass."""
    n = work.number
    jobs.i[row, Record.VICTIM] = 1
    work.line[PassLine.VICTIMS, n[PassCount.AT_VICTIMS]] = row
    n[PassCount.AT_VICTIMS] += 1
    lend(ds, jobs.i[row, Record.SEGMENT])
    at = n[PassCount.AT_TURNS]
    mark = jobs.f[row, Record.KEY]
    while at > 0:
        other = work.line[PassLine.TURNS, at - 1]
        if jobs.f[other, Record.KEY] > mark or (jobs.f[other, Record.KEY] == mark and other > row):
            break
        work.line[PassLine.TURNS, at] = other
        at -= 1
    work.line[PassLine.TURNS, at] = row
    n[PassCount.AT_TURNS] += 1


@kernel
def clear_any(jobs: Records, h: Heaps, ds: Devices, key: Key, work: Pass, row: int, mark: float, now: float, min_run: float) -> int:
    """Stop the lowest gangs until enough devices are free anywhere, if stopping helps at all."""
    need, gain, place = jobs.i[row, Record.NEED], ds.total[Total.FREE_IN_ALL], work.number[PassCount.BACK]
    while gain < need:
        other = behind(jobs, h, key, work, place, mark, row, now)
        if other < 0:
            return -1
        if not _stays(jobs, other, now, min_run):
            gain += jobs.i[other, Record.NEED]
        place += 1
    for at in range(work.number[PassCount.BACK], place):
        other = work.line[PassLine.LOW, at]
        if not _stays(jobs, other, now, min_run):
            _stop(jobs, ds, work, other)
    work.number[PassCount.BACK] = place
    return take_first_free(ds, need)


@kernel
def clear_node(jobs: Records, h: Heaps, ds: Devices, key: Key, work: Pass, row: int, mark: float, now: float, min_run: float) -> int:
    """Stop the lowest gangs on the node that stopping gangs from below would clear first."""
    need, target, place = jobs.i[row, Record.NEED], -1, 0
    while target < 0:
        other = behind(jobs, h, key, work, place, mark, row, now)
        if other < 0:
            break
        place += 1
        if _stays(jobs, other, now, min_run):
            continue
        link = jobs.i[other, Record.SEGMENT]
        while link >= 0:
            node = ds.chain[link, ChainLink.NODE]
            ds.node[NodeRow.GAIN, node] += ds.chain[link, ChainLink.HELD]
            if ds.node[NodeRow.COUNT, node] + ds.node[NodeRow.GAIN, node] >= need:
                target = node
                break
            link = ds.chain[link, ChainLink.NEXT]
    for at in range(place):
        link = jobs.i[work.line[PassLine.LOW, at], Record.SEGMENT]
        while link >= 0:
            ds.node[NodeRow.GAIN, ds.chain[link, ChainLink.NODE]] = 0
            link = ds.chain[link, ChainLink.NEXT]
    if target < 0:
        return -1
    at = 0
    while ds.node[NodeRow.COUNT, target] < need:
        other = work.line[PassLine.LOW, at]
        at += 1
        if _stays(jobs, other, now, min_run):
            continue
        link = jobs.i[other, Record.SEGMENT]
        while link >= 0 and ds.chain[link, ChainLink.NODE] != target:
            link = ds.chain[link, ChainLink.NEXT]
        if link >= 0:
            _stop(jobs, ds, work, other)
    return take_tightest(ds, need)


@kernel
def clear_nodes(
    jobs: Records, h: Heaps, ds: Devices, key: Key, work: Pass, row: int, mark: float, now: float, min_run: float, whole: bool
) -> int:
    """Stop gangs from the lowest rank up until one larger than a node fits, if it would when all of them had stopped."""
    need = jobs.i[row, Record.NEED]
    for node in range(ds.node.shape[1]):
        ds.node[NodeRow.ROOM, node] = ds.node[NodeRow.COUNT, node]
    place = 0
    while True:
        other = behind(jobs, h, key, work, place, mark, row, now)
        if other < 0:
            break
        place += 1
        if not _stays(jobs, other, now, min_run):
            link = jobs.i[other, Record.SEGMENT]
            while link >= 0:
                ds.node[NodeRow.ROOM, ds.chain[link, ChainLink.NODE]] += ds.chain[link, ChainLink.HELD]
                link = ds.chain[link, ChainLink.NEXT]
    if choose_many(ds, NodeRow.ROOM, need, whole) == 0:
        return -1
    for at in range(place):
        other = work.line[PassLine.LOW, at]
        if _stays(jobs, other, now, min_run):
            continue
        _stop(jobs, ds, work, other)
        if need <= ds.total[Total.FREE_IN_ALL]:
            used = choose_many(ds, NodeRow.COUNT, need, whole)
            if used > 0:
                return take_chosen(ds, used)
    return -1


@kernel
def find_free(ds: Devices, need: int, one_node: bool, whole: bool) -> int:
    """Devices that are free; -1: none that the rule allows."""
    if not one_node:
        return take_first_free(ds, need)
    if need <= ds.total[Total.LARGEST]:
        return take_tightest(ds, need)
    used = choose_many(ds, NodeRow.COUNT, need, whole)
    return take_chosen(ds, used) if used > 0 else -1


# --- the pass -----------------------------------------------------------------------------------------------------------
_PREEMPTED, _MOVED, _RESOURCES, _FRAGMENTED, _PRIORITY = (
    int(reason) for reason in (Reason.PREEMPTED, Reason.MOVED, Reason.RESOURCES, Reason.FRAGMENTED, Reason.PRIORITY)
)
_STOP = 1
PREEMPTS = True  # whether gangs may be stopped; known when a loop is compiled (`variant`)


@kernel
def walk(jobs: Records, h: Heaps, qs: Lanes, ds: Devices, log: LogColumns, setting: LoopSetting, key: Key, work: Pass, now: float) -> None:
    """Start and stop gangs as the ranks at this instant say."""
    SI, n = setting.SI, work.number
    one_node, whole, min_run = SI[Switch.ONE_NODE] == 1, SI[Switch.WHOLE] == 1, setting.SF[Amount.MIN_RUN]
    (
        n[PassCount.AT_LOW],
        n[PassCount.AT_VICTIMS],
        n[PassCount.AT_TURNS],
        n[PassCount.AT_BEGUN],
        n[PassCount.BACK],
        n[PassCount.SEARCHING],
    ) = 0, 0, 0, 0, 0, 0
    in_order = SI[Switch.MISFIT] == _STOP  # no row passes one that does not fit
    tried, tried_all = 1 << 60, 1 << 60  # gang sizes from which on nothing was found: among free devices, and at all
    # where nodes differ, a gang that must sit on one of them may find no place where those that take several idle ones do
    apart, tried_one = ds.total[Total.APART] if one_node else 0, 1 << 60
    lane, known = -1, False  # the lane with the next waiting row at its front
    while True:
        hope = tried_all - 1 if PREEMPTS or in_order else min(tried_all - 1, ds.total[Total.FREE_IN_ALL])
        if not known or (lane >= 0 and qs.lane[Lane.SIZE, lane] > hope):
            lane, known = first_lane(qs, hope, tried_one, apart), True
        row, mark = -1, np.inf
        if lane >= 0:
            at = qs.lane[Lane.BASE, lane] + qs.lane[Lane.HEAD, lane]
            row, mark = qs.row[at], qs.key[at]
        again = False
        if PREEMPTS and n[PassCount.AT_TURNS] > 0:
            other = work.line[PassLine.TURNS, n[PassCount.AT_TURNS] - 1]
            if row < 0 or jobs.f[other, Record.KEY] < mark or (jobs.f[other, Record.KEY] == mark and other < row):
                again, row, mark = True, other, jobs.f[other, Record.KEY]
        if row < 0:
            break
        n[PassCount.LOOKED] += 1
        if PREEMPTS and again:
            n[PassCount.AT_TURNS] -= 1
            if reclaim(ds, jobs.i[row, Record.SEGMENT]):
                jobs.i[row, Record.VICTIM] = 0
                continue
        need, link = jobs.i[row, Record.NEED], -1
        enough, on_one = need <= ds.total[Total.FREE_IN_ALL], need <= apart
        hopeful = need < (tried_one if on_one else tried_all)
        if enough and hopeful and (on_one or need < tried):
            link = find_free(ds, need, one_node, whole)
            if link < 0 and not on_one:
                tried = min(tried, need)
        if PREEMPTS and link < 0 and hopeful:
            if n[PassCount.SEARCHING] == 0:
                search(jobs, h, key, work, now)
            if not one_node:
                link = clear_any(jobs, h, ds, key, work, row, mark, now, min_run)
            elif need <= ds.total[Total.LARGEST]:
                link = clear_node(jobs, h, ds, key, work, row, mark, now, min_run)
            else:
                link = clear_nodes(jobs, h, ds, key, work, row, mark, now, min_run, whole)
            if link >= 0:
                tried = 1 << 60
        if link < 0:
            if on_one:
                tried_one, known = min(tried_one, need), False
            else:
                tried_all = min(tried_all, need)
            why = _FRAGMENTED if enough else (_PRIORITY if PREEMPTS else _RESOURCES)
            jobs.i[row, Record.WHY] = why
            qs.lane[Lane.WHY, jobs.i[row, Record.LANE]] = why
            if in_order or (PREEMPTS and tried_all <= 1 and apart == 0 and _nothing_is_left(jobs, qs, ds, work)):
                break
            continue
        if PREEMPTS and again:
            halt(jobs, ds, log, row, now, _MOVED)
            n[PassCount.STOPPED] += 1
            jobs.i[row, Record.VICTIM] = 0
        else:
            leave(qs, lane)
            known = False
        start(jobs, h, ds, log, setting, row, link, again, now)
        n[PassCount.STARTED] += 1
        work.line[PassLine.BEGUN, n[PassCount.AT_BEGUN]] = row
        n[PassCount.AT_BEGUN] += 1
    if PREEMPTS:
        _afterwards(jobs, h, qs, ds, log, key, work, now)


@kernel
def _nothing_is_left(jobs: Records, qs: Lanes, ds: Devices, work: Pass) -> bool:
    """Whether no device is free and not even the smallest gang could stop another: then all rows still to come wait as well."""
    if ds.total[Total.FREE_IN_ALL] > 0:
        return False
    for place in range(work.number[PassCount.AT_TURNS]):
        qs.lane[Lane.WHY, jobs.i[work.line[PassLine.TURNS, place], Record.LANE]] = _PRIORITY
    return True


@kernel
def _afterwards(jobs: Records, h: Heaps, qs: Lanes, ds: Devices, log: LogColumns, key: Key, work: Pass, now: float) -> None:
    """Rows that have lost their devices for good wait again; rows that have begun get their ranks."""
    n = work.number
    h.size[FRONT] = 0
    begun = 0
    for place in range(n[PassCount.AT_VICTIMS]):
        row = work.line[PassLine.VICTIMS, place]
        if jobs.i[row, Record.VICTIM] != 0:
            jobs.i[row, Record.VICTIM] = 0
            halt(jobs, ds, log, row, now, _PREEMPTED)
            n[PassCount.STOPPED] += 1
            if begun < n[PassCount.AT_BEGUN]:  # a row that has begun instead takes its place among the ranks
                other = work.line[PassLine.BEGUN, begun]
                replace(h, RANK, row, other, _rank(jobs, other, key, work, now))
                begun += 1
            else:
                drop(h, RANK, row)
            drop(h, LEVEL, row)
            enter(qs, jobs.i[row, Record.LANE], jobs.f[row, Record.KEY], row, 0.0)
    for place in range(begun, n[PassCount.AT_BEGUN]):
        row = work.line[PassLine.BEGUN, place]
        put(h, RANK, row, _rank(jobs, row, key, work, now))
    if key.thresholds.shape[0] > 0:
        for place in range(n[PassCount.AT_BEGUN]):
            row = work.line[PassLine.BEGUN, place]
            put(h, LEVEL, row, next_level(jobs, row, key, now))


@kernel
def _rank(jobs: Records, row: int, key: Key, work: Pass, now: float) -> float:
    """The rank number of a row that begins. Having started can change its key; nothing else does in this instant."""
    if key.weight[Coefficient.FIRST_START] != 0.0:
        return rank_key(jobs, row, key, work, now)
    return rank_of(row, jobs.f[row, Record.KEY], work, now)


walk_without_stops = variant(walk, "walk_without_stops", PREEMPTS=False)
