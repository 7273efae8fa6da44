"""Series over time from CSV files: carbon intensity in g/kWh, or money per kilowatt-hour.

A file has one row per step, steps of one length, and names its time in one column: `hour` or `hours` (numbers), `time` or `seconds`
(numbers), or dates in `datetime`, `timestamp` or `date`. Dates without a zone are UTC; a zone that changes within the file is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gantline.core.errors import NotFoundError, UsageError
from gantline.core.facts import Signal
from gantline.core.fields import LONGEST, seconds
from gantline.traces.dates import seconds_since_1970, zone_offsets
from gantline.traces.importers.table import moment, number, read_foreign
from gantline.traces.read import RawTable

CARBON = ("lca", "carbon_intensity_avg", "carbon_intensity", "intensity", "carbon")
PRICE = ("price", "electricity_price", "money")
_NUMBERS = {"hour": 3600.0, "hours": 3600.0, "time": 1.0, "seconds": 1.0}
_DATES = ("datetime", "timestamp", "date")


def read_carbon(path: str) -> Signal:
    """Carbon intensity in g/kWh; it cannot be negative."""
    return _read(path, CARBON, "--carbon", least=0.0)


def read_electricity(given: str) -> Signal:
    """Money per kilowatt-hour: a number for a price that never changes, or a file. Prices below zero exist."""
    try:
        return Signal((float(given),), step=LONGEST)
    except ValueError:
        return _read(given, PRICE, "--electricity", least=None)


def start_of(signal: Signal, text: str, where: str = "--series-start") -> Signal:
    """The signal from where the run begins: hours after its first row (3000), a time (125d), or a date where the file has dates."""
    if not text:
        return signal
    if "-" in text or "T" in text:
        date = pl.Series([text])
        found = seconds_since_1970(date)
        if found.null_count():
            raise UsageError(f"'{text}' is not a date", where=where, fix="such as 2022-05-06T00:00")
        if signal.origin is None:
            raise UsageError("the series has no dates", where=where, fix="give hours after its first row, such as 3000")
        return signal.starting(float(found[0]) - float(zone_offsets(date)[0]) - signal.origin)
    try:
        return signal.starting(float(text) * 3600.0)
    except ValueError:
        return signal.starting(seconds(text))


def _read(path: str, names: Sequence[str], where: str, least: float | None) -> Signal:
    if not Path(path).is_file():
        raise NotFoundError(f"no file '{path}'", where=where, fix="name a CSV file with a column for time and one of " + ", ".join(names))
    raw = read_foreign(Path(path), ())
    times, origin = _times(raw)
    value = number(raw, _value_column(raw, names), required=True)
    if value.is_nan().any():
        raise raw.error(
            "is not a number", row=int(value.is_nan().arg_true()[0]), field=value.name, fix="fill the gap, or cut the series there"
        )
    if least is not None and (value < least).any():
        raise raw.error(f"is below {least:g}", row=int((value < least).arg_true()[0]), field=value.name)
    return Signal(tuple(value.to_list()), _step(raw, times), origin)


def _times(raw: RawTable) -> tuple[pl.Series, float | None]:
    """The instants of the rows in seconds, and the first of them since 1970 where they are dates."""
    columns = raw.frame.columns
    for name, unit in _NUMBERS.items():
        if name in columns:
            return number(raw, name, required=True) * unit, None
    for name in _DATES:
        if name in columns:
            zones = zone_offsets(raw.frame[name])
            if zones.n_unique() > 1:
                row = int((zones != zones[0]).arg_true()[0])
                raise raw.error("changes its time zone", row=row, field=name, fix="give all dates in one zone, such as UTC")
            times = moment(raw, name) - float(zones[0])
            return times, float(times[0])
    known = ", ".join((*_NUMBERS, *_DATES))
    raise raw.error("has no column for time", fix=f"name one of its columns {known}")


def _value_column(raw: RawTable, names: Sequence[str]) -> str:
    named = [name for name in names if name in raw.frame.columns]
    others = [name for name in raw.frame.columns if name not in _NUMBERS and name not in _DATES]
    if named or len(others) == 1:
        return (named or others)[0]
    raise raw.error(f"does not say which column holds the values: {', '.join(others) or 'none'}", fix=f"name it one of {', '.join(names)}")


def _step(raw: RawTable, times: pl.Series) -> float:
    """The one distance of all rows; a gap, a row twice and rows out of order are refused with their line."""
    if len(times) < 2:
        return 3600.0
    gaps = times.diff().slice(1)
    step = float(gaps[0])
    wrong = ((gaps - step).abs() > 1e-6) | (gaps <= 0)
    if wrong.any():
        row = int(wrong.arg_true()[0]) + 1
        what = f"is {float(gaps[row - 1]):g} s after the row above, where the first two are {step:g} s apart"
        raise raw.error(what, row=row, fix="steps of one length without gaps: fill in what is missing, or cut the series there")
    return step
