"""Replay files of Synergy's simulator (OSDI 2022): ``job_id,model,arrival_s,iterations,num_gpu`` without a header line.

The profiles say how long a step takes at the proportional share of a server's CPUs and memory, and with that how long a job is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.core.errors import UsageError, near
from gantline.systems.synergy.profiles import read as read_profiles
from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.trace import Trace

_COLUMNS = ("job_id", "model", "arrival", "iterations", "num_gpu")


def read(
    src: Path,
    *,
    profiles: Annotated[Path | None, "the folder with model_profiles.csv and throughput_matrix.csv"] = None,
    cpus: Annotated[float, "CPUs per GPU of the servers whose profiles say how long a step takes"] = 3.0,
    memory: Annotated[float, "GB per GPU of these servers"] = 62.5,
    storage: Annotated[float, "MB/s from storage per GPU of these servers"] = 62.5,
) -> Trace:
    """The jobs of a replay file; times are kept as they are."""
    if profiles is None:
        raise UsageError("steps have no length without profiles", where="format 'synergy'", fix="give --profiles DIR")
    networks = read_profiles(profiles).on((cpus, memory, storage))
    raw = read_foreign(src, (), columns=_COLUMNS)
    model = text(raw, "model")
    for row, name in enumerate(model.to_list()):
        if name not in networks:
            raise raw.error(f"there is no profile of '{name}'", row=row, field="model", fix=near(name, networks))
    steps = number(raw, "iterations", required=True)
    if (steps <= 0).any():
        row = int((steps <= 0).arg_true()[0])
        raise raw.error(f"the job has {steps[row]:g} iterations", row=row, field="iterations", fix="give one or more, or drop the row")
    step_time = model.replace_strict({name: known.step_time for name, known in networks.items()}, return_dtype=pl.Float64)
    frame = pl.DataFrame(
        {
            "job": text(raw, "job_id"),
            "arrival": number(raw, "arrival", required=True),
            "gpus": number(raw, "num_gpu", required=True),
            "duration": steps * step_time,
            "model": model,
            "iterations": steps,
            "iteration_time": step_time,
        }
    )
    return Sieve(frame, raw).finish(from_zero=False)
