"""A trace survives every file format, and says precisely what is wrong with a bad one."""

from __future__ import annotations

import gzip
import os
import stat
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gantline.core.errors import GantlineError, NotFoundError, TraceError, UsageError
from gantline.traces.trace import Trace

HEADER = "job,arrival,gpus,duration"


def small() -> Trace:
    return Trace.from_records(
        [
            {"job": "a", "arrival": 0, "gpus": 1, "duration": 60, "user": "ann", "colour": "red"},
            {"job": "b", "arrival": 10.5, "gpus": 4, "duration": 3600.25, "user": None, "colour": "blue"},
            {"job": "c", "arrival": 10.5, "gpus": 8, "duration": 1e-3, "user": 'Zoë, "Z"', "colour": None},
        ]
    )


def load(tmp_path: Path, text: str | bytes, name: str = "trace.csv") -> Trace:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Trace.load(path)


def refusal(tmp_path: Path, text: str | bytes, name: str = "trace.csv") -> TraceError:
    with pytest.raises(TraceError) as caught:
        load(tmp_path, text, name)
    assert caught.value.file.endswith(name)
    return caught.value


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "jsonl.gz", "ndjson", "parquet"])
def test_saved_and_loaded_is_the_same_trace(tmp_path: Path, ending: str) -> None:
    trace = small()
    path = trace.save(tmp_path / f"t.{ending}")
    again = Trace.load(path)
    assert again == trace
    assert again.hash == trace.hash
    assert again.frame.select(trace.frame.columns).equals(trace.frame)
    assert again.source == str(path)
    assert again.notes == ("kept beside the usual columns, for a regime that reads them: colour",)


def test_a_column_that_is_probably_meant_for_another_is_named(tmp_path: Path) -> None:
    table = f"{HEADER},gpu_type,name\na,0,1,5,v100,x\n"
    assert load(tmp_path, table).notes == (
        "kept beside the usual columns, for a regime that reads them: gpu_type, name",
        "'gpu_type' is not read (rename it if it is 'type')",
    )


@settings(max_examples=settings().max_examples // 3)
@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e9),
            st.integers(1, 4096),
            st.floats(1e-6, 1e9),
            st.text(st.characters(codec="utf-8"), max_size=8),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_any_content_round_trips_through_every_format(tmp_path_factory: pytest.TempPathFactory, rows) -> None:
    rows.sort(key=lambda row: row[0])
    frame = pl.DataFrame(
        {
            "job": [str(i) for i in range(len(rows))],
            "arrival": [float(row[0]) for row in rows],
            "gpus": [row[1] for row in rows],
            "duration": [float(row[2]) for row in rows],
            "user": ["u" + row[3].strip() + "." for row in rows],
        }
    )
    trace = Trace.from_frame(frame)
    folder = tmp_path_factory.mktemp("formats")
    assert {Trace.load(trace.save(folder / f"t.{ending}")).hash for ending in ("csv", "jsonl", "parquet")} == {trace.hash}


def test_hash_follows_the_content_only(tmp_path: Path) -> None:
    trace = small()
    reordered = Trace(trace.frame.select(sorted(trace.frame.columns)), "elsewhere", ("a note",))
    longer = Trace(trace.frame.with_columns(duration=pl.col("duration") + 1e-9))
    assert reordered.hash == trace.hash
    assert longer.hash != trace.hash
    assert len({trace, reordered, longer}) == 2


def test_whole_number_ids_become_text_and_leading_zeros_stay(tmp_path: Path) -> None:
    assert load(tmp_path, f"{HEADER}\n0,0,1,5\n007,1,1,5\n").frame["job"].to_list() == ["0", "007"]
    assert Trace.from_records([{"job": 3, "arrival": 0, "gpus": 1, "duration": 5}]).frame["job"].to_list() == ["3"]
    frame = pd.DataFrame({"job": [0.0, 1.0], "arrival": [0, 1], "gpus": [1.0, 2.0], "duration": [5, 6]})
    trace = Trace.from_frame(frame)
    assert trace.frame["job"].to_list() == ["0", "1"]
    assert trace.frame.schema["gpus"] == pl.Int64


