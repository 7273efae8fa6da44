"""Columns under other known names become native ones, in seconds where the name states another unit."""

from __future__ import annotations

import re
from collections.abc import Mapping

import polars as pl

from gantline.traces.dates import divide, seconds_of_words, seconds_since_1970, zone_offsets
from gantline.traces.schema import COLUMNS, REQUIRED

_NAMES: Mapping[str, tuple[str, ...]] = {
    "job": ("job_id", "jobid", "id", "job_name", "job_index", "name"),
    "arrival": ("arrival_time", "submit", "submit_time", "submitted", "submitted_time", "submission_time"),
    "gpus": ("gpu", "num_gpus", "num_gpu", "n_gpus", "ngpus", "gpu_num", "gpu_count", "gpus_requested", "num_replicas"),
    "duration": ("run_time", "runtime", "running_time", "elapsed", "service_time", "execution_time"),
    "user": ("user_id", "username", "user_name", "owner"),
    "queue": ("vc", "queue_name", "partition", "virtual_cluster"),
    "app": ("application",),
    "model": ("model_name",),
    "type": ("gpu_type", "device_type", "accelerator"),
    "cpus": ("num_cpus", "cpu_num", "ncpus"),
    "memory": ("mem", "mem_gb", "memory_gb"),
    "batch_size": ("batchsize", "bs"),
}
_ALIASES = {alias: name for name, aliases in _NAMES.items() for alias in aliases}
SECONDS_PER_UNIT: Mapping[str, float] = {
    "ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "min": 60.0, "mins": 60.0, "minutes": 60.0,
    "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hours": 3600.0, "days": 86400.0,
}  # fmt: skip


def alias_of(name: str) -> str | None:
    """The native column that a foreign name means: ``alias_of("Submit_Time_ms") == "arrival"``."""
    return _resolve(name)[0]


def unit_of(name: str) -> float | None:
    """Seconds per unit that the name states (``run_time_h``: 3600); None where it states none."""
    return _resolve(name)[1]


def _resolve(name: str) -> tuple[str | None, float | None]:
    plain = re.sub(r"[\s\-.]+", "_", name.strip().lower())
    if plain in _ALIASES or plain in COLUMNS:
        return _ALIASES.get(plain, plain if plain != name else None), None
    stem, _, unit = plain.rpartition("_")
    native = _ALIASES.get(stem, stem if stem in COLUMNS else None)
    if native is not None and unit in SECONDS_PER_UNIT and COLUMNS[native].unit == "s":
        return native, SECONDS_PER_UNIT[unit]
    return None, None


_EPOCH_MILLISECONDS = 1e11
_EPOCH_SECONDS = 1e9


def native(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The frame with the columns that every trace has, if they are there under names that can mean nothing else."""
    if all(name in frame.columns for name in REQUIRED):
        return frame, []
    frame, said = rename(frame)
    frame, news = seconds_from_dates(frame)
    return frame, said + news


def rename(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Known aliases get the native name and seconds; a name that could mean two things stays."""
    said = []
    wanted: dict[str, list[str]] = {}
    for name in frame.columns:
        native = alias_of(name)
        if native is not None and native not in frame.columns:
            wanted.setdefault(native, []).append(name)
    bare = [name for name in wanted.get("duration", []) if unit_of(name) is None]
    if bare and _stamped_in_milliseconds(frame):  # seconds or not: both stay, so that they are not taken for seconds later
        said.append(f"left: '{bare[0]}' may be in milliseconds like the times of arrival; name it duration_s or _ms")
        wanted = {native: names for native, names in wanted.items() if native not in ("arrival", "duration")}
    for native, names in wanted.items():
        if len(names) > 1:
            said.append(f"left: {', '.join(names)} could all be '{native}'; rename one")
            continue
        name, unit = names[0], unit_of(names[0])
        frame = frame.rename({name: native})
        if unit is not None and unit != 1.0:
            number = frame[native].cast(pl.Float64, strict=False)
            text = (divide(number, 1 / unit) if unit < 1 else number * unit).cast(pl.String)
            frame = frame.with_columns(pl.coalesce(text, pl.col(native).cast(pl.String)).alias(native))
            said.append(f"renamed '{name}' to '{native}' and turned it into seconds (x {unit:g})")
        else:
            said.append(f"renamed '{name}' to '{native}'")
        if native == "arrival":
            frame, news = _from_zero(frame)
            said += news
    return frame, said


def _stamped_in_milliseconds(frame: pl.DataFrame) -> bool:
    names = [name for name in frame.columns if "arrival" in (name, alias_of(name)) and unit_of(name) is None]
    numbers = [frame[name].cast(pl.Float64, strict=False) for name in names if not frame.schema[name].is_temporal()]
    return any(bool((number > _EPOCH_MILLISECONDS).any()) for number in numbers)


def _from_zero(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Unix time becomes seconds since the first arrival; absolute deadlines move along."""
    if frame.schema["arrival"].is_temporal():
        return frame, []
    arrival = frame["arrival"].cast(pl.Float64, strict=False)
    if arrival.is_empty() or arrival.null_count() or not (arrival > _EPOCH_SECONDS).all():
        return frame, []
    unit = 1000.0 if (arrival > _EPOCH_MILLISECONDS).all() else 1.0
    first = float(arrival.to_numpy().min())
    changed = {"arrival": divide(arrival - first, unit)}
    if "deadline" in frame.columns:
        changed["deadline"] = divide(frame["deadline"].cast(pl.Float64, strict=False) - first, unit)
    kind = "milliseconds" if unit > 1 else "seconds"
    return frame.with_columns(**changed), [f"counted arrivals from the first one (Unix {kind} {first:.0f})"]


def seconds_from_dates(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Dates of arrival become seconds since the first one."""
    if "arrival" not in frame.columns or frame.is_empty():
        return frame, []
    arrival = frame["arrival"]
    if arrival.dtype == pl.String:
        seconds = seconds_since_1970(arrival) - zone_offsets(arrival)
        first = str(arrival[seconds.arg_min() or 0]).replace("T", " ")
    elif arrival.dtype.is_temporal() and arrival.dtype != pl.Time:
        seconds = divide(arrival.cast(pl.Datetime("us")).cast(pl.Int64), 1e6)
        first = str(arrival.dt.to_string("%Y-%m-%d %H:%M:%S").min())
    else:
        return frame, []
    if seconds.null_count():
        return frame, []
    return frame.with_columns((seconds - seconds.min()).alias("arrival")), [f"counted arrivals in seconds from {first}"]


def seconds_from_words(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Times such as ``5m`` or ``01:30:00`` become seconds, in columns that hold nothing worse."""
    said = []
    for name in [name for name in frame.columns if name in COLUMNS and COLUMNS[name].unit == "s" and frame.schema[name] == pl.String]:
        cells = frame[name].replace("", None)
        number = cells.cast(pl.Float64, strict=False)
        words = cells.filter(cells.is_not_null() & number.is_null())
        if words.is_empty() or seconds_of_words(words).null_count():
            continue
        frame = frame.with_columns(number.fill_null(seconds_of_words(cells)).alias(name))
        said.append(f"turned {len(words)} value{'s' * (len(words) > 1)} of '{name}' such as '{words[0]}' into seconds")
    return frame, said
