"""The columns of a trace: names, types, units, and what an empty cell means.

A trace row is a job spec plus an arrival time and an amount of work. Four columns are required; the others are there
only when they are known. Columns that are not listed here are kept as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

Kind = Literal["text", "number", "whole"]
REQUIRED = ("job", "arrival", "gpus", "duration")
OUTCOMES = ("completed", "failed", "killed")
KINDS = ("adaptive", "strong-scaling", "rigid", "hybrid")


@dataclass(frozen=True)
class TraceColumn:
    """One column of the native table.

    ``empty`` says what replaces an empty cell (None: it stays unknown), ``words`` which texts there are (none: any).
    """

    name: str
    kind: Kind
    unit: str
    meaning: str
    empty: Callable[[], pl.Expr] | None = None
    words: tuple[str, ...] = ()

    @property
    def dtype(self) -> type[pl.DataType]:
        return {"text": pl.String, "number": pl.Float64, "whole": pl.Int64}[self.kind]


def _nothing() -> pl.Expr:
    return pl.lit("")


def _request() -> pl.Expr:
    return pl.col("gpus")


COLUMNS: Mapping[str, TraceColumn] = {
    column.name: column
    for column in (
        TraceColumn("job", "text", "", "identity of the job, unique in the trace"),
        TraceColumn("arrival", "number", "s", "when the job is submitted, from the start of the trace; never decreasing"),
        TraceColumn("gpus", "whole", "GPUs", "how many GPUs the job asks for"),
        TraceColumn("duration", "number", "s", "run time on the GPUs asked for"),
        TraceColumn("user", "text", "", "who submitted it", _nothing),
        TraceColumn("queue", "text", "", "queue, virtual cluster or partition", _nothing),
        TraceColumn("app", "text", "", "application or group of jobs that belong together", _nothing),
        TraceColumn("model", "text", "", "neural network that is trained", _nothing),
        TraceColumn("type", "text", "", "device type asked for", _nothing),
        TraceColumn("options", "text", "", "alternatives: type:gpus[@nodes][/cpus][/memory][/storage]=seconds joined by |", _nothing),
        TraceColumn("min_gpus", "whole", "GPUs", "fewest GPUs it can run on; empty: as requested", _request),
        TraceColumn("max_gpus", "whole", "GPUs", "most GPUs it can use; empty: as requested", _request),
        TraceColumn("work", "number", "", "amount of work; empty: the duration, that is rate 1", lambda: pl.col("duration")),
        TraceColumn("priority", "number", "", "higher goes first; empty: 0", lambda: pl.lit(0.0)),
        TraceColumn("weight", "number", "", "share of a fair policy; empty: 1", lambda: pl.lit(1.0)),
        TraceColumn("deadline", "number", "s", "when it should be done, from the start of the trace; empty: none"),
        TraceColumn("started", "number", "s", "when it really started, where a log says so; empty: unknown"),
        TraceColumn("ended", "number", "s", "when it really ended, where a log says so; empty: unknown"),
        TraceColumn("cpus", "number", "CPUs", "CPU cores of the whole job; empty: unknown"),
        TraceColumn("memory", "number", "GB", "main memory of the whole job; empty: unknown"),
        TraceColumn("storage", "number", "MB/s", "bandwidth from storage of the whole job; empty: unknown"),
        TraceColumn("outcome", "text", "", "how it really ended: completed, failed or killed; empty: unknown", _nothing, OUTCOMES),
        TraceColumn("gpu_demand", "number", "GPUs", "what it really needs of its GPUs, such as 0.3 of one; empty: all of them"),
        TraceColumn("attempts", "whole", "", "how often it was started; empty: unknown"),
        TraceColumn("batch_size", "whole", "", "training samples per step; empty: unknown"),
        TraceColumn(
            "kind", "text", "", "how it uses GPUs: adaptive, strong-scaling, rigid or hybrid; empty: as the policy assumes", _nothing, KINDS
        ),
        TraceColumn(
            "stages", "text", "", "pipeline stages of a hybrid job, GPUs of one replica: dgx:2|rtx:8; empty: as profiled", _nothing
        ),
        TraceColumn("reserved", "text", "", "GPUs that are kept for it, such as dgx:8; empty: none", _nothing),
        TraceColumn(
            "scaling", "text", "", "times that a training step is made of: fixed=0.02;sample=0.001;within=0.05; empty: none", _nothing
        ),
        TraceColumn("loss", "text", "", "how its loss falls: start=2.3;floor=0.3;rate=8 or 0:2.3|0.5:0.6|1:0.3; empty: unknown", _nothing),
        TraceColumn("speed_class", "text", "", "column of a table of device speeds (--device-speeds); empty: its first", _nothing),
        TraceColumn("throughput_key", "text", "", "row of a throughput table; empty: none", _nothing),
    )
}


def fill_empty(frame: pl.DataFrame) -> pl.DataFrame:
    """The same rows with each empty cell replaced by what it stands for."""
    holes = [COLUMNS[series.name] for series in frame if series.name in COLUMNS and series.null_count()]
    fills = [pl.col(column.name).fill_null(column.empty()) for column in holes if column.empty is not None]
    return frame.with_columns(fills) if fills else frame


#: native columns that policies read as metrics: the others have a column of their own in a snapshot, or say how the job ends
_METRICS = frozenset({"cpus", "memory", "gpu_demand", "batch_size"})


def is_metric(name: str) -> bool:
    """Whether a column, where it holds numbers, is a metric of its jobs: what a trace keeps beyond the schema is."""
    return name in _METRICS or name not in COLUMNS


def unknown_columns(frame: pl.DataFrame) -> list[str]:
    """Columns that the schema does not name; they are kept."""
    return [name for name in frame.columns if name not in COLUMNS]
