"""Traces of Muri (SIGCOMM 2022): Tiresias' columns with the stage times of an iteration, in milliseconds.

``job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,resource_time_1,
resource_time_2,priority``. The stages are loading (storage and CPU), computing and communicating; `priority` is AntMan's class: 0 is
guaranteed, 1 opportunistic. ``interval`` is the gap to the next arrival and is not kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.models.sharing.stage_cycles import ITERATION, STAGES
from gantline.traces.dates import divide
from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.read import RawTable
from gantline.traces.trace import Trace

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
    for bad, what, field in (
        (columns[ITERATION] <= 0.0, "an iteration takes no time", _TIMES[ITERATION]),
        (stages.min_horizontal() < 0.0, "a stage time is negative", stages.columns[0]),
        (stages.max_horizontal() <= 0.0, "all stage times are zero", stages.columns[0]),
    ):
        if bad.any():
            fix = "give milliseconds: above 0 for the iteration and at least one of its stages, 0 or more for the others"
            raise raw.error(what, row=int(bad.arg_true()[0]), field=field, fix=fix)
