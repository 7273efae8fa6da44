"""The jobs of a trace and the measured speeds of a table, as Shockwave's simulator takes them."""

from __future__ import annotations

from math import nan

from gantline.core.errors import RefusedError, TraceError, UsageError, near
from gantline.core.tables import Tables
from gantline.models.sharing.throughput_model import ThroughputModel
from gantline.systems.shockwave.imitation.jobs import ShockwaveJob
from gantline.systems.shockwave.imitation.models import SAMPLES
from gantline.traces.trace import Trace

_WHERE = "--regime shockwave"
MODES = ("static", "accordion", "gns")


def read_jobs(trace: Trace, tables: Tables) -> list[ShockwaveJob]:
    """The jobs in the order of the trace."""
    frame = trace.frame
    for name in ("model", "batch_size", "work"):
        if name not in frame.columns:
            raise UsageError(
                f"has no column '{name}'", where=f"trace {trace.source}", fix="import it with: gantline trace import gavel FILE OUT"
            )
    speeds = _speeds(tables)

    def speed(model: str, batch: int, gang: int) -> float:
        return speeds.get((f"{model} (batch size {batch})", gang), speeds.get((model, gang), nan))

    modes = frame["mode"].to_list() if "mode" in frame.columns else ["static"] * frame.height
    columns = (frame[name].to_list() for name in ("model", "gpus", "batch_size", "arrival", "work"))
    found = []
    for row, (model, gang, batch, arrival, steps) in enumerate(zip(*columns, strict=True)):
        mode = modes[row] or "static"
        if model not in SAMPLES:
            raise _fault(trace, row, "model", f"is of model '{model}', whose epochs are not known", near(str(model), SAMPLES))
        if mode not in MODES:
            raise _fault(trace, row, "mode", f"has the mode '{mode}'", near(str(mode), MODES))
        job = ShockwaveJob(row, model, mode, int(gang), int(batch or 1), float(arrival), int(steps), speed)
        if not job.throughput > 0:
            raise _fault(trace, row, "batch_size", f"has no speed: {model}, batch size {batch}, {gang} GPUs", "measure it, or drop the job")
        found.append(job)
    return found


def _speeds(tables: Tables) -> dict[tuple[str, int], float]:
    """Steps per second by job type and gang, on the cluster's one type."""
    model = tables.performance
    if not isinstance(model, ThroughputModel):
        raise UsageError("needs measured speeds", where=_WHERE, fix="give --throughputs FILE, as JSON or CSV")
    types = [name for name in tables.cluster.types if tables.cluster.gpus_of(name) > 0]
    if len(types) != 1:
        raise RefusedError(f"Shockwave's simulator has one type of GPUs, not {len(types)}", where="--cluster", fix="use v100:32, say")
    alone = model.table.packed.alone[:, model.table.types.index(types[0])]
    return {key: float(value) for key, value in zip(model.table.keys, alone) if value == value}


def _fault(trace: Trace, row: int, field: str, what: str, fix: str) -> TraceError:
    return TraceError(f"job '{trace.frame['job'][row]}' {what}", file=trace.source, line=row + 2, field=field, fix=fix)
