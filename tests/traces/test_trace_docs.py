"""The page about traces names every column, every format and every option that the code knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gantline.traces.importers.registry import import_options, importer_names
from gantline.traces.schema import COLUMNS, REQUIRED

PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")]


@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_is_in_the_table(name: str) -> None:
    (row,) = [row for row in ROWS if re.search(rf"`{name}`", row.split("|")[1])]
    assert COLUMNS[name].kind in row
    assert ("**" in row.split("|")[1]) == (name in REQUIRED)
    if COLUMNS[name].unit:
        assert COLUMNS[name].unit == row.split("|")[3].strip()


@pytest.mark.parametrize("name", importer_names())
def test_every_format_is_in_the_table_with_its_options(name: str) -> None:
    (row,) = [row for row in ROWS if row.split("|")[1].strip() == f"`{name}`"]
    written = re.findall(r"`(\w+)`(?! or)(?=[^`]*)", row.split("|")[3])
    assert {option.name for option in import_options(name)} <= set(written)
