"""Workloads of Pollux (OSDI 2021) and Sia (SOSP 2023): their files, and Pollux' generator of them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import TraceError, UsageError
from gantline.traces.generators.drawing import as_trace
from gantline.traces.generators.given import check_above_zero, fault, settings_of
from gantline.traces.generators.presets import philly
from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.trace import Trace
from gantline.traces.unpack import unpack

# Pollux (OSDI 2021) and Sia (SOSP 2023) workloads: ``name,time,application,num_replicas,batch_size``.
#
# These files list which network is trained with how many GPUs and samples per step, but not for how long: that follows
# from goodput models. The duration given here is nominal: the application's seconds on one T4 (training samples of all
# epochs over the best measured samples per second) divided by the GPUs. Policies that model goodput use `app`,
# `batch_size` and their own profiles instead.


GPU_SECONDS: Mapping[str, float] = {
    "cifar10": 3_400.0,
    "bert": 13_600.0,
    "deepspeech2": 18_100.0,
    "yolov3": 29_700.0,
    "imagenet": 531_000.0,
    "ncf": 32.0,
    "gpt_pmp": 157_000.0,  # on A100s, for no T4 holds it
}
_HYBRID = ("gpt_pmp",)  # trained in pipelines
_COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")
_KINDS = {"adaptive": "adaptive", "scale-gpus": "strong-scaling", "rigid": "rigid", "hybrid": "hybrid"}  # Sia's categories


def read(
    src: Path,
    *,
    gpu_seconds: Annotated[str, "seconds on one GPU for more applications: gpt=90000,cifar10=3000"] = "",
    first: Annotated[int, "keep only so many jobs, the first ones (0: all)"] = 0,
) -> Trace:
    """The jobs of a Pollux or Sia workload; times are kept as they are, other columns too."""
    raw = read_foreign(src, _COLUMNS)
    known = {**GPU_SECONDS, **_parse(gpu_seconds)}
    app = text(raw, "application")
    replicas = number(raw, "num_replicas", required=True)
    single = app.replace_strict(known, default=None, return_dtype=pl.Float64)
    if single.null_count():
        row = int(single.is_null().arg_true()[0])
        fix = f"give its seconds on one GPU: gpu_seconds={app[row]}=3600; known: {', '.join(known)}"
        raise raw.error(f"no run time is known for '{app[row]}'", row=row, field="application", fix=fix)
    frame = pl.DataFrame(
        {
            "job": text(raw, "name"),
            "arrival": number(raw, "time", required=True),
            "gpus": replicas,
            "duration": single / replicas,
            "app": app,
            "model": app,
            "batch_size": number(raw, "batch_size", required=True),
        }
    )
    if "category" in raw.frame.columns:
        category = text(raw, "category").fill_null("")
        unknown = ~category.is_in([*_KINDS, ""])
        if unknown.any():
            row = int(unknown.arg_true()[0])
            raise raw.error(f"'{category[row]}' is no category", row=row, field="category", fix="one of " + ", ".join(_KINDS))
        frame = frame.with_columns(kind=category.replace(_KINDS))
    if app.is_in(_HYBRID).any():
        kind = pl.col("kind") if "kind" in frame.columns else pl.lit("")
        frame = frame.with_columns(kind=pl.when((kind == "") & pl.lit(app.is_in(_HYBRID))).then(pl.lit("hybrid")).otherwise(kind))
    others = [column for column in raw.frame if column.name not in (*_COLUMNS, "category")]
    sieve = Sieve(frame.with_columns(others), raw)
    if first:
        sieve.drop(pl.col("arrival").rank("ordinal") > first, f"after the first {first}")
    sieve.note("durations are nominal: seconds on one T4 divided by the GPUs (the file gives none)")
    return sieve.finish(from_zero=False)


def _parse(given: str) -> dict[str, float]:
    found = {}
    for part in filter(None, given.split(",")):
        name, _, value = part.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError as error:
            raise UsageError(f"option 'gpu_seconds': '{part}' is not NAME=SECONDS", fix="such as gpt=90000") from error
    return found


# Pollux' own workloads (OSDI 2021, section 5.1), draw for draw: the same seed gives the same jobs as the original's files.
#
# Rows come from a list of jobs of Philly (``table``: timestamp, duration, num_gpus, gpu_time), of which those that arrive from two to ten
# o'clock are taken, all days folded on one. GPU-hours decide what a job trains. Devices and batch are what a user would tune them to,
# or (``realistic``) the devices that the row had. Without a table the rows are drawn from the generator `philly`.

_OPENS, _CLOSES = 2 * 3600, 10 * 3600  # of the day
_SHORTEST, _LARGEST = 60.0, 1000.0 * 3600.0  # seconds of a job, GPU-seconds
_HOURS = 3600.0

#: (devices, batch) with a speedup of half to four fifths per device and less than twelve hours, by the published profiles
CONFIGURATIONS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "cifar10": ((6, 2048), (8, 2048), (12, 4096), (16, 4096)),
    "ncf": ((1, 32768),),
    "deepspeech2": ((6, 320), (8, 320), (12, 640)),
    "bert": ((6, 384), (8, 384), (12, 384), (16, 384)),
    "yolov3": ((4, 64),),
    "imagenet": ((24, 3200), (32, 6400), (48, 6400)),
}
BASE: Mapping[str, int] = {"cifar10": 128, "ncf": 256, "deepspeech2": 20, "bert": 12, "yolov3": 8, "imagenet": 200}


@dataclass(frozen=True)
class Rows:
    """The jobs to draw from."""

    submit: Floats  # seconds after the window opens
    gpus: Ints
    duration: Floats
    gpu_seconds: Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class PolluxSettings:
    """``jobs`` in eight hours; ``table`` is a list of Philly's jobs; ``realistic`` keeps the devices that its rows had."""

    jobs: int = 160
    table: str = ""
    realistic: bool = False

    def __post_init__(self) -> None:
        check_above_zero(self, "jobs")


