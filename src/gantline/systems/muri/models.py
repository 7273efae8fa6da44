"""What Muri's runs know beside the trace: the model of stages, and what an event costs a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import NotFoundError, TraceError
from gantline.models.sharing.stage_cycles import ITERATION, STAGES, StageCycles, Stages, usable
from gantline.traces.importers.table import number, read_foreign, text
from gantline.traces.trace import Trace

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


def read(folder: Path) -> RestartOverheads:
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
