"""Making room: which devices a gang gets, and which lower gangs it stops for them."""

from __future__ import annotations

from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.dense.devices import ChainLink, Devices, NodeRow, Total, choose_many, lend, take_chosen, take_first_free, take_tightest
from gantline.engine.dense.heap import Heaps
from gantline.engine.dense.keys import Key
from gantline.engine.dense.low_ranks import Pass, PassCount, PassLine, behind
from gantline.engine.dense.records import Record, Records


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
