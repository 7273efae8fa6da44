"""The commands over many runs, as a person types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from tests.typed import typed

from gantline.cli.main import main

JOBS = "job,arrival,gpus,duration\n" + "".join(f"j{i},{20 * i},{1 + i % 4},{100 + 37 * i % 400}\n" for i in range(40))
DAY = "day --trace-set jobs=60 --trace-set gpus=16 --cluster 4x4"
SMALL = "version: 1\ntrace: {generate: day, settings: {jobs: 60, gpus: 16}}\ncluster: 4x4\npolicies: [fifo, srtf]\nseeds: 2\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "jobs.csv").write_text(JOBS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})  # workers are started where they are the subject
    return tmp_path


def test_sweep_writes_a_folder_that_can_be_run_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(f"sweep {DAY} --workers 1 --policy fifo,srtf --load 0.5,0.9 --out s") == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 5
    assert told[0].split("\t")[:4] == ["policy", "load", "runs", "jct_mean"]
    assert pl.read_parquet("s/results.parquet").height == 4
    assert (folder / "s" / "figures" / "jct-load.png").stat().st_size > 1000
    assert typed("experiment run s/experiment.yaml -o t") == 0
    one, two = (pl.read_parquet(f"{name}/results.parquet")["log_hash"].to_list() for name in "st")
    assert one == two


@pytest.mark.parametrize(("more", "told"), [("", "--out would have kept them"), ("--out c", "kept in c: the same command goes on")])
def test_who_is_stopped_hears_what_is_left_of_it(
    more: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gantline.cli.many_runs.run_sweep", stopped)
    assert typed(f"compare jobs.csv --cluster 2x4 --policy fifo,srtf {more}") != 0
    assert told in capsys.readouterr().err


def test_sweep_again_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert typed("sweep jobs.csv --cluster 2x4 --policy fifo --out s -o json") == 0
    captured = capsys.readouterr()
    assert "1 of 1 runs were there already" in captured.err
    assert json.loads(captured.out.split("]\n")[1] + "]")[0]["state"] == "done"


def test_sweep_lists_failures_and_says_so_by_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(f"sweep {DAY} --workers 1 --policy fifo,srtf --estimates none --out s") == 1
    captured = capsys.readouterr()
    assert "failed: srtf seed=0: --estimates: policy 'srtf' needs remaining" in captured.err
    assert "1 of 2 runs failed" in captured.err
    assert [line.split("\t")[:2] for line in captured.out.splitlines()[1:]] == [["fifo", "1"], ["srtf", "0"]]


def test_a_policy_of_ones_own_can_be_swept(folder: Path) -> None:
    text = "from dataclasses import dataclass\nfrom gantline import OrderPolicy\n\n@dataclass(frozen=True)\nclass Mine(OrderPolicy):\n"
    text += "    sign: float = 1.0\n\n    def key(self, snapshot):\n        return self.sign * snapshot.jobs.gpus\n"
    (folder / "mine.py").write_text(text, encoding="utf-8")
    assert typed("sweep jobs.csv --cluster 2x4 --policy './mine.py:Mine sign=-1' --policy fifo --workers 2 --out s") == 0
    assert pl.read_parquet("s/results.parquet")["policy"].to_list() == ["Mine sign=-1", "fifo"]


def test_an_experiment_is_checked_and_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "e.yaml").write_text(SMALL, encoding="utf-8")
    assert typed("experiment check e.yaml") == 0
    assert "4 runs of 2 policies" in capsys.readouterr().out
    assert typed("experiment run e.yaml -o r --workers 1") == 0
    assert "That decides nothing: a 95 % interval needs 3 seeds at least" in capsys.readouterr().out
    assert {"results.parquet", "differences.parquet", "verdict.txt", "experiment.yaml"} <= {item.name for item in (folder / "r").iterdir()}


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("sweep jobs.csv --cluster 2x4 --policy fif --out s", 3, "did you mean 'fifo'"),
        ("sweep nothing.csv --cluster 2x4 --policy fifo --out s", 3, "nothing.csv"),
        ("sweep day --trace-set jbos=3 --cluster 2x4 --policy fifo --out s", 2, "did you mean 'jobs'"),
        ("sweep jobs.csv --cluster 2x4 --policy fifo --load high --out s", 2, "not a list of numbers"),
        ("sweep blox --cluster 2x4 --policy fifo --load 0.7 --out s", 2, "--vary trace.jobs_per_hour=4,8"),
        ("sweep pollux --cluster 2x4 --policy fifo --load 0.7 --out s", 2, "--vary trace.scale=0.5,2"),
        ("sweep jobs.csv --cluster 2x4 --policy fifo --seeds none --out s", 2, "--seeds"),
        ("sweep jobs.csv --cluster 2x4 --policy fifo --workers 0 --out s", 2, "0 workers"),
        ("compare jobs.csv --cluster 2x4 --policy fifo", 2, "only one policy"),
        ("compare jobs.csv --cluster 2x4 --policy fifo,las --metric jct", 3, "did you mean"),
        ("experiment saturate jobs.csv --cluster 2x4 --policy fifo --between 1", 2, "'1' is not a range of loads"),
        ("experiment run nothing.yaml -o r", 3, "no such file"),
    ],
)
def test_a_mistake_is_one_line_and_a_code(line: str, code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(line) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1
    assert captured.out == ""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_sweep_that_is_stopped_leaves_nothing_half_written_and_goes_on(
    folder: Path, how: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = ["sweep", "day", "--trace-set", "jobs=60", "--trace-set", "gpus=16", "--cluster", "4x4", "--policy", "fifo,srtf"]
    sweep += ["--out", "s"]
    many = ["--seeds", "40", "--workers", "2"]  # more than can end before it is told to stop
    command = [sys.executable, "-m", "gantline.cli.main", *sweep, *many]
    started = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not list((folder / "s" / "runs").glob("*.json")) and started.poll() is None:
        time.sleep(0.05)
    os.kill(started.pid, how)
    _, told = started.communicate()  # ends when the workers have ended too
    assert "Traceback" not in told
    if how == signal.SIGINT:
        assert started.returncode == 130
        assert "the same command goes on from there" in told
        assert not [file for file in (folder / "s" / "runs").iterdir() if file.name.startswith(".")]
    for file in (folder / "s" / "runs").glob("*.json"):
        assert json.loads(file.read_text())["state"] == "done"
    assert main([*sweep, "--seeds", "3", "--workers", "1"]) == 0
    assert "of 6 runs were there already" in capsys.readouterr().err
    assert pl.read_parquet(folder / "s" / "results.parquet")["state"].to_list() == ["done"] * 6
    assert not [file for file in (folder / "s" / "runs").iterdir() if file.name.startswith(".")]
