"""Gavel traces (OSDI 2020): one job per line, tab separated, no header.

Ten fields: job type, command, working directory, name of the steps argument, needs a data directory, total steps,
scale factor, priority weight, SLO (-1: none), arrival. Shockwave (NSDI 2023) writes twelve: a mode after the scale
factor and a duration before the arrival. Gavel's older Philly traces have seven: no working directory, weight and
SLO, and the arrival before the scale factor. Job ids are line numbers from 0.

A trace states steps, not seconds. With Gavel's throughput table (worker type -> "('<type>', <scale>)" -> {"null":
steps per second}) the duration is that on one worker type; an SLO is a multiple of it.
"""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from gantline.core.errors import TraceError, UsageError, near
from gantline.core.json_reader import loads
from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.read import RawTable
from gantline.traces.trace import Trace
from gantline.traces.unpack import read_text

_HEAD = ("type", "command", "directory", "argument", "data")
LAYOUTS: dict[int, tuple[str, ...]] = {
    10: (*_HEAD, "steps", "scale", "weight", "slo", "arrival"),
    12: (*_HEAD, "steps", "scale", "mode", "weight", "slo", "duration", "arrival"),
    7: ("type", "command", "argument", "data", "steps", "arrival", "scale"),
}


def read(
    src: Path,
    *,
    throughputs: Annotated[Path | None, "Gavel's throughput table (JSON), from which durations are computed"] = None,
    device: Annotated[str, "worker type of that table whose speed gives the durations"] = "v100",
) -> Trace:
    """The jobs of a Gavel or Shockwave trace; `work` is the number of steps."""
    first = read_text(src).lstrip("\n").split("\n", 1)[0]
    width = first.count("\t") + 1
    if width not in LAYOUTS:
        what = f"has {width} tab-separated fields, a Gavel trace has 10 (or 12, or 7)"
        raise TraceError(what, file=str(src), line=1, fix="is this the right file and format?")
    raw = read_foreign(src, (), separator="\t", columns=LAYOUTS[width], quote=False)
    steps, scale, arrival = (number(raw, name, required=True) for name in ("steps", "scale", "arrival"))
    kind = text(raw, "type")
    frame = pl.DataFrame(
        {
            "job": pl.Series(range(len(kind)), dtype=pl.Int64),
            "arrival": arrival,
            "gpus": scale,
            "model": kind.str.replace(r" \(batch size \d+\)$", ""),
            "work": steps,
            "batch_size": kind.str.extract(r"\(batch size (\d+)\)$").cast(pl.Float64),
            "_kind": kind,
        }
    ).with_columns(throughput_key=pl.format("('{}', {})", "_kind", pl.col("gpus").cast(pl.Int64, strict=False)))
    sieve = Sieve(frame, raw)
    if throughputs is not None:
        speed = _speeds(throughputs, device, frame["throughput_key"], raw)
        duration = steps / speed
        sieve.note(f"durations: steps at the speed of one {device} per GPU asked for, from {throughputs.name}")
    elif width == 12:
        duration = number(raw, "duration", required=True)
    else:
        duration = steps
        sieve.note("no throughput table given: durations are the numbers of steps, at 1 step per second")
    sieve.frame = sieve.frame.with_columns(duration.alias("duration"))
    if width == 12:
        sieve.frame = sieve.frame.with_columns(text(raw, "mode"))
    if width >= 10:
        slo = number(raw, "slo")
        due = pl.when(slo > 0).then(pl.col("arrival") + slo * pl.col("duration"))
        sieve.frame = sieve.frame.with_columns(number(raw, "weight").alias("weight"), due.alias("deadline"))
        if not (slo > 0).any():
            sieve.frame = sieve.frame.drop("deadline")
    sieve.drop(pl.col("work") <= 0, "no positive number of steps")
    return sieve.finish(from_zero=False)


def _speeds(path: Path, device: str, keys: pl.Series, raw: RawTable) -> pl.Series:
    """Isolated steps per second of each job on ``device``; a job that the table does not know is named."""
    table = _table(path, device)
    known = {
        key: _speed(entry["null"], path, f"{device} / {key}") for key, entry in table.items() if isinstance(entry, dict) and "null" in entry
    }
    speed = keys.replace_strict(known, default=None, return_dtype=pl.Float64)
    for bad, reason in ((speed.is_null(), "has no entry"), (speed <= 0, "has speed 0 (it cannot run)")):
        if bad.any():
            row = int(bad.arg_true()[0])
            what = f"{keys[row]} {reason} for '{device}' in {path} ({int(bad.sum())} such jobs)"
            raise raw.error(what, row=row, field="job type", fix="choose another device, or a table that has it")
    return speed


def _speed(value: Any, path: Path, field: str) -> float:
    """One entry of the table; what is no speed is named."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < inf:
        raise TraceError(f"{value!r} is no speed", file=str(path), field=field, fix="give steps per second, 0 or more")
    return float(value)


def _table(path: Path, device: str) -> dict[str, Any]:
    try:
        table = loads(read_text(path))
    except json.JSONDecodeError as error:
        raise UsageError(f"is not JSON: {error.msg}", where=f"{path}:{error.lineno}") from error
    if not isinstance(table, dict) or not isinstance(table.get(device, {}), dict):
        raise UsageError("is not a throughput table", where=str(path), fix="worker type -> job -> {'null': steps/s}")
    if device not in table:
        raise UsageError(f"knows no worker type '{device}'", where=str(path), fix=near(device, table))
    found: dict[str, Any] = table[device]
    return found
