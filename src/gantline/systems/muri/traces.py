"""Traces of Muri (SIGCOMM 2022), the model of their stages, and what an event costs their jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import NotFoundError, TraceError
from gantline.models.sharing.stage_cycles import ITERATION, STAGES, StageCycles, Stages, usable
from gantline.traces.dates import divide
from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.read import RawTable
from gantline.traces.trace import Trace

# Traces of Muri (SIGCOMM 2022): Tiresias' columns with the stage times of an iteration, in milliseconds.
#
# ``job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,resource_time_1,
# resource_time_2,priority``. The stages are loading (storage and CPU), computing and communicating; `priority` is AntMan's class: 0 is
# guaranteed, 1 opportunistic. ``interval`` is the gap to the next arrival and is not kept.


_TIMES = {
    "arrival": "submit_time",
    "duration": "duration",
    "iteration_time": "iteration_time",
    "stage_load": "resource_time_0",
    "stage_gpu": "resource_time_1",
    "stage_network": "resource_time_2",
}
_MILLISECONDS = 1000.0


def read(src: Path, *, jobs: Annotated[int | None, "the first so many rows"] = None) -> Trace:
    """The jobs of a Muri trace, in seconds."""
    raw = read_foreign(src, ("job_id", "num_gpu", "iterations", "model_name", *_TIMES.values()))
    count = len(raw.frame)
    if jobs is not None and not 1 <= jobs <= count:
        raise raw.error(f"has {count} rows, and {jobs} were asked for", field="jobs", fix=f"--set jobs=N with N from 1 to {count}")
    columns = {name: divide(number(raw, theirs, required=True), _MILLISECONDS) for name, theirs in _TIMES.items()}
    _check_times(raw, columns)
    frame = pl.DataFrame(
        {
            "job": text(raw, "job_id"),
            "gpus": number(raw, "num_gpu", required=True),
            "model": text(raw, "model_name"),
            "iterations": number(raw, "iterations", required=True),
            **columns,
        }
    )
    extra = [number(raw, "batch_size")] if "batch_size" in raw.frame.columns else []
    extra += [number(raw, "priority").rename("opportunistic")] if "priority" in raw.frame.columns else []
    sieve = Sieve(frame.with_columns(extra), raw)
    sieve.note("milliseconds turned into seconds")
    if jobs is not None:
        sieve.frame = sieve.frame.head(jobs)
    sieve.drop(pl.col("duration") <= 0, "no positive duration")
    sieve.drop(pl.col("gpus") <= 0, "no GPUs")
    return sieve.finish(from_zero=False)


def _check_times(raw: RawTable, columns: dict[str, pl.Series]) -> None:
    """An iteration takes time, and so does at least one of its stages."""
    stages = pl.DataFrame({_TIMES[name]: columns[name] for name in STAGES})
    for bad, what, theirs in (
        (columns[ITERATION] <= 0.0, "an iteration takes no time", _TIMES[ITERATION]),
        (stages.min_horizontal() < 0.0, "a stage time is negative", stages.columns[0]),
        (stages.max_horizontal() <= 0.0, "all stage times are zero", stages.columns[0]),
    ):
        if bad.any():
            fix = "give milliseconds: above 0 for the iteration and at least one of its stages, 0 or more for the others"
            raise raw.error(what, row=int(bad.arg_true()[0]), field=theirs, fix=fix)


# What Muri's runs know beside the trace: the model of stages, and what an event costs a job.

# The model of stages for the jobs of a trace, whose stage times are looked at before the run begins.


def stage_cycles(jobs: Trace, cluster: Cluster) -> StageCycles:
    """Refuses stage times that are none; a job without any is one that shares devices in parts."""
    frame = jobs.frame
    for name in (*STAGES, ITERATION):
        if name not in frame.columns:
            fix = "give seconds of an iteration; gantline trace import muri does"
            raise TraceError(f"column '{name}' is missing", file=jobs.source, field=name, fix=fix)
    for row, (*times, step) in enumerate(frame.select(*STAGES, ITERATION).rows()):
        if any(each is not None for each in (*times, step)) and not (usable(Stages(*times)) and step is not None and step > 0.0):
            what = f"has stages of {', '.join(map(str, times))} s in an iteration of {step} s"
            raise jobs.fault(row, "", what, "give times of 0 or more, not all of them 0, or leave all empty")
    return StageCycles()


# What Muri's simulator knows beside the trace: seconds that an event costs a job, by GPUs and model (``restart_overhead_s.csv``).

_FILE = "restart_overhead_s.csv"
OTHER = 10.0
"""Seconds for a job whose restarts nobody measured."""


@dataclass(frozen=True)
class RestartOverheads:
    """Seconds that an event costs a job."""

    measured: Mapping[tuple[int, str], float] = field(default_factory=dict)

    def of(self, gpus: int, model: str) -> float:
        return self.measured.get((gpus, model), OTHER)


def read_profiles(folder: Path) -> RestartOverheads:
    """The overheads of a folder."""
    path = folder / _FILE
    if not path.is_file():
        raise NotFoundError(f"holds no {_FILE}", where=f"profiles {folder}", fix="a CSV file num_gpu,model,overhead_s")
    raw = read_foreign(path, ("num_gpu", "model", "overhead_s"))
    gpus, seconds = number(raw, "num_gpu", required=True), number(raw, "overhead_s", required=True)
    for column, low in ((gpus, 1.0), (seconds, 0.0)):
        if (bad := column < low).any():
            row = int(bad.arg_true()[0])
            raise raw.error(f"is {column[row]:g}", row=row, field=column.name, fix=f"give {low:g} or more")
    rows = list(zip(gpus.cast(pl.Int64).to_list(), text(raw, "model").to_list(), seconds.to_list()))
    found: dict[tuple[int, str], float] = {}
    for row, (count, model, each) in enumerate(rows):
        if found.setdefault((count, model), each) != each:
            raise raw.error(f"a second figure for {model} on {count} GPUs", row=row, field="overhead_s", fix="leave one of them out")
    return RestartOverheads(found)
