"""Columns under other known names become native ones, in seconds where the name states another unit."""

from __future__ import annotations

import polars as pl

from gantline.traces.aliases import alias_of, unit_of
from gantline.traces.dates import seconds_of_words, seconds_since_1970, zone_offsets
from gantline.traces.exact import divide
from gantline.traces.schema import COLUMNS, REQUIRED

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
