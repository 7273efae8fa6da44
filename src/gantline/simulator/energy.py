"""What a run drew, emitted and paid for power: from the devices held over time, and from the grid over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Device, Node, Option
from gantline.core.grid import PowerGrid
from gantline.core.tables import Tables
from gantline.engine.log import Interval, Log

_JOULES = 3.6e6  # of a kilowatt-hour


def energy_of(tables: Tables, log: Log, grid: PowerGrid, end: float, since: float = 0.0) -> dict[str, Any]:
    """Kilowatt-hours, kilograms and money from the beginning of the run (or `since`) to its end; nothing where no power is given."""
    if not grid.power:
        return {}
    kind, begin, finish, units = _use(tables, log)
    names = tables.cluster.types
    busy, idle = (np.array([getattr(grid.power[name], state) for name in names]) for state in ("busy", "idle"))
    above = (busy - idle)[kind] * units  # watts that a held device draws beyond an idle one
    base = float((idle * _units(tables)).sum())
    found: dict[str, Any] = {"kwh": (float((above * (finish - begin)).sum()) + base * (end - since)) / _JOULES}
    for signal, name, scale in ((grid.carbon, "carbon_kg", 1e-3), (grid.electricity, "energy_cost", 1.0)):
        if signal is not None:
            found[name] = (
                scale * (float((above * signal.integral(begin, finish)).sum()) + base * float(signal.integral(since, end))) / _JOULES
            )
            if not signal.covers(end):
                found[f"{name}_repeats_from"] = signal.end
    return found


def _units(tables: Tables) -> Floats:
    """Devices of each type, or CPUs where its nodes have no devices."""
    found = np.zeros(len(tables.cluster.types))
    for node in tables.cluster.nodes:
        found[tables.cluster.types.index(node.type)] += node.gpus or node.cpus
    return found


def _use(tables: Tables, log: Log) -> tuple[Ints, Floats, Floats, Floats]:
    """Every spell in which a device, or CPUs alone, were held: type, beginning, end, how many. A device that two share counts once."""
    n = log.intervals
    start, end, count = log.LF[Interval.START, :n], log.LF[Interval.END, :n], log.LI[Interval.COUNT, :n].astype(np.int64)
    option, node = log.LI[Interval.OPTION, :n], log.LI[Interval.NODE, :n]
    gang = np.repeat(np.arange(n), count)
    place = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    device = log.LD[log.LI[Interval.OFFSET, :n][gang] + place].astype(np.int64)
    begin, finish = _once(device, start[gang], end[gang])
    alone = np.flatnonzero((count == 0) & (node >= 0))
    cpus = tables.options.F[Option.CPUS][np.maximum(option[alone], 0)]
    of_node = tables.NI[Node.TYPE]
    return (
        np.concatenate((of_node[tables.D[Device.NODE][device]], of_node[node[alone]])).astype(np.int64),
        np.concatenate((begin, start[alone])),
        np.concatenate((finish, end[alone])),
        np.concatenate((np.ones(len(device)), cpus)),
    )


def _once(device: Ints, begin: Floats, finish: Floats) -> tuple[Floats, Floats]:
    """The same spells, each cut by those of the same device that began before it."""
    order = np.lexsort((begin, device))
    latest: dict[int, float] = {}
    since = begin.copy()
    for at in order.tolist():
        number = int(device[at])
        since[at] = min(max(begin[at], latest.get(number, -np.inf)), finish[at])
        latest[number] = max(latest.get(number, -np.inf), finish[at])
    return since, finish