def pollux(seed: int, given: Mapping[str, object]) -> Trace:
    """The workload of a seed; the original's workload-6 is seed 6."""
    settings = settings_of(PolluxSettings, given)
    rows = read_rows(Path(settings.table)) if settings.table else _own_rows(seed, settings.jobs)
    return draw(seed, settings, rows)


def draw(seed: int, settings: PolluxSettings, rows: Rows) -> Trace:
    """The workload of a seed from rows that were read before."""
    if len(rows.submit) < settings.jobs:
        raise fault("jobs", f"{settings.jobs} of {len(rows.submit)} rows cannot be drawn", "give fewer jobs, or a longer table")
    first, second, third = (random.Random(seed + offset) for offset in (0, 3, 4))
    picked = np.random.RandomState(first.randint(0, 2**32)).choice(len(rows.submit), settings.jobs, replace=False)
    drawn = []
    for row in picked.tolist():
        app = _application(rows.gpu_seconds[row] / _HOURS, first)
        devices, batch = first.choice(CONFIGURATIONS[app])
        if app == "deepspeech2" and second.randint(0, 1) == 1:
            app = "bert"
            devices, batch = second.choice(CONFIGURATIONS[app])
        if settings.realistic:
            devices = _real_devices(rows, row, app, third)
            batch = BASE[app] * devices
        drawn.append((float(rows.submit[row]), app, devices, batch))
    drawn.sort(key=lambda job: job[0])
    submit, apps, sizes, batches = (list(column) for column in zip(*drawn))
    columns = {
        "job": pl.Series([f"{name}-{number}" for number, name in enumerate(apps)]),
        "arrival": pl.Series(submit, dtype=pl.Float64),
        "gpus": pl.Series(sizes, dtype=pl.Int64),
        "duration": pl.Series([GPU_SECONDS[name] / count for name, count in zip(apps, sizes)], dtype=pl.Float64),
        "app": pl.Series(apps),
        "model": pl.Series(apps),
        "batch_size": pl.Series(batches, dtype=pl.Int64),
    }
    return as_trace(columns, f"pollux seed={seed}", ("durations are nominal: seconds on one T4 divided by the GPUs",))


def _application(gpu_hours: float, chance: random.Random) -> str:
    if gpu_hours < 1:
        return chance.choice(("cifar10", "ncf"))
    return "deepspeech2" if gpu_hours < 10 else "yolov3" if gpu_hours < 100 else "imagenet"


def _real_devices(rows: Rows, row: int, app: str, chance: random.Random) -> int:
    """The row's own devices; for the two largest applications those of any job of that class that took a day at most."""
    if app not in ("yolov3", "imagenet"):
        return int(rows.gpus[row])
    low, high = (10.0, 100.0) if app == "yolov3" else (100.0, np.inf)
    hours = rows.gpu_seconds / _HOURS
    alike = (hours >= low) & (hours < high) & (rows.duration <= 24 * _HOURS)
    return int(chance.choice(rows.gpus[alike].tolist()))


def read_rows(path: Path) -> Rows:
    """The rows of the window, from a list with the columns timestamp, duration, num_gpus and gpu_time."""
    frame = pl.read_csv(unpack(path), infer_schema_length=None)
    for name in ("timestamp", "duration", "num_gpus", "gpu_time"):
        if name not in frame.columns:
            raise TraceError(f"has no column '{name}'", file=str(path), line=1, fix="timestamp,duration,num_gpus,gpu_time")
    moment = frame["timestamp"].cast(pl.String).str.to_datetime(strict=False)
    frame = frame.with_columns(moment.alias("moment")).drop_nulls("moment")
    frame = frame.filter((pl.col("duration") >= _SHORTEST) & (pl.col("gpu_time") < _LARGEST))
    hour, minute, second = (getattr(pl.col("moment").dt, part)().cast(pl.Int64) for part in ("hour", "minute", "second"))
    frame = frame.with_columns((hour * 3600 + minute * 60 + second).alias("clock"))
    frame = frame.filter((pl.col("clock") >= _OPENS) & (pl.col("clock") < _CLOSES))
    return Rows(
        frame["clock"].to_numpy().astype(np.float64) - _OPENS,
        frame["num_gpus"].to_numpy().astype(np.int64),
        frame["duration"].to_numpy().astype(np.float64),
        frame["gpu_time"].to_numpy().astype(np.float64),
    )


def _own_rows(seed: int, jobs: int) -> Rows:
    """Rows like Philly's: arrivals of many days folded into the window."""
    frame = philly(seed, {"jobs": max(6 * jobs, 2000)}).frame
    duration, gpus = frame["duration"].to_numpy().astype(np.float64), frame["gpus"].to_numpy().astype(np.int64)
    clock = frame["arrival"].to_numpy().astype(np.float64) % (_CLOSES - _OPENS)
    kept = (duration >= _SHORTEST) & (duration * gpus < _LARGEST)
    return Rows(np.floor(clock[kept]), gpus[kept], duration[kept], (duration * gpus)[kept])
