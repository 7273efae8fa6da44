"""Columns under other known names become native ones, in seconds where the name states another unit."""

from __future__ import annotations

import polars as pl

from gantline.workload.aliases import alias_of, unit_of
from gantline.workload.exact import divide

_EPOCH_MILLISECONDS = 1e11
_EPOCH_SECONDS = 1e9


def rename(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Known aliases get the native name and seconds; a name that could mean two things stays."""
    said = []
    wanted: dict[str, list[str]] = {}
    for name in frame.columns:
        native = alias_of(name)
        if native is not None and native not in frame.columns:
            wanted.setdefault(native, []).append(name)
    in_milliseconds = _stamped_in_milliseconds(frame)
    for native, names in wanted.items():
        if len(names) > 1:
            said.append(f"left: {', '.join(names)} could all be '{native}'; rename one")
            continue
        name, unit = names[0], unit_of(names[0])
        if native == "duration" and unit is None and in_milliseconds:
            said.append(f"left: '{name}' may be in milliseconds like the times of arrival; name it duration_s or _ms")
            continue
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
