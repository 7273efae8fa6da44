"""Numbers of foreign tables: plain ones, ones with spaces around them, words for nothing, and what is no number."""

from __future__ import annotations

import polars as pl
import pytest

from gantline.core.errors import TraceError
from gantline.traces.importers.table import number
from gantline.traces.read import RawTable


def column(*cells: str) -> RawTable:
    return RawTable(pl.DataFrame({"seconds": list(cells)}), "log.csv")


def test_spaces_and_words_for_nothing_do_not_make_a_column_anything_but_numbers() -> None:
    assert number(column("1", "2.5", "-3e2"), "seconds").to_list() == [1.0, 2.5, -300.0]
    assert number(column("1", " 2.5 ", "3"), "seconds").to_list() == [1.0, 2.5, 3.0]
    assert number(column("1", "nan", "n/a", ""), "seconds").to_list() == [1.0, None, None, None]


@pytest.mark.parametrize("cell", ["inf", "-inf", "soon"])
def test_what_is_no_finite_number_is_refused_with_its_row(cell: str) -> None:
    with pytest.raises(TraceError, match=f"'{cell}' is not a number"):
        number(column("1", cell), "seconds")


def test_a_required_number_may_not_be_a_word_for_nothing() -> None:
    with pytest.raises(TraceError, match="is empty"):
        number(column("1", "nan"), "seconds", required=True)
