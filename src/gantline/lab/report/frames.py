"""The frames of a finished run: what every metric, figure and file of this package reads.

Four tables and a summary describe a run completely. This package reads nothing else of a simulation, so a
run read back from disk, a run just finished and a live run are reported by the same code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import UsageError
from gantline.core.reasons import Reason, slug
from gantline.simulator.run_columns import (
    OTHER,
    STATES,
    JobColumns,
    Marks,
    RunColumns,
    SeriesColumns,
    SpanColumns,
    series_columns,
    series_frame,
)

JOBS: dict[str, Any] = {
    "job": pl.String,
    "arrival": pl.Float64,
    "first_start": pl.Float64,
    "finish": pl.Float64,
    "jct": pl.Float64,
    "gpus": pl.Int64,
    "preemptions": pl.Int64,
    "restarts": pl.Int64,
    "queueing": pl.Float64,
    "responsiveness": pl.Float64,
    "service": pl.Float64,
    "held": pl.Float64,
    "gpu_seconds": pl.Float64,
    "work_lost": pl.Float64,
    "user": pl.String,
    "queue": pl.String,
    "app": pl.String,
    "duration": pl.Float64,
    "deadline": pl.Float64,
    "state": pl.String,
}
ALLOCATIONS: dict[str, Any] = {
    "job": pl.String,
    "start": pl.Float64,
    "end": pl.Float64,
    "type": pl.String,
    "nodes": pl.List(pl.Int32),
    "devices": pl.List(pl.Int32),
    "gpus": pl.Int32,
    "reason": pl.String,
}
EVENTS: dict[str, Any] = {"time": pl.Float64, "kind": pl.String, "job": pl.String, "detail": pl.String}
SERIES: dict[str, Any] = {
    "time": pl.Float64,
    "queued": pl.Int64,
    "running": pl.Int64,
    "busy_gpus": pl.Float64,
    "down_gpus": pl.Float64,
    "total_gpus": pl.Float64,
    "queued_gpus": pl.Float64,
}
SCHEMAS: dict[str, dict[str, Any]] = {"jobs": JOBS, "allocations": ALLOCATIONS, "events": EVENTS, "series": SERIES}


class RunLike(Protocol):
    """Anything with a summary and the four frames: a run just finished or one read back from its directory."""

    @property
    def summary(self) -> Mapping[str, Any]: ...
    @property
    def jobs(self) -> pl.DataFrame: ...
    @property
    def allocations(self) -> pl.DataFrame: ...
    @property
    def events(self) -> pl.DataFrame: ...
    @property
    def series(self) -> pl.DataFrame: ...


@dataclass(frozen=True)
class StoredRun:
    """A run as values, without the simulator that made it."""

    jobs: pl.DataFrame
    allocations: pl.DataFrame
    events: pl.DataFrame
    series: pl.DataFrame
    summary: Mapping[str, Any] = field(default_factory=dict)
    is_settled: bool = False
    absent: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=JOBS))
    """Jobs of the trace that had not arrived when a settled run ended."""

    @cached_property
    def columns(self) -> RunColumns:
        """The frames as arrays, for metrics: made once and shared."""
        check_frames(self)
        absent = None if self.absent.is_empty() else jobs_of_frame(self.absent)
        return RunColumns(
            jobs_of_frame(self.jobs), spans_of_frame(self.allocations, self.jobs), series_of_frame(self.series), self.summary, absent
        )


def check_frames(run: RunLike) -> None:
    """Refuse a run whose frames lack a column, naming the frame and the column."""
    for name, schema in SCHEMAS.items():
        missing = [column for column in schema if column not in getattr(run, name).columns]
        if missing:
            raise UsageError(
                f"the {name} frame lacks {', '.join(missing)}",
                where="run",
                fix=f"its columns are {', '.join(schema)}",
            )


def completed(jobs: pl.DataFrame) -> pl.DataFrame:
    """The jobs that finished their work; failed, rejected and unfinished ones have no completion time to speak of."""
    return jobs.filter((pl.col("state") == "completed") & pl.col("jct").is_finite())


def unfinished(jobs: pl.DataFrame) -> pl.DataFrame:
    """The jobs that had not come to an end when the run did: they ran, waited, or had not arrived yet."""
    return jobs.filter(pl.col("state").is_in(["running", "waiting", "future"]))


def settled(run: RunLike) -> StoredRun:
    """The run as far as it went: jobs that never arrived stand apart, and what was still held is held to its end.

    A simulation that is stopped early knows the later arrivals of its trace; they would look like waiting jobs.
    """
    if isinstance(run, StoredRun) and run.is_settled:
        return run
    check_frames(run)
    end = span_of(run)[1]
    held = run.allocations
    came = (pl.col("arrival") <= end) & (pl.col("state") != "future")
    return StoredRun(
        run.jobs.filter(came),
        held.with_columns(end=pl.when(pl.col("end").is_finite()).then(pl.col("end")).otherwise(end)),
        run.events.filter(pl.col("time") <= end),
        run.series.filter(pl.col("time") <= end),
        run.summary,
        is_settled=True,
        absent=run.jobs.filter(~came),
    )


def node_gpus_of(run: RunLike) -> list[int]:
    """The GPUs of each node as the summary lists them: ``32x4,2x8``, a list, or the cluster's short form; empty if it does not."""
    listed = run.summary.get("node_gpus")
    if isinstance(listed, str) and listed:
        groups = [part.split("x") for part in listed.split(",")]
        return [int(gpus) for count, gpus in groups for _ in range(int(count))]
    if listed:
        return [int(gpus) for gpus in listed]
    try:
        cluster = parse_cluster(str(run.summary.get("cluster", "")))
    except UsageError:
        return []
    found = [node.gpus for node in cluster.nodes]
    held = run.allocations["devices"].explode().max()
    return found if held is None or int(held) < sum(found) else []  # type: ignore[arg-type]


def node_racks_of(run: RunLike) -> list[int]:
    """A number per node for its rack, as the summary lists them (numbers of nodes, rack after rack); empty: one rack."""
    return [rack for rack, count in run.summary.get("node_racks") or () for _ in range(int(count))]


def span_of(run: RunLike) -> tuple[float, float]:
    """The time from the first arrival to the end that the summary names, or else to the last thing that happened."""
    start = _extreme(run.jobs["arrival"], last=False)
    recorded = run.summary.get("end")
    if isinstance(recorded, (int, float)) and math.isfinite(recorded):
        return start, max(start, float(recorded))
    ends = [run.jobs["arrival"], run.jobs["finish"], run.allocations["end"], run.series["time"]]
    end = max(_extreme(column, last=True) for column in ends)
    return start, max(start, end)


def _extreme(column: pl.Series, *, last: bool) -> float:
    values = column.cast(pl.Float64).to_numpy()  # an empty cell is not a number there
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0
    return float(values.max() if last else values.min())


# --- frames as arrays: of a run that was read from its directory, or of a service's past ---------------------------------
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


def series_of(jobs: pl.DataFrame, spans: pl.DataFrame, gpus: int, joined: Marks, down: Marks) -> pl.DataFrame:
    """`series_columns` from frames, as a frame."""
    return series_frame(series_columns(jobs_of_frame(jobs), spans_of_frame(spans, jobs), gpus, joined, down))
