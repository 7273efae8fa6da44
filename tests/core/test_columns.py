"""The table of columns: it names what kernels name, and blank rows, views and pages follow from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gantline.core.columns import Constants, DeviceTable, JobTable, NodeTable, Table
from gantline.core.job_json import KEYS
from gantline.core.options import OptionTable

ROOT = Path(__file__).parents[2]
TABLES = [JobTable, OptionTable, NodeTable, DeviceTable]


def places(constants: type[Constants]) -> set[str]:
    return {name for name in vars(constants) if not name.startswith("_")}


@pytest.mark.parametrize("table", TABLES)
def test_kernels_and_the_table_name_the_same_columns_in_one_order(table: type[Table]) -> None:
    assert {column.name.upper() for column in table.columns()} == places(table.places)
    for kind in (np.float64, np.int64):
        listed = [column.place for column in table.columns(kind)]
        assert listed == list(range(len(listed)))


@pytest.mark.parametrize("table", TABLES)
def test_a_blank_row_has_the_default_of_every_column(table: type[Table]) -> None:
    blank = table.blank(3)
    for column in table.columns():
        np.testing.assert_array_equal(getattr(blank, column.name), np.full(3, column.default))


def test_a_column_is_a_view_of_the_matrix_and_is_written_in_place() -> None:
    jobs = JobTable.blank(4)
    jobs.due[[1, 3]] = 5.0
    assert jobs.F[JobTable.due.place].tolist() == [0.0, 5.0, 0.0, 5.0]
    with pytest.raises(AttributeError, match=r"due\[:\]"):
        jobs.due = np.zeros(4)


def test_rows_that_come_in_are_blank_and_the_others_stay() -> None:
    jobs = JobTable.blank(1)
    jobs.gpus[0], jobs.until[0] = 8, 60.0
    jobs.grow(3)
    assert jobs.gpus.tolist() == [8, 0, 0]
    assert jobs.until.tolist() == [60.0, np.inf, np.inf]


def test_the_page_of_snapshots_names_every_field_of_a_job() -> None:
    page = (ROOT / "docs" / "snapshots.md").read_text(encoding="utf-8")
    assert [key for key in KEYS if f"`{key}`" not in page] == []


def test_the_page_of_columns_has_a_line_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    from column_reference import page

    for table in TABLES:
        for column in table.columns():
            assert f"| `{table.places.__name__}.{column.name.upper()}` |" in page()