def test_pandas_frames_with_gaps_are_taken() -> None:
    frame = pd.DataFrame({"job": ["x", "y"], "arrival": [0, 1], "gpus": [1, 2], "duration": [5.0, 6.0], "user": ["ann", float("nan")]})
    assert Trace.from_frame(frame).frame["user"].to_list() == ["ann", ""]


def test_empty_cells_get_their_meaning(tmp_path: Path) -> None:
    text = f"{HEADER},min_gpus,max_gpus,work,priority,weight,deadline,user\na,0,2,50,,,,,,,\nb,1,2,50,1,4,99,3,2,70,ann\n"
    frame = load(tmp_path, text).frame
    assert frame.row(0, named=True) == {
        "job": "a", "arrival": 0.0, "gpus": 2, "duration": 50.0, "min_gpus": 2, "max_gpus": 2, "work": 50.0,
        "priority": 0.0, "weight": 1.0, "deadline": None, "user": "",
    }  # fmt: skip
    assert frame.row(1)[4:] == (1, 4, 99.0, 3.0, 2.0, 70.0, "ann")


def test_tabs_semicolons_windows_line_ends_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    plain = load(tmp_path, f"{HEADER}\na,0,1,5\nb,1,2,6\n")
    for text in (
        b"\xef\xbb\xbfjob,arrival,gpus,duration\r\na,0,1,5\r\nb,1,2,6\r\n",
        b"job\tarrival\tgpus\tduration\na\t0\t1\t5\nb\t1\t2\t6",
        b"job;arrival;gpus;duration\n\na;0;1;5\n\nb;1;2;6\n\n",
    ):
        assert load(tmp_path, text) == plain


@pytest.mark.parametrize(
    ("row", "field", "said"),
    [
        ("b,x,1,5", "arrival", "'x' is not a number"),
        ("b,2017-10-09 07:01:55,1,5", "arrival", "is a date"),
        ("b,nan,1,5", "arrival", "not finite"),
        ("b,5,1,inf", "duration", "not finite"),
        ("b,5,1,0", "duration", "not positive"),
        ("b,5,1,-3", "duration", "not positive"),
        ("b,-5,1,3", "arrival", "negative"),
        ("b,5,-1,3", "gpus", "-1 GPUs"),
        ("b,5,1.5,3", "gpus", "1.5 is not whole"),
        ("b,5,0,3", "gpus", "no CPUs"),
        ("b,5,1e30,3", "gpus", "too large"),
        ("b,5,,3", "gpus", "is empty"),
        ("b,5,1", "duration", "is empty"),
        ("b,5, 1,3", "gpus", "spaces around"),
        ("b ,5,1,3", "job", "spaces around"),
        (",5,1,3", "job", "is empty"),
        ("a,5,1,3", "job", "'a' is used by an earlier row"),
        ("a,1,1,9", "job", "repeats an earlier one"),
        ("b,0.5,1,3", "arrival", "before the row above it at 1"),
    ],
)
def test_a_bad_row_is_named_with_line_field_and_remedy(tmp_path: Path, row: str, field: str, said: str) -> None:
    error = refusal(tmp_path, f"{HEADER}\na,1,1,9\n{row}\n")
    assert (error.line, error.field) == (3, field)
    assert said in error.what
    assert error.fix


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("min_gpus", "3", "min_gpus 3 is above the 2 GPUs"),
        ("min_gpus", "-1", "negative"),
        ("max_gpus", "1", "max_gpus 1 is below the 2 GPUs"),
        ("work", "0", "not positive"),
        ("weight", "-1", "not positive"),
        ("deadline", "0.5", "before the arrival"),
        ("cpus", "-1", "-1 CPUs"),
        ("memory", "-1", "-1 GB"),
        ("attempts", "-1", "-1 attempts"),
        ("batch_size", "0", "batch size 0"),
        ("outcome", "fine", "'fine' is unknown"),
        ("options", "v100=4", "not a list of alternatives"),
        ("priority", "inf", "not finite"),
    ],
)
def test_contradictory_optional_columns_are_refused(tmp_path: Path, column: str, value: str, said: str) -> None:
    error = refusal(tmp_path, f"{HEADER},{column}\na,1,2,9,{value}\n")
    assert (error.line, error.field) == (2, column)
    assert said in error.what


