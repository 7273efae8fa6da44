"""How much of the free GPUs the typical jobs of a run could not use, parts of GPUs included (Weng et al., ATC 2023, section 3.2)."""

from __future__ import annotations

import numpy as np

from gantline.core.areas import integral
from gantline.core.arrays import Bools, Floats
from gantline.core.columns import Device, Job, Option
from gantline.core.tables import Tables
from gantline.engine.log import Interval, Log
from gantline.policies.placement.parts.columns import WHOLE, PartNodes, TypicalMix
from gantline.policies.placement.parts.over_time import PartChanges, fragments_over_time
from gantline.policies.placement.parts.typical import Shape, accepted_models, typical_mix


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
    row, option, count, offset, own = (
        log.LI[name, :n].astype(np.int64) for name in (Interval.ROW, Interval.OPTION, Interval.COUNT, Interval.OFFSET, Interval.NODE)
    )
    end = np.where(np.isnan(log.LF[Interval.END, :n]), close, log.LF[Interval.END, :n])
    beside = WHOLE * tables.options.F[Option.CPUS][np.maximum(option, 0)]
    alone = np.flatnonzero((count == 0) & (own >= 0))  # CPUs of a node
    of = np.repeat(np.arange(n), count)
    devices = log.LD[np.arange(len(of)) + np.repeat(offset - (np.cumsum(count) - count), count)].astype(np.int64)
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
