"""Every importer on files that are empty, cut, compressed, mis-encoded or something else altogether."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gantline.core.errors import GantlineError, NotFoundError, TraceError, UsageError
from gantline.traces.importers import import_trace
from gantline.traces.importers.registry import find_importer, import_options, importer_names
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
