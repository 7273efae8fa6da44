"""`gantline trace`: import, check, stats, sample, scale, shift, window, generate."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Cli

from gantline.traces.generators.registry import generator_names
from gantline.traces.importers.registry import importer_names

PHILLY_LIST = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-07 01:05:26,100,2,200,a
2017-10-07 01:06:16,30,1,30,b
"""


def frame_of(text: str) -> pl.DataFrame:
    return pl.read_csv(text.encode())


def test_a_foreign_trace_becomes_a_table(cli: Cli, folder: Path) -> None:
    (folder / "list.csv").write_text(PHILLY_LIST)
    told = cli("trace", "import", "philly-list", "list.csv", "out.parquet")
    assert told.code == 0, told.err
    assert "wrote 2 jobs to out.parquet" in told.err
    assert pl.read_parquet(folder / "out.parquet")["gpus"].to_list() == [2, 1]
    assert cli("simulate", "out.parquet", "--cluster", "1x4", "--policy", "fifo").code == 0


def test_without_a_file_the_table_goes_to_stdout(cli: Cli, folder: Path) -> None:
    (folder / "list.csv").write_text(PHILLY_LIST)
    told = cli("trace", "import", "philly-list", "list.csv")
    assert frame_of(told.out)["duration"].to_list() == [100.0, 30.0]


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["import", "philli", "list.csv", "o.csv"], 3, "did you mean 'philly'"),
        (["import", "philly-list", "nowhere.csv", "o.csv"], 3, "nowhere.csv"),
        (["import", "philly-list", "list.csv", "o.csv", "--set", "colour=red"], 2, "no option 'colour'"),
        (["import", "philly-list", "list.csv", "o.txt"], 2, "no known format"),
        (["generate", "dya"], 3, "did you mean 'day'"),
        (["generate", "day", "o.csv", "--set", "size=3"], 2, "size"),
        (["sample", "jobs.csv"], 2, "--jobs or --fraction"),
        (["sample", "jobs.csv", "--jobs", "90"], 2, "cannot take 90 of 5"),
        (["scale", "jobs.csv", "--load", "0"], 2, "load factor 0"),
        (["shift", "jobs.csv", "--by", "-1h"], 2, "would begin before 0"),
        (["shift", "jobs.csv", "--by", "soon"], 2, "'soon' is not a time"),
        (["window", "jobs.csv", "--start", "1d"], 2, "no job arrives"),
        (["stats", "jobs.csv", "--gpus", "0"], 2, "not a number of GPUs"),
        (["check", "nowhere.csv"], 3, "no such file"),
    ],
)
def test_a_mistake_is_one_line(cli: Cli, folder: Path, arguments: list[str], code: int, part: str) -> None:
    (folder / "list.csv").write_text(PHILLY_LIST)
    told = cli("trace", *arguments)
    assert told.code == code, told.err
    assert part in told.err


def test_help_lists_formats_and_generators(cli: Cli) -> None:
    formats, generators = cli("trace", "import", "--help").out, cli("trace", "generate", "--help").out
    assert all(f" {name} " in formats for name in importer_names())
    assert all(f" {name} " in generators for name in generator_names())


def test_a_sound_trace_has_nothing_to_report(cli: Cli, folder: Path) -> None:
    told = cli("trace", "check", "jobs.csv")
    assert (told.code, told.out) == (0, "")
    assert cli("trace", "check", "jobs.csv", "-o", "json").json == []


def test_every_contradiction_is_listed_with_its_line(cli: Cli, folder: Path) -> None:
    (folder / "bad.csv").write_text("job,arrival,gpus,duration\na,0,1,-5\nb,nan,2,10\na,7,0,10\n")
    told = cli("trace", "check", "bad.csv", "-o", "json")
    assert told.code == 1
    places = {(found["line"], found["field"]) for found in told.json}
    assert {(2, "duration"), (3, "arrival"), (4, "job"), (4, "gpus")} <= places
    assert "problems" in told.err


def test_what_has_one_right_answer_is_repaired(cli: Cli, folder: Path) -> None:
    (folder / "late.csv").write_text("job,arrival,gpus,duration\na,50,1,5\nb,10,2,10\nb,10,2,10\n")
    told = cli("trace", "check", "late.csv", "--repair", "good.csv")
    assert told.code == 0, told.err
    assert "dropped 1 row" in told.err
    assert cli("trace", "check", "good.csv").code == 0
    (folder / "bad.csv").write_text("job,arrival,gpus,duration\na,50,1,-5\n")
    left = cli("trace", "check", "bad.csv", "--repair", "still.csv")
    assert left.code == 1
    assert "left:" in left.err


def test_statistics_in_every_form(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = cli("trace", "stats", "jobs.csv", "--gpus", 8, "-o", "json").json
    assert told["jobs"] == 5
    assert told["largest"] == 8
    assert cli("trace", "stats", "jobs.csv").out.splitlines()[0] == "jobs\t5"
    assert cli("trace", "stats", "jobs.csv", "-o", "csv").out.startswith("jobs,")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "GPU-hours" in cli("trace", "stats", "jobs.csv").out


def test_statistics_can_be_drawn(cli: Cli, folder: Path) -> None:
    assert cli("trace", "stats", "jobs.csv", "--plot", "figures").code == 0
    assert sorted(path.name for path in (folder / "figures").iterdir()) == ["durations.png", "hours.png", "sizes.png"]


def test_traces_are_changed(cli: Cli, folder: Path) -> None:
    assert len(frame_of(cli("trace", "sample", "jobs.csv", "--jobs", 2, "--seed", 1).out)) == 2
    assert frame_of(cli("trace", "scale", "jobs.csv", "--load", 2).out)["arrival"].to_list() == [0, 5, 10, 15, 20]
    assert frame_of(cli("trace", "shift", "jobs.csv", "--by", "1m").out)["arrival"].to_list() == [60, 70, 80, 90, 100]
    cut = cli("trace", "window", "jobs.csv", "cut.jsonl", "--start", "10", "--end", "40s")
    assert cut.code == 0
    assert "3 of 5 jobs" in cut.err
    assert [json.loads(line)["arrival"] for line in (folder / "cut.jsonl").read_text().splitlines()] == [0, 10, 20]


def test_a_workload_is_generated_by_seed(cli: Cli, folder: Path) -> None:
    first = cli("trace", "generate", "day", "--seed", 3, "--set", "jobs=20").out
    assert first == cli("trace", "generate", "day", "--seed", 3, "--set", "jobs=20").out
    assert first != cli("trace", "generate", "day", "--seed", 4, "--set", "jobs=20").out
    assert len(frame_of(first)) == 20
