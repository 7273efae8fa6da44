"""Series of carbon intensity and prices from files: what is read, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantline.core.errors import GantlineError
from gantline.traces.files.signals import read_carbon, read_electricity, start_of


def _file(folder: Path, text: str) -> str:
    path = folder / "series.csv"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "values", "step"),
    [
        ("hour,lca,direct\n0,10,1\n1,20,2\n", (10.0, 20.0), 3600.0),
        ("seconds,intensity\n0,10\n300,20\n600,5\n", (10.0, 20.0, 5.0), 300.0),
        ("datetime,carbon_intensity_avg\n2022-01-01 00:00:00+00:00,7\n2022-01-01 01:00:00+00:00,8\n", (7.0, 8.0), 3600.0),
        ("hour,only\n5,10\n6,20\n", (10.0, 20.0), 3600.0),
    ],
)
def test_the_time_and_the_value_are_found_by_their_names(tmp_path: Path, text: str, values: tuple[float, ...], step: float) -> None:
    signal = read_carbon(_file(tmp_path, text))

    assert (signal.values, signal.step) == (values, step)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("hour,lca\n0,10\n1,20\n3,5\n", "series.csv:4.*7200 s after the row above"),
        ("hour,lca\n0,10\n0,20\n", "series.csv:3.*0 s after"),
        ("hour,lca\n0,10\n1,\n", "series.csv:3.*is empty"),
        ("hour,lca\n0,10\n1,nan\n", "series.csv:3"),
        ("hour,lca\n0,10\n1,-3\n", "series.csv:3.*below 0"),
        ("hour,a,b\n0,1,2\n1,2,3\n", "which column holds the values: a, b"),
        ("lca\n1\n2\n", "no column for time"),
        ("datetime,lca\n2022-03-27 01:00:00+01:00,1\n2022-03-27 03:00:00+02:00,2\n", "time zone"),
    ],
)
def test_gaps_holes_and_changing_zones_are_refused(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(GantlineError, match=what):
        read_carbon(_file(tmp_path, text))


def test_a_price_may_be_one_number_or_a_series_that_falls_below_zero(tmp_path: Path) -> None:
    assert read_electricity("0.25").values == (0.25,)
    assert read_electricity(_file(tmp_path, "hour,price\n0,0.1\n1,-0.02\n")).values == (0.1, -0.02)


def test_a_run_may_begin_at_an_hour_or_at_a_date_in_any_zone(tmp_path: Path) -> None:
    hours = read_carbon(_file(tmp_path, "hour,lca\n" + "".join(f"{k},{k}\n" for k in range(10))))
    dates = read_carbon(_file(tmp_path, "datetime,lca\n" + "".join(f"2022-01-01T{k:02}:00+01:00,{k}\n" for k in range(10))))

    assert start_of(hours, "3").values[0] == 3.0
    assert start_of(hours, "2h").values[0] == 2.0
    assert start_of(dates, "2022-01-01T03:00+00:00").values[0] == 4.0
    with pytest.raises(GantlineError, match="no dates"):
        start_of(hours, "2022-01-01")
    with pytest.raises(GantlineError, match="no step"):
        start_of(hours, "10")
