"""What is read or looked at in one step for speed gives what the careful steps give, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gantline.core.errors import TraceError
from gantline.traces.cells import typed
from gantline.traces.check import check, repair
from gantline.traces.faults import contradictions
from gantline.traces.read import read_csv
from gantline.traces.trace import Trace

HEADER = "job,arrival,gpus,duration,queue"
CELLS = (
    "5",
    " 5",
    "5 ",
    "\t5",
    "\v5",
    "+5",
    ".5",
    "5.",
    "1e3",
    "1E-400",
    "1e400",
    "nan",
    "inf",
    "Infinity",
    "0x10",
    "1_000",
    "true",
    "null",
)
MORE = ("", "--5", "5f", "1e", "٥", "0.1", "2.2250738585072011e-308", "123456789012345678901234567890")


@pytest.mark.parametrize("cell", CELLS + MORE)
@pytest.mark.parametrize("quoted", [False, True])
def test_a_number_read_at_once_is_what_its_text_says(cell: str, quoted: bool) -> None:
    written = f'"{cell}"' if quoted else cell
    data = f"job,arrival,gpus,duration\na,0,1,{written}\nb,1,1,9\n".encode()
    at_once, as_text = (typed(read_csv(data, "t", numbers=numbers).frame) for numbers in (("arrival", "gpus", "duration"), ()))
    assert at_once[0].equals(as_text[0])
    assert [finding.describe(0) for finding in at_once[1]] == [finding.describe(0) for finding in as_text[1]]


def test_one_doubtful_number_leaves_all_cells_text_so_that_it_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{HEADER}\na,0,1,60,q\nb,1,1,60x,q\n")
    with pytest.raises(TraceError, match=r"t.csv:3: field 'duration': '60x' is not a number"):
        Trace.load(tmp_path / "t.csv")


@pytest.mark.parametrize("name", [" q", "q ", "\tq", "q\n", "\u00a0q", "q\u2003", "\u3000", " "])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_spaces_around_a_name_are_seen_wherever_they_are(tmp_path: Path, name: str, ending: str) -> None:
    rows = pl.DataFrame({"job": ["a", "b", "c"], "arrival": [0.0] * 3, "gpus": [1] * 3, "duration": [9.0] * 3, "queue": ["q", name, ""]})
    path = tmp_path / f"t.{ending}"
    rows.write_csv(path) if ending == "csv" else rows.write_parquet(path)
    assert [problem.what for problem in check(path)] == [f"{name!r} has spaces around it"]


@pytest.mark.parametrize("name", ["é", "q uiet", "日本", "~"])
def test_letters_beyond_ascii_and_spaces_within_are_no_fault(name: str) -> None:
    assert Trace.from_records([{"job": name, "arrival": 0, "gpus": 1, "duration": 9, "queue": name}]).frame["queue"].to_list() == [name]


@example(["j8", None, "j8"])
@given(st.lists(st.sampled_from(["j8", "j9", "j10", "j11", "k", "", None]), min_size=1, max_size=8))
def test_ids_used_twice_are_found_whether_jobs_are_counted_or_not(names: Sequence[str | None]) -> None:
    rows = len(names)
    columns = {"arrival": [0.0] * rows, "gpus": [1] * rows, "duration": [float(at + 1) for at in range(rows)]}
    frame = pl.DataFrame({"job": pl.Series(names, dtype=pl.String), **columns})
    again = {at for at, name in enumerate(names) if name is not None and name in names[:at]}
    assert {row for finding in contradictions(frame) for row in finding.rows} == again


def test_repair_writes_numbers_that_it_leaves_as_they_were_spelled(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("job,arrival,gpus,duration\na,0,1,60\na,5,4,-7\n")
    repair(tmp_path / "t.csv", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[2] == "a,5,4,-7"
