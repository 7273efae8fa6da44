"""Inputs of absurd size or depth: one clear message at once, and nothing left behind."""

from __future__ import annotations

import errno
import gzip
import io
import os
import subprocess
import zipfile
from pathlib import Path

import polars as pl
import pytest

from gantline import simulate
from gantline.cli.console import csv_text
from gantline.cli.main import main
from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import GantlineError
from gantline.core.json_reader import loads
from gantline.lab.report.rundir import write_run
from gantline.traces.files.clusters import parse_cluster_yaml
from gantline.traces.files.marked_yaml import load_marked
from gantline.traces.trace import Trace
from gantline.traces.unpack import unpack
from gantline.traces.write import write_frame

JOBS = [{"job": "a", "arrival": 0.0, "gpus": 1, "duration": 10.0}]


@pytest.mark.parametrize("text", ["999999999x999999", "1x999999999", "v100:4x8,k80:99999999x1"])
def test_clusters_of_a_slip_of_the_finger_are_refused(text: str) -> None:
    with pytest.raises(GantlineError, match="too many"):
        parse_cluster(text)
    with pytest.raises(GantlineError, match="too many"):
        parse_cluster_yaml("nodes:\n  - {count: 999999999, gpus: 8}\n")


@pytest.mark.parametrize("read", [parse_cluster_yaml, lambda text: load_marked(text, "experiment.yaml")])
def test_deep_yaml_is_told(read) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(GantlineError, match="nested too deeply"):
        read("nodes: " + "[" * 600 + "]" * 600)


def test_deep_json_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        loads("[" * 100_000 + "]" * 100_000)
    (tmp_path / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    assert main(["decide", str(tmp_path / "deep.json"), "--policy", "fifo"]) == 2
    assert "nested too deeply" in capsys.readouterr().err


@pytest.mark.parametrize(("column", "value"), [("duration", 1e300), ("arrival", 1e300), ("duration", 2e10)])
def test_times_beyond_all_sense_are_refused(column: str, value: float) -> None:
    with pytest.raises(GantlineError, match="300 years"):
        Trace.from_records([JOBS[0] | {column: value}])


@pytest.mark.parametrize("option", [{"round": 1e300}, {"round": 1e-300}, {"min_run": 1e300}, {"seed": 1.5}, {"seed": "1.5"}])
def test_options_beyond_all_sense_are_refused(option: dict[str, object]) -> None:
    with pytest.raises(GantlineError):
        simulate(JOBS, "1x1", "fifo", **option)


def test_an_archive_that_grows_without_measure_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gantline.traces.unpack._ANYWAY", 2**20)  # else it would have to be large
    zeros = b"0" * 2**23
    packed = tmp_path / "bomb.csv.gz"
    packed.write_bytes(gzip.compress(zeros, 9))
    with pytest.raises(GantlineError, match="unpacks to more than"):
        unpack(packed)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("jobs.csv", zeros)
    (tmp_path / "bomb.zip").write_bytes(held.getvalue())
    with pytest.raises(GantlineError, match="unpacks to more than"):
        unpack(tmp_path / "bomb.zip")


def test_a_parquet_file_that_grows_without_measure_and_a_device_are_stopped(tmp_path: Path) -> None:
    pl.DataFrame({name: pl.repeat(1.0, 3_000_000, eager=True) for name in ("job", "arrival", "gpus", "duration")}).write_parquet(
        tmp_path / "bomb.parquet"
    )
    with pytest.raises(GantlineError, match="holds 3,000,000 rows in 0"):
        Trace.load(tmp_path / "bomb.parquet")
    with pytest.raises(GantlineError, match="is a device"):
        Trace.load("/dev/zero")


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "in.csv", "--cluster", "1x1", "--policy", "fifo", "--jobs-out", "./in.csv"],
        ["trace", "check", "in.csv", "--repair", "in.csv"],
        ["trace", "scale", "in.csv", "in.csv", "--load", "2"],
    ],
)
def test_what_is_read_is_not_written_over(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("job,arrival,gpus,duration\na,0,1,10\n")
    assert main(command) == 4
    assert "is what is read (choose another name: it would be lost)" in capsys.readouterr().err
    assert (tmp_path / "in.csv").read_text() == "job,arrival,gpus,duration\na,0,1,10\n"


def test_a_full_disk_is_told_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert main(["trace", "generate", "day", str(tmp_path / "x.csv")]) == 2
    assert f"{tmp_path / 'x.csv'}: no space left on device" in capsys.readouterr().err


def test_a_generator_asked_for_too_much_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "generate", "philly", str(tmp_path / "x.csv"), "--set", "jobs=99999999999999"]) == 2
    assert "jobs are too many" in capsys.readouterr().err


def test_exports_carry_no_formulas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["=cmd|' /C calc'!A0", "+1+1", "@SUM(A1)", "-2+3", "-5", "plain", "1e5"]
    frame = pl.DataFrame({"job": names, "number": [-1.0] * len(names)})
    write_frame(frame, tmp_path / "out.csv")
    read = pl.read_csv(tmp_path / "out.csv", schema_overrides={"job": pl.String})
    assert read["job"].to_list() == [f"'{name}" for name in names[:4]] + names[4:]
    assert read["number"].to_list() == [-1.0] * len(names)
    assert csv_text(["job"], [["=1+1"], [-3]]) == "job\n'=1+1\n-3\n"
    Trace.from_records([JOBS[0] | {"job": "=1+1"}]).save(tmp_path / "in.jsonl")
    assert main(["trace", "shift", str(tmp_path / "in.jsonl"), "--by", "0"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("'=1+1,")


def test_drafts_of_killed_writers_are_swept_up(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    orphan, own = tmp_path / f".run.{ended.pid}.abc", tmp_path / f".run.{os.getpid()}.abc"
    orphan.mkdir()
    own.mkdir()
    write_run(simulate(JOBS, "1x1", "fifo"), tmp_path / "run")
    assert not orphan.exists()
    assert own.exists()
