"""A run as arrays: what became of its jobs, what each held, and the queue over time. Metrics are sums over these, without a frame."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import polars as pl

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Job
from gantline.core.phases import Phase
from gantline.core.reasons import Reason, slug
from gantline.core.tables import Tables
from gantline.engine.log import Interval, Log
from gantline.simulator.occupancy import Held

STATES = ("future", "waiting", "running", "completed", "failed", "cancelled", "rejected")
"""What a job of a frame may have come to; a column of arrays holds the place in this list, or `OTHER`."""
FUTURE, WAITING, RUNNING, COMPLETED, FAILED, CANCELLED, REJECTED = range(len(STATES))
OTHER = len(STATES)
_OF_PHASE = {phase: STATES.index(phase.name.lower()) for phase in Phase if phase.terminal or phase == Phase.FUTURE}
STATE_OF_PHASE = np.array([_OF_PHASE.get(phase, RUNNING if phase.holds_devices else WAITING) for phase in Phase])


@dataclass(frozen=True)
class _Rows:
    """Arrays of one length."""

    def take(self, rows: Ints | Bools) -> Self:
        """Some of the rows; nothing is copied where that is all of them."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        known = ((item.name, getattr(self, item.name)) for item in fields(self))
        return type(self)(**{name: None if column is None else column[rows] for name, column in known})


@dataclass(frozen=True)
class JobColumns(_Rows):
    """One entry per job; times are NaN where there are none."""

    arrival: Floats
    finish: Floats
    jct: Floats
    gpus: Ints
    preemptions: Ints
    restarts: Ints
    queueing: Floats
    responsiveness: Floats
    gpu_seconds: Floats
    work_lost: Floats
    user: Ints  # a number for each
    duration: Floats
    deadline: Floats
    state: Ints  # place in `STATES`
    met: Bools | None = None  # deadlines, where the run judged them itself

    def __len__(self) -> int:
        return len(self.arrival)


@dataclass(frozen=True)
class SpanColumns:
    """One entry per interval in which a gang held its devices; `end` is NaN while it does."""

    row: Ints  # the job; -1 where the run does not list it
    start: Floats
    end: Floats
    gpus: Ints
    reason: Ints  # a code of `core.reasons`
    first: Ints  # its devices are devices[first[k] : first[k + 1]]
    devices: Ints
    first_node: Ints  # its nodes, one of them perhaps repeatedly
    nodes: Ints

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class SeriesColumns(_Rows):
    """Step functions of time: an entry holds from its time to the time of the next one."""

    time: Floats
    queued: Floats
    running: Floats
    busy_gpus: Floats
    down_gpus: Floats
    total_gpus: Floats
    queued_gpus: Floats


@dataclass(frozen=True)
class RunColumns:
    """All of it."""

    jobs: JobColumns
    spans: SpanColumns
    series: SeriesColumns
    summary: Mapping[str, Any]
    absent: JobColumns | None = None  # jobs that had not arrived when the run ended, where they stand apart


def joined(jobs: JobColumns, more: JobColumns) -> JobColumns:
    """Both, one behind the other."""
    pairs = ((item.name, getattr(jobs, item.name), getattr(more, item.name)) for item in fields(jobs))
    both: dict[str, Any] = {name: None if one is None else np.concatenate([one, other]) for name, one, other in pairs}
    return JobColumns(**both)


def jobs_of_tables(tables: Tables | Any, held: Held) -> JobColumns:
    """What the tables of a finished simulation say of its jobs."""
    F, I = tables.F, tables.I
    arrival, finish, work = F[Job.ARRIVAL], F[Job.FINISH], F[Job.WORK]
    jct = finish - arrival
    met = tables.verdicts.get("met")
    return JobColumns(
        arrival=arrival,
        finish=finish,
        jct=jct,
        gpus=I[Job.GPUS],
        preemptions=I[Job.PREEMPTIONS],
        restarts=I[Job.RESTARTS],
        queueing=jct - held.seconds,
        responsiveness=F[Job.MARK] - arrival,
        gpu_seconds=held.device_seconds,
        work_lost=F[Job.LOST],
        user=I[Job.USER],
        duration=work,
        deadline=F[Job.DEADLINE],
        state=STATE_OF_PHASE[I[Job.PHASE]],
        met=None if met is None else np.asarray(met) == 1.0,
    )


def spans_of_log(log: Log | Any, node_of_device: Ints) -> SpanColumns:
    """The intervals in which jobs held devices, from the log of a simulation."""
    n = log.intervals
    count, offset = log.LI[Interval.COUNT, :n].astype(np.int64), log.LI[Interval.OFFSET, :n].astype(np.int64)
    first = np.concatenate(([0], np.cumsum(count)))
    devices = log.LD[np.repeat(offset - first[:-1], count) + np.arange(int(first[-1]))].astype(np.int64)
    row, reason = (log.LI[which, :n].astype(np.int64) for which in (Interval.ROW, Interval.REASON))
    start, end = log.LF[Interval.START, :n], log.LF[Interval.END, :n]
    return SpanColumns(row, start, end, count, reason, first, devices, first, node_of_device[devices])


# --- from frames: of a run that was read from its directory, or of a service's past -------------------------------------
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
