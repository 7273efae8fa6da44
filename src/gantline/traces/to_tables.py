"""From a trace and a cluster to the tables of a run."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.columns import DEVICE_MEMORY, HOST_RESOURCE_NAMES, HOST_RESOURCES, Job
from gantline.core.columns import Option as OptionColumn
from gantline.core.errors import TraceError, near
from gantline.core.fields import LONGEST
from gantline.core.host_resources import amounts_beside
from gantline.core.options import Option, OptionTable
from gantline.core.tables import Tables
from gantline.core.topology import BANDWIDTH, ITERATION, NETWORK, traffic_fault
from gantline.traces.options import parse_options
from gantline.traces.trace import Trace

# --- options that the cluster cannot hold are left out; a job that has none left is refused -----------------------------
_MANY = 1 << 40
_SLACK = 1e-9  # CPUs and GB are divided by devices, and rounded


def can_hold(cluster: Cluster, table: OptionTable) -> Bools:
    """Whether the cluster, with no other job on it, has the devices, CPUs, memory and storage of each option."""
    size, kind = table.I[OptionColumn.GPUS], table.I[OptionColumn.TYPE]
    amounts = table.F[OptionColumn.CPUS : OptionColumn.CPUS + HOST_RESOURCES]
    capacity = np.array([cluster.gpus_of(name) for name in cluster.types], dtype=np.int64)
    found: Bools = _with_sides(cluster, size, kind, amounts) if amounts.any() else size <= capacity[kind]
    for at in np.flatnonzero(table.I[OptionColumn.NODES]).tolist():
        found[at] &= _can_span(cluster, int(kind[at]), int(size[at]), int(table.I[OptionColumn.NODES, at]))
    return found


def _can_span(cluster: Cluster, kind: int, size: int, span: int) -> bool:
    """Whether the type has so many nodes with room for an even part of the gang, the first ones for one device more."""
    room = sorted((node.gpus for node in cluster.nodes if node.type == cluster.types[kind]), reverse=True)[:span]
    parts = [size // span + (place < size % span) for place in range(span)]
    return len(room) == span <= max(size, 1) and all(have >= part for have, part in zip(room, parts))


def fits_device_memory(tables: Tables) -> Bools:
    """Whether devices of the type of each option have the memory that its job needs on each, where both are known."""
    has, need = np.array(tables.cluster.device_memory), tables.metrics.get(DEVICE_MEMORY)
    kind = tables.options.I[OptionColumn.TYPE]
    if need is None or not has.any():
        return np.ones(len(kind), dtype=np.bool_)
    owner = np.repeat(np.arange(tables.I.shape[1]), tables.I[Job.OPTION_COUNT])
    short: Bools = (has[kind] > 0.0) & (need[owner] > has[kind] + _SLACK) & (tables.options.I[OptionColumn.GPUS] > 0)
    return ~short


def _with_sides(cluster: Cluster, size: Ints, kind: Ints, amounts: Floats) -> Bools:
    found = np.zeros(len(size), dtype=bool)
    ways, which = np.unique(np.stack([kind, size == 0, *amounts]), axis=1, return_inverse=True)
    for number, (code, alone, *each) in enumerate(ways.T.tolist()):
        nodes = [node for node in cluster.nodes if node.type == cluster.types[int(code)]]
        if alone:
            found[which.ravel() == number] = any(min(map(_times, amounts_beside(node), each)) > 0 for node in nodes)
            continue
        room = sum(min(node.gpus, *map(_times, amounts_beside(node), each)) for node in nodes)
        mine = which.ravel() == number
        found[mine] = size[mine] <= room
    return found


def _times(have: float, each: float) -> int:
    """How many devices a node can serve with so much beside each."""
    return int(min((have + _SLACK) / each, _MANY)) if each * _MANY > have else _MANY


def leave_out(tables: Tables, possible: Bools) -> int:
    """Keep the possible options only; how many are left out. Every job has one left."""
    I, options = tables.I, tables.options
    owner = np.repeat(np.arange(I.shape[1]), I[Job.OPTION_COUNT])
    tables.options = OptionTable(options.F[:, possible].copy(), options.I[:, possible].copy())
    I[Job.OPTION_COUNT] = np.bincount(owner[possible], minlength=I.shape[1])
    I[Job.OPTION_FIRST] = np.cumsum(I[Job.OPTION_COUNT]) - I[Job.OPTION_COUNT]
    return int((~possible).sum())


def jobs_without_their_size(tables: Tables) -> Ints:
    """Rows none of whose options has as many devices as the job asks for."""
    I = tables.I
    owner = np.repeat(np.arange(I.shape[1]), I[Job.OPTION_COUNT])
    has = np.zeros(I.shape[1], dtype=bool)
    has[owner[tables.options.I[OptionColumn.GPUS, : len(owner)] == I[Job.GPUS][owner]]] = True
    return np.flatnonzero(~has)


def take_first_size(tables: Tables, row: int) -> None:
    """The job asks for as many devices as the first of its options has."""
    I, old = tables.I, int(tables.I[Job.GPUS, row])
    size = int(tables.options.I[OptionColumn.GPUS, I[Job.OPTION_FIRST, row]])
    for column in (Job.MIN_GPUS, Job.MAX_GPUS):
        if I[column, row] == old:
            I[column, row] = size
    I[Job.GPUS, row] = size


# --- tables -------------------------------------------------------------------------------------------------------------


def load_tables(trace: Trace, cluster: Cluster, *, checkpoint: float = 0.0, sizes_bind: bool = True) -> Tables:
    """Tables with one row per job of the trace, none of which has arrived yet; unless sizes bind, too large a request may get less."""
    tables = Tables.empty(cluster, len(trace))
    F, I = tables.F, tables.I
    tables.names = partial(trace.texts, "job")
    F[Job.ARRIVAL] = trace.frame["arrival"].to_numpy()
    F[Job.WORK] = trace.frame["duration"].to_numpy()
    F[Job.ESTIMATE] = F[Job.WORK]
    if checkpoint:
        F[Job.CHECKPOINT] = checkpoint
    I[Job.GPUS] = trace.frame["gpus"].to_numpy()
    for name, column in (("deadline", Job.DEADLINE), ("priority", Job.PRIORITY), ("weight", Job.WEIGHT)):
        if name in trace.columns:
            values = _floats(trace, name)
            F[column] = np.where(np.isnan(values), F[column], values)
    for names, name, column in (
        (tables.users, "user", Job.USER),
        (tables.queues, "queue", Job.QUEUE),
        (tables.apps, "app", Job.APP),
        (tables.models, "model", Job.MODEL),
    ):
        if name in trace.columns and len(trace):
            names[:], I[column] = trace.codes(name)
    for name, column in (("min_gpus", Job.MIN_GPUS), ("max_gpus", Job.MAX_GPUS)):
        I[column] = trace.frame[name].fill_null(trace.frame["gpus"]).to_numpy() if name in trace.columns else I[Job.GPUS]
    if "reserved" in trace.columns:
        I[Job.RESERVED] = trace.frame["reserved"].str.extract(r":(\d+)$").cast(pl.Int64).fill_null(0).to_numpy()
    tables.metrics = {name: values.copy() for name, values in trace.metrics.items()}
    if cluster.links:
        _check_traffic(trace, tables)
    one_way = _fill_options(trace, cluster, tables)
    if sizes_bind:
        _check_sizes(trace, cluster, tables)
    I[Job.SMALLEST] = I[Job.GPUS] if one_way else smallest_options(tables)
    return tables


def _check_traffic(trace: Trace, tables: Tables) -> None:
    """Refuse jobs whose use of links cannot be."""
    fault = traffic_fault(*(tables.metric(name) for name in (ITERATION, NETWORK, BANDWIDTH)))
    if fault is not None:
        raise _row_error(trace, fault.job, fault.metric, fault.what, fault.fix)


def _floats(trace: Trace, name: str) -> Floats:
    """A column of numbers, whatever they are stored as."""
    return trace.frame[name].cast(pl.Float64).to_numpy()


def _fill_options(trace: Trace, cluster: Cluster, tables: Tables) -> bool:
    """The options of jobs; whether each has one with the devices that it asks for."""
    rows = len(trace)
    I = tables.I
    if "options" in trace.columns:
        _alternatives(trace, cluster, tables)
        return False
    gpu_types = [code for code, name in enumerate(cluster.types) if cluster.gpus_of(name) > 0]
    default = np.array(gpu_types or [0], dtype=np.int64)
    wanted: Ints | None = None
    if "type" in trace.columns and rows:
        names, code = trace.codes("type")
        kinds = np.array([cluster.type_code(name) if name else -2 for name in names], dtype=np.int64)
        wanted = kinds[code]
        absent = np.flatnonzero(wanted == -1)
        if len(absent):
            raise _absent(trace, int(absent[0]), names[code[absent[0]]], cluster)
    if len(default) == 1:  # one option for every job, the usual case
        I[Job.OPTION_COUNT], I[Job.OPTION_FIRST] = 1, np.arange(rows)
        owner: Ints | slice = slice(None)
        kinds = default if wanted is None else np.where(wanted < 0, default[0], wanted)
    else:
        wanted = np.full(rows, -1, dtype=np.int64) if wanted is None else wanted
        anywhere = wanted < 0
        per_row = np.where(anywhere, len(default), 1)
        I[Job.OPTION_COUNT] = per_row
        I[Job.OPTION_FIRST] = np.concatenate([[0], np.cumsum(per_row)[:-1]])
        owner = np.repeat(np.arange(rows), per_row)
        place = np.arange(len(owner)) - I[Job.OPTION_FIRST][owner]
        kinds = np.where(anywhere[owner], default[np.minimum(place, len(default) - 1)], wanted[owner])
    table = OptionTable.rigid(kinds, I[Job.GPUS][owner])
    for k, name in enumerate(HOST_RESOURCE_NAMES):
        if (each := _per_device(trace, cluster, I, name)) is not None:
            table.F[OptionColumn.CPUS + k] = each[owner]
    tables.options = table
    return len(default) == 1


def _per_device(trace: Trace, cluster: Cluster, I: Ints, name: str) -> Floats | None:
    """The CPUs, memory or storage that jobs ask for beside each device; None where they do not say, or nodes do not."""
    if name not in trace.columns or not any(getattr(node, name) > 0 for node in cluster.nodes):
        return None
    found: Floats = np.nan_to_num(_floats(trace, name)) / np.maximum(I[Job.GPUS], 1)
    return found


def _alternatives(trace: Trace, cluster: Cluster, tables: Tables) -> None:
    """Jobs with several options, from the `options` column; those on types that the cluster does not have are left out."""
    listed: list[Option] = []
    F, I = tables.F, tables.I
    anywhere = [code for code, name in enumerate(cluster.types) if cluster.gpus_of(name) > 0]
    types = trace.texts("type") if "type" in trace.columns else [""] * len(trace)
    sides = [_per_device(trace, cluster, I, name) for name in HOST_RESOURCE_NAMES]
    for row, text in enumerate(trace.frame["options"].to_list()):
        I[Job.OPTION_FIRST, row] = len(listed)
        if not text:
            beside = [0.0 if each is None else float(each[row]) for each in sides]
            codes = [cluster.type_code(types[row])] if types[row] else anywhere
            if codes == [-1]:
                raise _absent(trace, row, types[row], cluster)
            listed += [_option(code, int(I[Job.GPUS, row]), 1.0, beside) for code in codes]
        else:
            ways = parse_options(text)
            if all(cluster.type_code(way.type) < 0 for way in ways):
                raise _absent(trace, row, ways[0].type, cluster, "options")
            for way in ways:
                if (code := cluster.type_code(way.type)) < 0:
                    continue
                if not way.duration > 0:
                    raise _row_error(trace, row, "options", f"takes {way.duration:g} s on '{way.type}'", "durations must be positive")
                if way.duration > LONGEST:
                    raise _row_error(
                        trace, row, "options", f"takes {way.duration:g} s on '{way.type}', more than 300 years", "times are in seconds"
                    )
                per = max(way.gpus, 1)
                beside = [way.cpus / per, way.memory / per, way.storage / per]
                listed.append(_option(code, way.gpus, F[Job.WORK, row] / way.duration, beside, way.span))
        I[Job.OPTION_COUNT, row] = len(listed) - I[Job.OPTION_FIRST, row]
    tables.options = OptionTable.build(listed)


def _option(kind: int, gpus: int, rate: float, beside: list[float], span: int = 0) -> Option:
    cpus, memory, storage = beside
    return Option(kind, gpus, rate, cpus=cpus, memory=memory, nodes=span, storage=storage)


def _check_sizes(trace: Trace, cluster: Cluster, tables: Tables) -> None:
    """Leave out options that cannot be had (`feasible`); refuse jobs without any."""
    I = tables.I
    possible = can_hold(cluster, tables.options) & fits_device_memory(tables)
    if not (possible.all() and I[Job.OPTION_COUNT].all()):
        owner = np.repeat(np.arange(I.shape[1]), I[Job.OPTION_COUNT])
        able = np.zeros(I.shape[1], dtype=bool)
        able[owner[possible]] = True
        if not able.all():
            raise _impossible(trace, cluster, tables, able, owner)
        possible |= (I[Job.MIN_GPUS] < I[Job.MAX_GPUS])[
            owner
        ]  # a curve reaches beyond the cluster: policies that size jobs look at its end
        tables.left_out = 0 if possible.all() else leave_out(tables, possible)
    if "options" in trace.columns:
        for row in jobs_without_their_size(tables).tolist():
            take_first_size(tables, row)


def _impossible(trace: Trace, cluster: Cluster, tables: Tables, able: Bools, owner: Ints) -> TraceError:
    """The error for the first job that can never run."""
    OI, I = tables.options.I, tables.I
    capacity = np.array([cluster.gpus_of(name) for name in cluster.types], dtype=np.int64)
    row, count = int(np.flatnonzero(~able)[0]), int((~able).sum())
    more = f" ({count} such jobs)" if count > 1 else ""
    if not fits_device_memory(tables)[owner == row].any():
        has = ", ".join(f"{name} {memory:g}" for name, memory in zip(cluster.types, cluster.device_memory) if memory)
        need = float(tables.metrics[DEVICE_MEMORY][row])
        what = f"needs {need:g} GB of device memory and can never run on '{cluster}': devices have {has} GB{more}"
        return _row_error(trace, row, DEVICE_MEMORY, what, "use larger devices, such as v100:4x8/32d, or drop the job from the trace")
    if (OI[OptionColumn.GPUS] <= capacity[OI[OptionColumn.TYPE]])[owner == row].any():
        field = "options" if "options" in trace.frame.columns else "memory"
        what = f"can never run on '{cluster}': no node has the CPUs, the memory and the storage that it asks for{more}"
        return _row_error(trace, row, field, what, "give the nodes more, such as gpu:4x8/96c/512g, or drop the job from the trace")
    what = f"asks for {int(I[Job.GPUS, row])} GPUs and can never run on '{cluster}' with {int(capacity.max(initial=0))} of a kind{more}"
    return _row_error(trace, row, "gpus", what, "use a larger --cluster, or drop the job from the trace")


def smallest_options(tables: Tables) -> Ints:
    """Devices of each job's smallest option."""
    I = tables.I
    if len(tables.options) == I.shape[1] and (I[Job.OPTION_COUNT] == 1).all() and (I[Job.OPTION_FIRST] == np.arange(I.shape[1])).all():
        return tables.options.I[OptionColumn.GPUS, : I.shape[1]]
    owner = np.repeat(np.arange(I.shape[1]), I[Job.OPTION_COUNT])
    smallest = np.full(I.shape[1], np.iinfo(np.int64).max)
    np.minimum.at(smallest, owner, tables.options.I[OptionColumn.GPUS])
    return smallest


def absent_types(trace: Trace, cluster: Cluster) -> list[str]:
    """The types that jobs could run on and the cluster does not have: those options are left out."""
    if "options" not in trace.columns:
        return []
    named = trace.frame["options"].drop_nulls().str.extract_all(r"[^:=|/\s]+:").explode().drop_nulls().unique(maintain_order=True)
    return [name for name in named.str.strip_suffix(":").to_list() if cluster.type_code(name) < 0]


def _absent(trace: Trace, row: int, name: str, cluster: Cluster, field: str = "type") -> TraceError:
    nameless = cluster.spec[:1].isdigit()  # 2x8, which has GPUs of no type in particular
    fix = f"say what its nodes have: {name}:{cluster.spec}" if nameless else near(name, cluster.types)
    return _row_error(trace, row, field, f"asks for '{name}', which the cluster does not have", fix)


def _row_error(trace: Trace, row: int, field: str, what: str, fix: str) -> TraceError:
    job = trace.frame["job"][row]
    return TraceError(f"job '{job}' {what}", file=trace.source, line=row + 2, field=field, fix=fix)
