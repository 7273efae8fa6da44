"""Measured throughputs in a run: every job's options get the speeds of its type and gang size, and a model for the rest."""

from __future__ import annotations

import ast

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job, Option
from gantline.core.errors import TraceError, UsageError
from gantline.core.options import OptionTable
from gantline.core.tables import Tables
from gantline.engine.assembly.load import smallest_options
from gantline.models.throughput_model import ThroughputModel
from gantline.models.throughput_table import ThroughputTable
from gantline.traces.trace import Trace


def use_throughputs(tables: Tables, trace: Trace, table: ThroughputTable, *, across: bool = False) -> ThroughputModel:
    """Give the options of all jobs their measured speeds; those on which a job cannot run are taken away.

    The trace's work is steps, its duration what the engine counts. With ``across`` gangs on several nodes run at the
    table's speeds for that.
    """
    names, steps = job_types(trace), _steps(trace)
    model = ThroughputModel.of(table, tables.cluster.types, tables.ids, names, steps, tables.F[Job.WORK], across=across)
    tables.steps = steps
    owner = np.repeat(np.arange(tables.F.shape[1]), tables.I[Job.OPTION_COUNT])
    speed, apart = _speeds(tables, model, trace, names, owner)
    kept = speed > 0
    counts = np.bincount(owner[kept], minlength=len(names))
    if not counts.all():
        row = int(np.flatnonzero(counts == 0)[0])
        more = f" ({int((counts == 0).sum())} such jobs)" if (counts == 0).sum() > 1 else ""
        raise _fault(trace, row, f"{names[row]} has speed 0 on every device type it may use{more}", "correct the table or the cluster")
    tables.options = OptionTable(tables.options.F.compress(kept, axis=1), tables.options.I.compress(kept, axis=1))
    tables.options.F[Option.RATE] = (speed / model.unit[owner])[kept]
    tables.options.F[Option.RATE_SPREAD] = (apart / model.unit[owner])[kept]
    tables.I[Job.OPTION_COUNT] = counts
    tables.I[Job.OPTION_FIRST] = np.cumsum(counts) - counts
    tables.I[Job.SMALLEST] = smallest_options(tables)
    return model


def _speeds(tables: Tables, model: ThroughputModel, trace: Trace, names: list[tuple[str, int]], owner: Ints) -> tuple[Floats, Floats]:
    """Steps per second of every option, within as few nodes as it can and across more."""
    kind, gpus = tables.options.I[Option.TYPE], tables.options.I[Option.GPUS]
    key = model.key[owner]
    for at in np.flatnonzero(gpus != tables.I[Job.GPUS][owner]):
        key[at] = model.table.key(names[owner[at]][0], int(gpus[at]))
    _refuse_gaps(model, model.alone[key, kind], trace, names, owner, kind, "")
    speed = apart = model.alone[key, kind]
    if model.across:
        size = np.array([max((n.gpus for n in tables.cluster.nodes if n.type == name), default=1) for name in tables.cluster.types])
        spread = np.where((gpus > 1) & (speed > 0), model.alone_across[key, kind], speed)
        _refuse_gaps(model, spread, trace, names, owner, kind, " across nodes")
        apart, speed = spread, np.where(gpus > size[kind], spread, speed)
    return speed, apart


def _refuse_gaps(
    model: ThroughputModel, speed: Floats, trace: Trace, names: list[tuple[str, int]], owner: Ints, kind: Ints, where: str
) -> None:
    gap = np.flatnonzero(np.isnan(speed))
    if len(gap):
        row = int(owner[gap[0]])
        what = f"no throughput of {names[row]} on '{model.types[kind[gap[0]]]}'{where} in {model.table.source or 'the table'}"
        raise _fault(trace, row, what, "measure it, or write 0 if the job cannot run there")


def job_types(trace: Trace) -> list[tuple[str, int]]:
    """Job type and gang size of every job."""
    if "throughput_key" not in trace.frame.columns:
        raise UsageError(
            "has no column 'throughput_key'", where=f"trace {trace.source}", fix="import it with: gantline trace import gavel FILE OUT"
        )
    read: dict[str, tuple[str, int]] = {}
    names = []
    for row, text in enumerate(trace.frame["throughput_key"].cast(pl.String).to_list()):
        if text not in read:
            try:
                name, size = ast.literal_eval(text)
                read[text] = (str(name), int(size))
            except (ValueError, SyntaxError, TypeError):
                raise _fault(trace, row, f"{text!r} is no job type", "write \"('name', gang size)\"") from None
        names.append(read[text])
    return names


def _steps(trace: Trace) -> Floats:
    """Steps of every job."""
    steps = trace.frame["work" if "work" in trace.frame.columns else "duration"].cast(pl.Float64).to_numpy()
    bad = np.flatnonzero(~(steps > 0))
    if len(bad):
        raise _fault(trace, int(bad[0]), f"has {steps[bad[0]]:g} steps", "give a number above 0")
    return np.array(steps)


def _fault(trace: Trace, row: int, what: str, fix: str) -> TraceError:
    return TraceError(f"job '{trace.frame['job'][row]}': {what}", file=trace.source, line=row + 2, field="throughput_key", fix=fix)
