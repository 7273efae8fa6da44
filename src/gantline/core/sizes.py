"""The sizes that jobs may have, with the speed that is believed of each: the same on both clocks, however the job was described.

A job that lists options of several sizes on a device type has exactly those, within [min_gpus, max_gpus]. One that lists a single size and
a wider range has every count in the range; its speed is then what the performance model says, else proportional to the count, which is
also what the engine assumes. Sizes at which nothing is done are left out. Where the model keeps the true speeds to itself, speeds are what
jobs have shown so far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Option
from gantline.core.jit import compiled
from gantline.core.options import OptionTable

NO_BOUND = 2**40  # devices: more than anything has


class JobSize(NamedTuple):
    """One size of a job on one device type; `Assignment(job, type=size.type, gpus=size.gpus)` gives it."""

    type: int
    gpus: int
    rate: float  # work per second, as it is believed


class SizeTable(NamedTuple):
    """The sizes of several jobs on one device type, in rising order: those of job i are entries [first[i], first[i + 1])."""

    first: Ints
    size: Ints
    rate: Floats  # work per second, as it is believed
    option: Ints  # which of the job's options; -1: a way derived from one


class SizeBounds(NamedTuple):
    """What jobs ask for, one entry each: devices, the fewest and the most, and where their options lie in the table."""

    asked: Ints
    least: Ints
    most: Ints
    first_option: Ints
    options: Ints


def read_sizes(bounds: SizeBounds, options: OptionTable, kind: int, capacity: int = NO_BOUND) -> SizeTable:
    """The sizes of jobs on one device type as their options and ranges say; sizes beyond its capacity are left out."""
    return SizeTable(*_read(bounds.least, bounds.most, bounds.first_option, bounds.options, options.F, options.I, kind, capacity))


def believed(table: SizeTable, asked: Ints, ids: list[str], kind: int, model: Any, learned: Callable[[], Any]) -> SizeTable:
    """The same with the speeds that the performance model lets policies know."""
    table = _as_modelled(table, ids, kind, model)
    known_speeds = getattr(model, "known_speeds", None)
    if known_speeds is not None:
        shown = learned()
        for job, (name, size) in enumerate(zip(ids, asked.tolist())):
            own = slice(table.first[job], table.first[job + 1])
            table.rate[own] = known_speeds(shown, name, size, table.size[own])
    return table


def _as_modelled(table: SizeTable, ids: list[str], kind: int, model: Any) -> SizeTable:
    """The same with the performance model's speeds of sizes that no option lists; those at which nothing is done are dropped."""
    first, size, rate, option = table
    owner = np.repeat(np.arange(len(ids)), np.diff(first))
    for entry in np.flatnonzero(option < 0).tolist():
        known_rate = model.rate(ids[owner[entry]], kind, int(size[entry]))
        rate[entry] = rate[entry] if known_rate is None else known_rate
    kept = rate > 0.0
    if kept.all():
        return table
    first = np.concatenate(([0], np.cumsum(np.bincount(owner[kept], minlength=len(ids))))).astype(np.int64)
    return SizeTable(first, size[kept], rate[kept], option[kept])


@compiled
def _read(
    fewest: Ints, highest: Ints, option_first: Ints, option_count: Ints, OF: Floats, OI: Ints, kind: int, capacity: int
) -> tuple[Ints, Ints, Floats, Ints]:
    n = fewest.size
    first, room = np.zeros(n + 1, np.int64), 0
    for i in range(n):
        room += max(option_count[i], min(highest[i], capacity) - fewest[i] + 1, 0)
    size, rate, option = np.empty(room, np.int64), np.empty(room), np.empty(room, np.int64)
    at = 0
    for i in range(n):
        least, most = max(fewest[i], 1), min(highest[i], capacity)
        begin, sizes, listed = at, 0, -1
        for k in range(option_count[i]):
            o = option_first[i] + k
            if OI[Option.TYPE, o] != kind or OI[Option.GPUS, o] == 0:
                continue
            if listed < 0 or OI[Option.GPUS, o] != OI[Option.GPUS, listed]:
                sizes += 1
            if listed < 0:
                listed = o
            if OF[Option.RATE, o] > 0.0 and least <= OI[Option.GPUS, o] <= most:
                place = at  # options come in any order, and of two for one size the faster counts
                while place > begin and size[place - 1] >= OI[Option.GPUS, o]:
                    place -= 1
                if place < at and size[place] == OI[Option.GPUS, o]:
                    if OF[Option.RATE, o] > rate[place]:
                        rate[place], option[place] = OF[Option.RATE, o], k
                    continue
                for moved in range(at, place, -1):
                    size[moved], rate[moved], option[moved] = size[moved - 1], rate[moved - 1], option[moved - 1]
                size[place], rate[place], option[place] = OI[Option.GPUS, o], OF[Option.RATE, o], k
                at += 1
        if sizes == 1 and least < highest[i] and OF[Option.RATE, listed] > 0.0:  # one size listed, a range accepted
            kept = option[begin] if at > begin else -1
            at = begin
            for count in range(least, most + 1):
                size[at], rate[at] = count, OF[Option.RATE, listed] * count / OI[Option.GPUS, listed]
                option[at] = kept if count == OI[Option.GPUS, listed] else -1
                at += 1
        first[i + 1] = at
    return first, size[:at], rate[:at], option[:at]
