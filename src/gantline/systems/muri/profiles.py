"""What Muri's simulator knows beside the trace: seconds that an event costs a job, by GPUs and model (``restart_overhead_s.csv``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from gantline.core.errors import NotFoundError
from gantline.traces.importers.table import number, read_foreign, text

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
