"""A run in blocks is the run: the same log, the same summary, the same file of jobs to the last byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gantline import Trace, simulate, simulate_in_blocks
from gantline.cli.main import main
from gantline.cli.outputs import write_table
from gantline.core.errors import GantlineError
from gantline.traces.generators import generate

CLOCKS = {"wall_seconds", "cpu_seconds"}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate("philly", seed=3, jobs=400, load=1.4, gpus=64).save(tmp_path_factory.mktemp("trace") / "jobs.parquet")


@pytest.mark.parametrize(
    ("policy", "block", "options"),
    [
        ("fifo", 70, {}),
        ("srtf", 90, {"round": 60, "placement": "consolidated"}),
        ("las", 90, {"round": 300, "costs": "30", "min_run": 600.0}),
        ("tiresias", 399, {"admission": "load-limit:1.2"}),
        ("sjf", 1000, {}),
    ],
)
def test_blocks_change_nothing(trace: Path, tmp_path: Path, policy: str, block: int, options: dict[str, Any]) -> None:
    whole = simulate(Trace.load(trace), "8x8", policy, **options)
    for ending in ("parquet", "csv"):
        write_table(whole.jobs, tmp_path / f"whole.{ending}")
        summary = simulate_in_blocks(trace, "8x8", policy, block=block, jobs_out=tmp_path / f"blocks.{ending}", **options)
        assert {key: value for key, value in summary.items() if key not in CLOCKS} == {
            key: value for key, value in whole.summary.items() if key not in CLOCKS
        }
        assert (tmp_path / f"blocks.{ending}").read_bytes() == (tmp_path / f"whole.{ending}").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blocks.csv", "blocks.parquet", "whole.csv", "whole.parquet"]


@pytest.mark.parametrize(
    ("policy", "options", "words"),
    [
        ("srtf", {"until": 3600.0}, "--until"),
        ("srtf", {"estimates": "noisy:0.3"}, "--estimates"),
        ("srtf", {"block": 0}, "block of 0"),
        ("srtf", {"regime": "gavel"}, "loop of its own"),
        ("srtf", {"placement": "random"}, "known on the tables only"),
        ("fair-share", {}, "makes plans, not an order"),
        ("fifo", {"settings": {"backfill": "easy"}}, "backfills"),
    ],
)
def test_what_blocks_do_not_know_is_refused(trace: Path, policy: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(GantlineError, match=words):
        simulate_in_blocks(trace, "8x8", policy, **options)


def test_mistakes_between_blocks_are_found(tmp_path: Path) -> None:
    def written(**columns: Any) -> Path:
        rows = {"job": ["a", "b", "c", "d"], "arrival": [0.0, 1.0, 2.0, 3.0], "gpus": [1] * 4, "duration": [10.0] * 4} | columns
        pl.DataFrame(rows).write_parquet(tmp_path / "jobs.parquet")
        return tmp_path / "jobs.parquet"

    for columns, words in (({"job": list("abca")}, "name of another"), ({"arrival": [0.0, 5.0, 2.0, 3.0]}, "before the row above")):
        with pytest.raises(GantlineError, match=words):
            simulate_in_blocks(written(**columns), "1x4", "fifo", block=2)
    with pytest.raises(GantlineError, match=r"jobs\.parquet.*4.*duration"):
        simulate_in_blocks(written(duration=[1.0, 1.0, 1.0, -1.0]), "1x4", "fifo", block=2)
    (tmp_path / "jobs.csv").write_text("job,arrival,gpus,duration\na,0,1,1\n")
    with pytest.raises(GantlineError, match="Parquet"):
        simulate_in_blocks(tmp_path / "jobs.csv", "1x4", "fifo")


def test_blocks_from_the_command_line(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", str(trace), "--cluster", "8x8", "--policy", "srtf", "--block", "100"]
    assert main([*words, "--jobs-out", str(tmp_path / "ended.parquet"), "-o", "json"]) == 0
    assert '"completed": 400' in capsys.readouterr().out
    assert pl.read_parquet(tmp_path / "ended.parquet").height == 400
    assert main([*words, "--allocations-out", str(tmp_path / "x.csv")]) != 0
    assert "--allocations-out" in capsys.readouterr().err
