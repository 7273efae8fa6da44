"""Making room: which devices a gang gets, and which lower gangs it stops for them."""

from __future__ import annotations

from gantline.core.jit import kernel_from_zero as kernel
from gantline.engine.dense import devices as d
from gantline.engine.dense import records as r
from gantline.engine.dense.devices import Devices, choose_many, lend, take_chosen, take_first_free, take_tightest
from gantline.engine.dense.heap import Heaps
from gantline.engine.dense.keys import Key
from gantline.engine.dense.low_ranks import AT_TURNS, AT_VICTIMS, BACK, LOW, TURNS, VICTIMS, Pass, behind
from gantline.engine.dense.records import Records


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
def clear_any(jobs: Records, h: Heaps, ds: Devices, key: Key, work: Pass, row: int, mark: float, now: float, min_run: float) -> int:
    """Stop the lowest gangs until enough devices are free anywhere, if stopping helps at all."""
    need, gain, place = jobs.i[row, r.NEED], ds.total[d.FREE_IN_ALL], work.number[BACK]
    while gain < need:
        other = behind(jobs, h, key, work, place, mark, row, now)
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
def clear_node(jobs: Records, h: Heaps, ds: Devices, key: Key, work: Pass, row: int, mark: float, now: float, min_run: float) -> int:
    """Stop the lowest gangs on the node that stopping gangs from below would clear first."""
    need, target, place = jobs.i[row, r.NEED], -1, 0
    while target < 0:
        other = behind(jobs, h, key, work, place, mark, row, now)
        if other < 0:
            break
        place += 1
        if _stays(jobs, other, now, min_run):
            continue
        link = jobs.i[other, r.SEGMENT]
        while link >= 0:
            node = ds.chain[link, d.NODE]
            ds.node[d.GAIN, node] += ds.chain[link, d.HELD]
            if ds.node[d.COUNT, node] + ds.node[d.GAIN, node] >= need:
                target = node
                break
            link = ds.chain[link, d.NEXT]
    for at in range(place):
        link = jobs.i[work.line[LOW, at], r.SEGMENT]
        while link >= 0:
            ds.node[d.GAIN, ds.chain[link, d.NODE]] = 0
            link = ds.chain[link, d.NEXT]
    if target < 0:
        return -1
    at = 0
    while ds.node[d.COUNT, target] < need:
        other = work.line[LOW, at]
        at += 1
        if _stays(jobs, other, now, min_run):
            continue
        link = jobs.i[other, r.SEGMENT]
        while link >= 0 and ds.chain[link, d.NODE] != target:
            link = ds.chain[link, d.NEXT]
        if link >= 0:
            _stop(jobs, ds, work, other)
    return take_tightest(ds, need)


@kernel
def clear_nodes(
    jobs: Records, h: Heaps, ds: Devices, key: Key, work: Pass, row: int, mark: float, now: float, min_run: float, whole: bool
) -> int:
    """Stop gangs from the lowest rank up until one larger than a node fits, if it would when all of them had stopped."""
    need = jobs.i[row, r.NEED]
    for node in range(ds.node.shape[1]):
        ds.node[d.ROOM, node] = ds.node[d.COUNT, node]
    place = 0
    while True:
        other = behind(jobs, h, key, work, place, mark, row, now)
        if other < 0:
            break
        place += 1
        if not _stays(jobs, other, now, min_run):
            link = jobs.i[other, r.SEGMENT]
            while link >= 0:
                ds.node[d.ROOM, ds.chain[link, d.NODE]] += ds.chain[link, d.HELD]
                link = ds.chain[link, d.NEXT]
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
def find_free(ds: Devices, need: int, one_node: bool, whole: bool) -> int:
    """Devices that are free; -1: none that the rule allows."""
    if not one_node:
        return take_first_free(ds, need)
    if need <= ds.total[d.LARGEST]:
        return take_tightest(ds, need)
    used = choose_many(ds, d.COUNT, need, whole)
    return take_chosen(ds, used) if used > 0 else -1
