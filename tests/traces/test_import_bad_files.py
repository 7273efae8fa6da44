"""Every importer on files that are empty, cut, compressed, mis-encoded or something else altogether."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gantline.core.errors import GantlineError, NotFoundError, TraceError, UsageError
from gantline.traces.cells import typed
from gantline.traces.check import check, repair
from gantline.traces.faults import contradictions
from gantline.traces.importers import import_trace
from gantline.traces.importers.registry import find_importer, import_options, importer_names
from gantline.traces.importers.table import number
from gantline.traces.read import RawTable, read_csv
from gantline.traces.trace import Trace

FIXTURES = Path(__file__).parent / "fixtures"
EXCERPTS = {
    "acme": "acme.csv",
    "blox": "blox.csv",
    "elasticflow": "elasticflow.csv",
    "gavel": "gavel.trace",
    "gaia": "gaia.csv",
    "helios": "helios.csv",
    "irfsim": "irfsim.txt",
    "lucid": "lucid_september.csv",
    "mapa": "mapa.csv",
    "muri": "muri.csv",
    "pal": "pal.csv",
    "openb": "openb.csv",
    "pai": "pai_task_table.csv",
    "philly": "philly.json",
    "philly-list": "philly_list.csv",
    "pollux": "pollux.csv",
    "sacct": "sacct.txt",
    "synergy": "synergy.csv",
    "spot": "spot.csv",
    "swf": "swf.txt",
    "tiresias": "tiresias.csv",
}
OPTIONS = {  # what a format cannot be read without
    "elasticflow": {"throughputs": FIXTURES / "elasticflow_speeds.csv"},
    "synergy": {"profiles": FIXTURES.parents[2] / "examples" / "sensitivity"},
}
each_format = pytest.mark.parametrize("name", sorted(importer_names()))


def bring(name: str, source: Path) -> Trace:
    return import_trace(name, source, OPTIONS.get(name))


@cache
def excerpt(name: str) -> Trace:
    return bring(name, FIXTURES / EXCERPTS[name])


def test_every_format_has_an_excerpt() -> None:
    assert set(EXCERPTS) == set(importer_names())


def tar(data: bytes, name: str) -> bytes:
    held, member = io.BytesIO(), tarfile.TarInfo(name)
    member.size = len(data)
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        archive.addfile(member, io.BytesIO(data))
    return held.getvalue()


def zipped(data: bytes, name: str) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr(name, data)
    return held.getvalue()


PACKED: dict[str, Callable[[bytes, str], bytes]] = {
    "gz": lambda data, name: gzip.compress(data),
    "bz2": lambda data, name: bz2.compress(data),
    "xz": lambda data, name: lzma.compress(data),
    "tar.gz": tar,
    "zip": zipped,
}


@pytest.mark.parametrize("ending", PACKED)
@each_format
def test_packed_files_give_the_same_trace(tmp_path: Path, name: str, ending: str) -> None:
    source = FIXTURES / EXCERPTS[name]
    path = tmp_path / f"{source.name}.{ending}"
    path.write_bytes(PACKED[ending](source.read_bytes(), source.name))
    assert bring(name, path) == excerpt(name)


def test_archives_of_several_files_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("one.csv", "x")
        archive.writestr("two.csv", "y")
    with pytest.raises(TraceError, match=r"zip archive holding one\.csv, two\.csv"):
        import_trace("blox", tmp_path / "a.zip")


@each_format
def test_empty_cut_and_foreign_files_are_refused_in_words(tmp_path: Path, name: str) -> None:
    data = (FIXTURES / EXCERPTS[name]).read_bytes()
    cases = {
        "empty": b"",
        "blank": b" \n\n",
        "gzip cut short": gzip.compress(data)[:-15],
        "not UTF-8": data[:40] + b"\xff\xfe\xe9" + data[40:],
        "UTF-16": data.decode().encode("utf-16"),
        "zstd": b"\x28\xb5\x2f\xfd....",
        "binary": bytes(range(256)),
        "prose": b"It was a dark and stormy night;\nthe rain fell in torrents.\n",
        "numbers": b"1 2 3\n4 5 6\n",
    }
    for content in cases.values():
        path = tmp_path / "input"
        path.write_bytes(content)
        with pytest.raises(TraceError) as caught:
            bring(name, path)
        assert str(path) in str(caught.value)
        assert caught.value.fix


@each_format
def test_missing_files_are_not_found(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFoundError):
        bring(name, tmp_path / "nowhere")


@each_format
def test_a_file_cut_anywhere_is_read_in_part_or_refused(tmp_path: Path, name: str) -> None:
    data = (FIXTURES / EXCERPTS[name]).read_bytes()
    whole = len(excerpt(name))
    path = tmp_path / "cut"
    for end in range(1, len(data), max(1, len(data) // 5)):
        path.write_bytes(data[:end])
        assert outcome(name, path) <= whole


@each_format
@settings(max_examples=settings().max_examples // 3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.floats(0, 1), noise=st.binary(min_size=1, max_size=6))
def test_noise_in_a_file_never_crashes_the_importer(tmp_path: Path, name: str, position: float, noise: bytes) -> None:
    data = (FIXTURES / EXCERPTS[name]).read_bytes()
    whole = len(excerpt(name))
    at = int(position * len(data))
    path = tmp_path / "noisy"
    path.write_bytes(data[:at] + noise + data[at:])
    assert outcome(name, path) <= whole + len(noise)  # each byte may break a line in two, and invents no more than that


def outcome(name: str, path: Path) -> int:
    """The number of jobs read, 0 for a refusal in words; anything else is a crash."""
    try:
        return len(bring(name, path))
    except GantlineError:
        return 0


def test_registry_knows_formats_and_their_options() -> None:
    assert [option.name for option in import_options("gavel")] == ["throughputs", "device"]
    assert all(option.help and option.type for name in importer_names() for option in import_options(name))
    assert all(find_importer(name).__doc__ for name in importer_names())
    with pytest.raises(NotFoundError, match=r"no trace format 'phily'.*'philly'"):
        import_trace("phily", "x")
    with pytest.raises(UsageError, match=r"no option 'devise'.*'device'"):
        import_trace("gavel", FIXTURES / "gavel.trace", {"devise": "v100"})
    with pytest.raises(UsageError, match="takes no options"):
        import_trace("blox", FIXTURES / "blox.csv", {"load": 3})
    with pytest.raises(UsageError, match="option 'attempts'"):
        import_trace("philly", FIXTURES / "philly.json", {"attempts": "first"})


def test_a_fault_in_a_log_without_lines_names_the_job_and_the_field(tmp_path: Path) -> None:
    path = tmp_path / "pai_task_table.csv"
    path.write_text("j1,worker,1.0,Terminated,5.0,9.0,600.0,-1.0,100.0,T4\n")
    with pytest.raises(TraceError, match=r"-1 GB of memory \(job number 1 of those kept\)") as caught:
        import_trace("pai", path)
    assert (caught.value.line, caught.value.field) == (None, "memory")


def test_nothing_left_says_why() -> None:
    with pytest.raises(TraceError, match="no job is left: dropped 6 of 6 jobs: not of virtual cluster 'vc9'"):
        import_trace("helios", FIXTURES / "helios.csv", {"vc": "vc9"})


def test_files_with_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "windows.csv"
    path.write_bytes(b"\xef\xbb\xbf" + (FIXTURES / "blox.csv").read_bytes().replace(b"\n", b"\r\n"))
    assert import_trace("blox", path) == import_trace("blox", FIXTURES / "blox.csv")


# Numbers of foreign tables: plain ones, ones with spaces around them, words for nothing, and what is no number.


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


# What is read or looked at in one step for speed gives what the careful steps give, cell by cell.

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