def test_a_job_without_gpus_needs_cpus_or_a_cpu_alternative(tmp_path: Path) -> None:
    assert load(tmp_path, f"{HEADER},cpus\na,0,0,9,16\n").frame["gpus"].to_list() == [0]
    assert len(load(tmp_path, f"{HEADER},options\na,0,0,9,v100:4=3600|cpu:0/20=9000\n")) == 1
    assert refusal(tmp_path, f"{HEADER},options\na,0,0,9,v100:4=3600\n").field == "gpus"


def test_unsorted_arrivals_point_to_the_repair_command(tmp_path: Path) -> None:
    error = refusal(tmp_path, f"{HEADER}\na,5,1,9\nb,1,1,9\nc,0,1,9\n")
    assert f"gantline trace check {tmp_path / 'trace.csv'} --repair OUT" in str(error)
    assert "and 1 more problem" in str(error)


def test_lines_are_right_after_blank_lines_and_quoted_line_breaks(tmp_path: Path) -> None:
    text = f'\n{HEADER},user\n"a\nx",0,1,9,"two\nlines"\n\nb,1,1,9,u\nc,2,1,zero,u\n'
    assert refusal(tmp_path, text).line == 8


def test_lines_of_json_and_rows_of_parquet(tmp_path: Path) -> None:
    good = '{"job": "a", "arrival": 0, "gpus": 1, "duration": 5}'
    error = refusal(tmp_path, f'{good}\n\n{{"job": "b", "arrival": 1, "gpus": 1, "duration": -5}}\n', "t.jsonl")
    assert (error.line, error.field) == (3, "duration")
    for bad in ('{"job": "b", "arrival": 1,', "[1, 2]", "nonsense"):
        assert refusal(tmp_path, f"{good}\n{bad}\n", "t.jsonl").line == 2
    error = refusal(tmp_path, f'{good}\n{{"job": "b", "arrival": NaN, "gpus": 1, "duration": 5}}\n', "t.jsonl")
    assert (error.line, error.field) == (2, "arrival")
    assert "one JSON list" in refusal(tmp_path, f"[{good}]", "t.json").what
    pl.DataFrame({"job": ["a", "b"], "arrival": [0, 1], "gpus": [1, 1], "duration": [5.0, -1.0]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(TraceError) as caught:
        Trace.load(tmp_path / "t.parquet")
    assert caught.value.line == 2


def test_missing_columns_are_all_named_with_a_likely_reason(tmp_path: Path) -> None:
    error = refusal(tmp_path, "job,submit_time,submitted,gpus\na,0,0,1\n")
    assert "'arrival', 'duration' are missing" in error.what
    assert "rename 'submit_time' to 'arrival'" in error.fix
    assert error.line == 1
    assert "column 'duration' is missing" in refusal(tmp_path, "job,submit_time,gpus\na,0,1\n").what
    assert "must name the columns: job,arrival,gpus,duration" in refusal(tmp_path, "a,0,1,5\nb,1,1,5\n").fix


def test_files_that_are_empty_cut_short_or_not_text(tmp_path: Path) -> None:
    assert "is empty" in refusal(tmp_path, "").what
    assert "is empty" in refusal(tmp_path, "\n \n").what
    assert "holds no jobs" in refusal(tmp_path, HEADER + "\n").what
    assert refusal(tmp_path, f"{HEADER}\na,0,1,5\nb\xe9,1,1,5\n".encode("latin-1")).line == 3
    assert "UTF-16" in refusal(tmp_path, f"{HEADER}\na,0,1,5\n".encode("utf-16")).what
    packed = gzip.compress(f"{HEADER}\na,0,1,5\n".encode() * 50)
    assert "truncated gzip" in refusal(tmp_path, packed[:-12], "t.csv.gz").what
    parquet = small().save(tmp_path / "whole.parquet").read_bytes()
    assert "truncated Parquet" in refusal(tmp_path, parquet[:-20], "t.parquet").what
    assert "not a Parquet" in refusal(tmp_path, b"nothing like it", "t.parquet").what


def test_rows_with_too_many_fields_and_open_quotes(tmp_path: Path) -> None:
    error = refusal(tmp_path, f"{HEADER}\na,0,1,5\nb,1,1,5,6\n")
    assert (error.line, error.what) == (3, "has 5 fields, the table has 4")
    assert "never closed" in refusal(tmp_path, f'{HEADER}\na,0,1,5\n"b,1,1,5\n').what
    assert "carriage return" in refusal(tmp_path, f"{HEADER}\ra,0,1,5\r").what
    assert refusal(tmp_path, f'{HEADER}\n"a",0,1,5\nb,1,1,"\rx"\n').line == 3
    assert "appears twice" in refusal(tmp_path, "job,arrival,gpus,gpus\na,0,1,5\n").what


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        Trace.load(tmp_path / "none.csv")
    with pytest.raises(UsageError, match="folder"):
        Trace.load(tmp_path)
    with pytest.raises(UsageError, match="no known format"):
        small().save(tmp_path / "trace.xlsx")
    with pytest.raises(NotFoundError, match="folder"):
        small().save(tmp_path / "no" / "trace.csv")


def test_saving_replaces_whole_files_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("old")
    small().save(path)
    assert [child.name for child in tmp_path.iterdir()] == ["trace.csv"]
    assert stat.S_IMODE(os.stat(path).st_mode) & stat.S_IRUSR


def test_the_constructor_refuses_frames_of_other_types() -> None:
    with pytest.raises(TraceError, match="column 'gpus' is missing"):
        Trace(pl.DataFrame({"job": ["a"], "arrival": [0.0], "duration": [1.0]}))
    with pytest.raises(TraceError, match="from_frame"):
        Trace(pl.DataFrame({"job": ["a"], "arrival": [0], "gpus": [1], "duration": [1.0]}))


def test_remedies_for_frames_name_no_file() -> None:
    rows = [{"job": i, "arrival": -i + 9, "gpus": 1, "duration": 5} for i in range(3)]
    with pytest.raises(TraceError) as caught:
        Trace.from_records(rows)
    assert caught.value.fix == "sort the rows by arrival"


def test_no_records_at_all_are_no_jobs() -> None:
    with pytest.raises(TraceError, match="holds no jobs"):
        Trace.from_records([])


def test_dates_in_a_frame_are_refused_with_a_remedy() -> None:
    frame = pl.DataFrame({"job": ["a"], "arrival": ["2020-01-01"], "gpus": [1], "duration": [1.0]})
    with pytest.raises(TraceError, match="seconds from the start"):
        Trace.from_frame(frame.with_columns(pl.col("arrival").str.to_date()))


def complaint(path: Path) -> str:
    try:
        Trace.load(path)
    except GantlineError as error:
        return str(error)
    return ""


@given(st.binary(max_size=300))
def test_no_bytes_crash_the_reader(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "t.csv"
    for content in (data, HEADER.encode() + b"\na,0,1,5\n" + data, b'{"job": ' + data, b"PAR1" + data):
        path.write_bytes(content)
        said = complaint(path)
        assert said == "" or said.startswith(str(path))
