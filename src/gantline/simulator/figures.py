"""Figures of a run beside its summary: money, power, links, fragments of GPUs, shared devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.columns import Device, Job, Node, Option
from gantline.core.facts import PowerGrid
from gantline.core.tables import Tables
from gantline.core.topology import Traffic
from gantline.engine.log import Interval, Log
from gantline.models.prices import prices_of
from gantline.policies.placement.parts.fragments import (
    WHOLE,
    PartChanges,
    PartNodes,
    Shape,
    TypicalMix,
    accepted_models,
    fragments_over_time,
    typical_mix,
)
from gantline.simulator.areas import integral
from gantline.simulator.run_columns import busy_by_device, held_devices, once_in_use


# --- money: device-hours of every type times their prices; a device that two jobs share is paid once --------------------
def bill(tables: Tables, log: Log, prices: Mapping[str, float], counted: Mapping[str, Any]) -> float:
    """Money for all devices held; a regime that counts device-seconds itself gives them."""
    names = [name for name in tables.cluster.types if tables.cluster.gpus_of(name)]
    seconds = counted.get("paid_device_seconds") or held_by_type(tables, log)
    return sum(seconds.get(name, 0.0) * price for name, price in zip(names, prices_of(names, prices))) / 3600.0


def held_by_type(tables: Tables, log: Log) -> dict[str, float]:
    """Device-seconds held of every type, shared ones once."""
    seconds = busy_by_device(log, tables.D.shape[1], -np.inf, np.inf, np.nan)
    kind = tables.NI[Node.TYPE][tables.D[Device.NODE]]
    by_type = np.bincount(kind, weights=seconds, minlength=len(tables.cluster.types))
    return dict(zip(tables.cluster.types, map(float, by_type)))


# --- power: what a run drew, emitted and paid, from the devices held and from the grid over time ------------------------
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
    gang, device = held_devices(log)
    begin, finish = once_in_use(device, start[gang], end[gang])[0], end[gang]
    alone = np.flatnonzero((count == 0) & (node >= 0))
    cpus = tables.options.F[Option.CPUS][np.maximum(option[alone], 0)]
    of_node = tables.NI[Node.TYPE]
    return (
        np.concatenate((of_node[tables.D[Device.NODE][device]], of_node[node[alone]])).astype(np.int64),
        np.concatenate((begin, start[alone])),
        np.concatenate((finish, end[alone])),
        np.concatenate((np.ones(len(device)), cpus)),
    )


# --- links: how loaded each was and for how long too much, how long jobs communicated -----------------------------------


def link_use(cluster: Cluster, log: Log, tables: Tables, close: float) -> dict[str, object]:
    """Entries of the summary of a run on a cluster that names links."""
    n = log.intervals
    row, count, offset = (log.LI[column, :n].astype(np.int64) for column in (Interval.ROW, Interval.COUNT, Interval.OFFSET))
    found: dict[str, object] = {}
    traffic = Traffic.read(tables.lent.metric, np.arange(tables.F.shape[1]))
    start, end = log.LF[Interval.START, :n], np.where(np.isnan(log.LF[Interval.END, :n]), close, log.LF[Interval.END, :n])
    if apart := cluster.routes.apart():
        found["nodes_apart"] = len(apart)
    steps: list[list[tuple[float, float]]] = [[] for _ in cluster.links]
    for k in np.flatnonzero(count > 1).tolist():
        for link in cluster.routes.crossed(tuple(log.LD[offset[k] : offset[k] + count[k]].tolist())):
            most = cluster.links[link].bandwidth
            mean = traffic.mean(int(row[k]), most) / most
            steps[link] += [(float(start[k]), mean), (float(end[k]), -mean)]
    whole = float(end.max() - start.min()) if n else 0.0
    found["links"] = [
        {"a": link.a, "b": link.b, "bandwidth": link.bandwidth} | _loads(steps[number], whole) for number, link in enumerate(cluster.links)
    ]
    found["communication_seconds"] = _communication(tables, traffic, row, log.LI[Interval.OPTION, :n].astype(np.int64), end - start)
    return found


def _loads(steps: list[tuple[float, float]], whole: float) -> dict[str, float]:
    """How many gangs crossed a link, its mean load over the run, and for how long the load was above one."""
    now, load, sum_of, over = 0.0, 0.0, 0.0, 0.0
    for time, change in sorted(steps, key=lambda step: (step[0], step[1])):
        sum_of += load * (time - now)
        over += (time - now) if load > 1.0 + 1e-9 else 0.0
        now, load = time, load + change
    return {"gangs": len(steps) // 2, "mean_load": sum_of / whole if whole > 0.0 else 0.0, "overload_seconds": over}


def _communication(tables: Tables, traffic: Traffic, row: Ints, option: Ints, seconds: Floats) -> float:
    """Seconds that jobs held devices beyond what they computed: communication, waiting for links included."""
    held = np.bincount(row, weights=seconds, minlength=tables.F.shape[1])
    rate = np.ones(tables.F.shape[1])
    rate[row] = np.maximum(tables.options.F[Option.RATE][option], 1e-300)
    computes = np.divide(traffic.iteration - traffic.network, traffic.iteration, out=np.ones(len(held)), where=traffic.known)
    return float(np.maximum(held - tables.F[Job.DONE] / rate * computes, 0.0)[traffic.known].sum())


# --- fragments: free GPUs that typical jobs could not use, parts included (Weng et al., ATC 2023, section 3.2) ----------


def asks_for_parts(tables: Tables) -> Bools:
    """Which jobs ask for a part of one GPU."""
    demand = tables.metrics.get("gpu_demand")
    rows = tables.I.shape[1]
    return np.zeros(rows, dtype=np.bool_) if demand is None else (tables.I[Job.GPUS] == 1) & (demand > 0.0) & (demand < 1.0)


def typical_fragmentation(tables: Tables, log: Log, shares: bool, begin: float, end: float) -> float:
    """Of the GPU time that was free, the share that typical jobs could not use; zero if there was none."""
    steps, moments = typical_fragments(tables, log, shares, begin, end), np.array([begin, end])
    free, fragments = (float(np.diff(integral(steps[:, 0], steps[:, column], moments))[0]) for column in (1, 2))
    return fragments / free if free > 0.0 else 0.0


def typical_fragments(tables: Tables, log: Log, shares: bool, begin: float, end: float) -> Floats:
    """Rows of time, and of free GPU and fragments from then on, in thousandths of a GPU.

    `shares`: whether the policy gives jobs that ask for a part that part; else they hold whole GPUs.
    """
    part: Floats = np.where(asks_for_parts(tables), WHOLE * tables.metrics.get("gpu_demand", np.nan), WHOLE)
    cluster = tables.cluster
    cpus = np.array([node.cpus for node in cluster.nodes], dtype=np.float64)
    nodes = PartNodes.idle(WHOLE * cpus, np.zeros(len(cpus)), cluster.node_gpus, cluster.node_type)
    changes = _changes(tables, log, part if shares else np.full(len(part), WHOLE), end)
    return fragments_over_time(nodes, changes, _mix(tables, part, int(cluster.node_gpus.max(initial=0))), begin)


def _mix(tables: Tables, part: Floats, widest: int) -> TypicalMix:
    """The typical mix of all jobs, each by the first of its options; a gang larger than every node asks for a whole one."""
    first, count = tables.I[Job.OPTION_FIRST], tables.I[Job.OPTION_COUNT]
    kinds, gpus, cpus = tables.options.I[Option.TYPE], tables.options.I[Option.GPUS], tables.options.F[Option.CPUS]
    shapes = []
    for row in np.flatnonzero(count > 0).tolist():
        at = int(first[row])
        wanted = min(int(gpus[at]), widest)
        accepted = {str(kind) for kind in kinds[at : at + int(count[row])].tolist()}
        shapes.append(Shape(WHOLE * float(cpus[at]) * max(wanted, 1), float(part[row]) * (wanted > 0), wanted, "|".join(sorted(accepted))))
    return typical_mix(shapes, accepted_models([str(kind) for kind in range(len(tables.cluster.types))]))


def _changes(tables: Tables, log: Log, part: Floats, close: float) -> PartChanges:
    """What the intervals of the log took and gave back."""
    n = log.intervals
    row, option, count, own = (log.LI[name, :n].astype(np.int64) for name in (Interval.ROW, Interval.OPTION, Interval.COUNT, Interval.NODE))
    end = np.where(np.isnan(log.LF[Interval.END, :n]), close, log.LF[Interval.END, :n])
    beside = WHOLE * tables.options.F[Option.CPUS][np.maximum(option, 0)]
    alone = np.flatnonzero((count == 0) & (own >= 0))  # CPUs of a node
    of, devices = held_devices(log)
    node = tables.D[Device.NODE][devices].astype(np.int64)
    all_of = np.concatenate([of, alone])
    return PartChanges.of(
        log.LF[Interval.START, :n][all_of],
        end[all_of],
        np.concatenate([node, own[alone]]),
        np.concatenate([devices - tables.cluster.first_device[node], np.full(len(alone), -1)]),
        np.concatenate([part[row[of]], np.zeros(len(alone))]),
        beside[all_of],
    )


# --- shared devices: with which others, on which nodes, how often a speed changed ---------------------------------------


def sharing_columns(log: Log, tables: Tables) -> dict[str, pl.Series]:
    """`partners` and `nodes` in order of first meeting, joined by ``|``, and `rate_changes`; nothing where no job shared a device."""
    if tables.rate_changes is None:
        return {}
    rows = len(tables.ids)
    places, spans = _spans(log, tables, rows)
    partners: list[dict[int, None]] = [{} for _ in range(rows)]
    for _, row, other in sorted(meeting for of_device in spans.values() for meeting in _meetings(of_device)):
        partners[row].setdefault(other)
        partners[other].setdefault(row)
    names = [node.name for node in tables.cluster.nodes]
    return {
        "partners": pl.Series(["|".join(tables.ids[other] for other in found) for found in partners], dtype=pl.String),
        "rate_changes": pl.Series(tables.rate_changes[:rows]),
        "nodes": pl.Series(["|".join(names[node] for node in found) for found in places], dtype=pl.String),
    }


def _spans(log: Log, tables: Tables, rows: int) -> tuple[list[dict[int, None]], dict[int, list[tuple[float, float, int]]]]:
    """Per row the nodes that it was on; per device (start, end, row) of the gangs that held it."""
    places: list[dict[int, None]] = [{} for _ in range(rows)]
    spans: dict[int, list[tuple[float, float, int]]] = {}
    node_of = tables.D[Device.NODE].tolist()
    for at in range(int(log.LN[0])):
        row, first, count = (int(log.LI[name, at]) for name in (Interval.ROW, Interval.OFFSET, Interval.COUNT))
        start, end = float(log.LF[Interval.START, at]), float(log.LF[Interval.END, at])
        if start == end:  # withdrawn before it began
            continue
        for device in log.LD[first : first + count].tolist():
            places[row].setdefault(node_of[device])
            spans.setdefault(device, []).append((start, np.inf if np.isnan(end) else end, row))
        if count == 0 and log.LI[Interval.NODE, at] >= 0:
            places[row].setdefault(int(log.LI[Interval.NODE, at]))
    return places, spans


def _meetings(spans: list[tuple[float, float, int]]) -> list[tuple[float, int, int]]:
    """(when, row, other) for rows that held one device at the same time."""
    found, there = [], list[tuple[float, int]]()
    for start, end, row in sorted(spans):
        there = [one for one in there if one[0] > start]
        found += [(start, row, other) for _, other in there if other != row]
        there.append((end, row))
    return found
