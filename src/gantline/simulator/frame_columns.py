"""The frames of a run as arrays (`run_columns`): of a run that was read from its directory, or of a service's past."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.reasons import Reason, slug
from gantline.simulator.run_columns import OTHER, STATES, JobColumns, SeriesColumns, SpanColumns

_REASONS = {slug(code): int(code) for code in Reason}
_SUMS = ("gpu_seconds", "work_lost")  # where an empty cell adds nothing
_COUNTS = ("gpus", "preemptions", "restarts")
_TIMES = ("arrival", "finish", "jct", "queueing", "responsiveness", "duration", "deadline")


def jobs_of_frame(jobs: pl.DataFrame) -> JobColumns:
    """A frame of jobs."""
    users = jobs["user"].cast(pl.Categorical).to_physical().cast(pl.Int64)
    found: dict[str, Any] = {name: _floats(jobs[name], math.nan) for name in _TIMES}
    found |= {name: _floats(jobs[name], 0.0) for name in _SUMS} | {name: _ints(jobs[name]) for name in _COUNTS}
    return JobColumns(
        **found,
        user=users.fill_null(-1).to_numpy() + 1,
        state=_codes(jobs["state"], {name: code for code, name in enumerate(STATES)}, OTHER),
        met=jobs["met"].fill_null(False).to_numpy() if "met" in jobs.columns else None,
    )


def spans_of_frame(spans: pl.DataFrame, jobs: pl.DataFrame) -> SpanColumns:
    """A frame of intervals, of the jobs of another frame."""
    known = jobs.select("job").with_row_index("row").unique("job", keep="first")
    row = spans.select("job").join(known, on="job", how="left", maintain_order="left")["row"].cast(pl.Int64).fill_null(-1)
    first, devices = _lists(spans["devices"])
    first_node, nodes = _lists(spans["nodes"])
    return SpanColumns(
        row=row.to_numpy(),
        start=_floats(spans["start"], math.nan),
        end=_floats(spans["end"], math.nan),
        gpus=_ints(spans["gpus"]),
        reason=_codes(spans["reason"], _REASONS, int(Reason.NONE)),
        first=first,
        devices=devices,
        first_node=first_node,
        nodes=nodes,
    )


def series_of_frame(series: pl.DataFrame) -> SeriesColumns:
    """A frame of the queue over time, in order of time; an empty cell is zero."""
    names = SeriesColumns.__dataclass_fields__
    found = SeriesColumns(**{name: np.nan_to_num(_floats(series[name], 0.0), nan=0.0, posinf=math.inf, neginf=-math.inf) for name in names})
    in_order = bool((found.time[1:] >= found.time[:-1]).all())
    return found if in_order else found.take(np.argsort(found.time, kind="stable"))


def _floats(column: pl.Series, empty: float) -> Floats:
    return column.cast(pl.Float64).fill_null(empty).to_numpy()


def _ints(column: pl.Series) -> Ints:
    return column.cast(pl.Int64).fill_null(0).to_numpy()


def _codes(column: pl.Series, codes: dict[str, int], other: int) -> Ints:
    return column.replace_strict(list(codes), list(codes.values()), default=other, return_dtype=pl.Int64).to_numpy()


def _lists(column: pl.Series) -> tuple[Ints, Ints]:
    """Where the items of each list begin among all items, and the items."""
    first = np.concatenate(([0], np.cumsum(column.list.len().fill_null(0).cast(pl.Int64).to_numpy())))
    return first, column.explode().drop_nulls().cast(pl.Int64).to_numpy()
