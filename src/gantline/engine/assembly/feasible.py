"""One rule for options that cannot be had, checked before the run and the same under every policy.

An option that the cluster cannot hold (too many devices of a type, on more nodes than can be, or with more CPUs, memory or storage beside
them than its nodes have) is left out, as is one on a type that the cluster does not have. A job without any option left is refused. One
that has no option of the size that it asks for, listed or left, asks for the size of its first option.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.beside import amounts_beside
from gantline.core.cluster import Cluster
from gantline.core.columns import DEVICE_MEMORY, HOST_RESOURCES, Job, Option
from gantline.core.options import OptionTable
from gantline.core.tables import Tables

_MANY = 1 << 40
_SLACK = 1e-9  # CPUs and GB are divided by devices, and rounded


def can_hold(cluster: Cluster, table: OptionTable) -> Bools:
    """Whether the cluster, with no other job on it, has the devices, CPUs, memory and storage of each option."""
    size, kind = table.I[Option.GPUS], table.I[Option.TYPE]
    amounts = table.F[Option.CPUS : Option.CPUS + HOST_RESOURCES]
    capacity = np.array([cluster.gpus_of(name) for name in cluster.types], dtype=np.int64)
    found: Bools = _with_sides(cluster, size, kind, amounts) if amounts.any() else size <= capacity[kind]
    for at in np.flatnonzero(table.I[Option.NODES]).tolist():
        found[at] &= _can_span(cluster, int(kind[at]), int(size[at]), int(table.I[Option.NODES, at]))
    return found


def _can_span(cluster: Cluster, kind: int, size: int, span: int) -> bool:
    """Whether the type has so many nodes with room for an even part of the gang, the first ones for one device more."""
    room = sorted((node.gpus for node in cluster.nodes if node.type == cluster.types[kind]), reverse=True)[:span]
    parts = [size // span + (place < size % span) for place in range(span)]
    return len(room) == span <= max(size, 1) and all(have >= part for have, part in zip(room, parts))


def fits_device_memory(tables: Tables) -> Bools:
    """Whether devices of the type of each option have the memory that its job needs on each, where both are known."""
    has, need = np.array(tables.cluster.device_memory), tables.metrics.get(DEVICE_MEMORY)
    kind = tables.options.I[Option.TYPE]
    if need is None or not has.any():
        return np.ones(len(kind), dtype=np.bool_)
    owner = np.repeat(np.arange(tables.I.shape[1]), tables.I[Job.OPTION_COUNT])
    short: Bools = (has[kind] > 0.0) & (need[owner] > has[kind] + _SLACK) & (tables.options.I[Option.GPUS] > 0)
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
    has[owner[tables.options.I[Option.GPUS, : len(owner)] == I[Job.GPUS][owner]]] = True
    return np.flatnonzero(~has)


def take_first_size(tables: Tables, row: int) -> None:
    """The job asks for as many devices as the first of its options has."""
    I, old = tables.I, int(tables.I[Job.GPUS, row])
    size = int(tables.options.I[Option.GPUS, I[Job.OPTION_FIRST, row]])
    for column in (Job.MIN_GPUS, Job.MAX_GPUS):
        if I[column, row] == old:
            I[column, row] = size
    I[Job.GPUS, row] = size
