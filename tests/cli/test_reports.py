"""`gantline report`, `gantline plot` and `gantline demo`: stored runs become pages and figures."""

from __future__ import annotations

import builtins
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.conftest import JOBS, Cli
from tests.typed import typed

from gantline.cli.demo import POLICIES
from gantline.cli.main import main
from gantline.systems.synergy.traces import read_profiles
from gantline.traces.files.profiles import write_epochs
from gantline.traces.generators.registry import generator_names
from gantline.traces.importers.registry import importer_names


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, made once."""
    place = tmp_path_factory.mktemp("stored")
    (place / "jobs.csv").write_text(JOBS, encoding="utf-8")
    for policy in ("fifo", "srtf"):
        assert typed(f"simulate {place}/jobs.csv --cluster 2x4 --policy {policy} --out {place}/runs/{policy}") == 0
    return place / "runs"


@pytest.fixture
def runs(stored: Path, folder: Path) -> list[str]:
    """Two stored runs, a copy for each test."""
    shutil.copytree(stored, folder / "runs")
    return ["runs/fifo", "runs/srtf"]


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which matplotlib is not installed."""
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == "matplotlib" or name == "gantline.lab.report.figures.with_matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_a_run_becomes_a_chrome_trace(cli: Cli, folder: Path, runs: list[str]) -> None:
    assert cli("report", runs[0], "--chrome-trace", "trace.json").code == 0
    assert json.loads((folder / "trace.json").read_text())["traceEvents"]


def test_figures_of_a_sweep(cli: Cli, folder: Path) -> None:
    days = ["day", "--trace-set", "jobs=25", "--trace-set", "gpus=32", "--cluster", "8x4", "--workers", "1"]
    told = cli("sweep", *days, "--policy", "fifo,srtf,las", "--load", "0.5,1", "--seeds", "2", "--out", "sweep")
    assert told.code == 0, told.err
    two = ["--metric", "makespan", "--metric", "utilization"]
    for arguments in (["load"], ["seeds", "--metric", "jct_p95"], ["pareto", *two, "--where", "load=0.5"]):
        told = cli("plot", *arguments, "sweep", "-o", f"{arguments[0]}.svg")
        assert told.code == 0, told.err
    text = (folder / "seeds.svg").read_text()
    assert "95th percentile" in text
    assert "load=0.5" in text  # boxes are told apart by the other axes
    assert "load=" not in (folder / "pareto.svg").read_text()
    for wrong, part in (("laod=1", "did you mean 'load'"), ("load=much", "'much' is not a number"), ("load=7", "no run to draw")):
        assert part in cli(f"plot pareto sweep --where {wrong} -o x.svg").err
    assert "the sweep has one seed (sweep over --seeds)" in cli("plot seeds sweep --where seed=0 -o x.svg").err
    assert "name one with --by: load" in cli("plot load sweep --by round -o x.svg").err


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        ("report", 2, "no run to report on"),
        ("report runs/fifo", 2, "-o report.html"),
        ("report runs/none -o r.html", 3, "there is no such run"),
        ("report . -o r.html", 2, "is not a run directory"),
        ("report runs/fifo runs/srtf --chrome-trace t.json", 2, "one run"),
        ("plot jct-cdf -o f.png", 2, "nothing to draw"),
        ("plot load runs/none -o f.png", 3, "there is no such folder"),
        ("plot load runs/fifo -o f.png", 4, "is not the folder of a sweep"),
        ("plot load runs/fifo -o f.png", 4, "name the folder that a sweep or a comparison wrote"),
        ("plot gantt runs/fifo --by queue -o f.png", 2, "write job or user"),
        ("plot jct-cdf runs/fifo --by user -o f.png", 2, "--by: jct-cdf does not read it"),
        ("plot gantt runs/fifo --where load=1 -o f.png", 2, "--where: gantt does not read it"),
        ("plot gantt runs/fifo --metric jct_mean -o f.png", 2, "--metric: gantt shows none of them, and 1 is given"),
        ("plot load s --metric jct_p95 --metric makespan -o f.png", 2, "load shows 1 of them, and 2 are given"),
        ("plot pareto s --metric jct_p95 --metric jct_p95 -o f.png", 2, "'jct_p95' is named twice"),
        ("report runs/fifo -o .", 2, "'.' is a folder (name an .html file in it)"),
        ("report runs/fifo -o r.pdf", 2, "'r.pdf' is not the name of a page (end it in .html)"),
        ("report runs/fifo -o r.html --track 3", 2, "write LO:HI"),
        ("plot jct-cfd runs/fifo -o f.png", 3, "did you mean 'jct-cdf'"),
        ("plot jct-cdf runs/fifo -o f.bmp", 2, "use .png, .svg or .pdf"),
        ("plot jct-cdf runs/fifo", 2, "--out is missing"),
    ],
)
def test_a_mistake_is_one_line(cli: Cli, runs: list[str], arguments: str, code: int, part: str) -> None:
    told = cli(arguments)
    assert told.code == code, told.err
    assert part in told.err
    assert told.err.count("\n") == 1


@pytest.mark.usefixtures("without_plots")
def test_pages_need_no_plotting_library_and_figures_say_what_to_install(cli: Cli, folder: Path) -> None:
    assert cli("simulate jobs.csv --cluster 2x4 --policy fifo --out run").code == 0
    assert cli("report run -o r.html").code == 0
    told = cli("plot jct-cdf run -o f.png")
    assert told.code == 2
    assert "pip install 'gantline[plot]'" in told.err


def test_the_demo_compares_six_policies_and_ends_with_a_page(cli: Cli, folder: Path) -> None:
    told = cli("demo")
    assert told.code == 0, told.err
    head, *rows = [line.split("  ") for line in told.out.splitlines()]
    assert head[0] == "policy"
    assert [row[0] for row in rows] == list(POLICIES)
    assert "under srtf the mean job completes" in told.err
    assert "open out/demo/report.html" in told.err
    assert "fifo easy" in (folder / "out" / "demo" / "report.html").read_text()
    assert (folder / "out" / "demo" / "runs" / "srtf" / "jobs.parquet").is_file()


def test_a_person_sees_bars_in_the_demo(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("gantline.cli.demo.POLICIES", {name: POLICIES[name] for name in ("fifo", "srtf")})  # all six are met above
    digits = cli("demo --out elsewhere -o json").json
    assert digits[1]["average_jct"] < digits[0]["average_jct"]
    told = cli("demo --out elsewhere")
    assert "█" in told.out
    assert "mean JCT" in told.out
    assert (folder / "elsewhere" / "report.html").is_file()


# `gantline trace`: import, check, stats, sample, scale, shift, window, generate.

PHILLY_LIST = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-07 01:05:26,100,2,200,a
2017-10-07 01:06:16,30,1,30,b
"""


def frame_of(text: str) -> pl.DataFrame:
    return pl.read_csv(text.encode())


def test_a_foreign_trace_becomes_a_table(cli: Cli, folder: Path) -> None:
    (folder / "list.csv").write_text(PHILLY_LIST)
    told = cli("trace import philly-list list.csv out.parquet")
    assert told.code == 0, told.err
    assert "wrote 2 jobs to out.parquet" in told.err
    assert pl.read_parquet(folder / "out.parquet")["gpus"].to_list() == [2, 1]
    assert cli("simulate out.parquet --cluster 1x4 --policy fifo").code == 0


def test_without_a_file_the_table_goes_to_stdout(cli: Cli, folder: Path) -> None:
    (folder / "list.csv").write_text(PHILLY_LIST)
    told = cli("trace import philly-list list.csv")
    assert frame_of(told.out)["duration"].to_list() == [100.0, 30.0]


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        ("import philli list.csv o.csv", 3, "did you mean 'philly'"),
        ("import philly-list nowhere.csv o.csv", 3, "nowhere.csv"),
        ("import philly-list list.csv o.csv --set colour=red", 2, "no option 'colour'"),
        ("import philly-list list.csv o.txt", 2, "no known format"),
        ("generate dya", 3, "did you mean 'day'"),
        ("generate day o.csv --set size=3", 2, "size"),
        ("sample jobs.csv", 2, "--jobs or --fraction"),
        ("sample jobs.csv --jobs 90", 2, "cannot take 90 of 5"),
        ("scale jobs.csv --load 0", 2, "load factor 0"),
        ("shift jobs.csv --by -1h", 2, "would begin before 0"),
        ("shift jobs.csv --by soon", 2, "'soon' is not a time"),
        ("window jobs.csv --start 1d", 2, "no job arrives"),
        ("stats jobs.csv --gpus 0", 2, "not a number of GPUs"),
        ("check nowhere.csv", 3, "no such file"),
    ],
)
def test_a_mistake_about_a_trace_is_one_line(cli: Cli, folder: Path, arguments: str, code: int, part: str) -> None:
    (folder / "list.csv").write_text(PHILLY_LIST)
    told = cli(f"trace {arguments}")
    assert told.code == code, told.err
    assert part in told.err


def test_help_lists_formats_and_generators(cli: Cli) -> None:
    formats, generators = cli("trace import --help").out, cli("trace generate --help").out
    assert all(f" {name} " in formats for name in importer_names())
    assert all(f" {name} " in generators for name in generator_names())


def test_a_sound_trace_has_nothing_to_report(cli: Cli, folder: Path) -> None:
    told = cli("trace check jobs.csv")
    assert (told.code, told.out) == (0, "")
    assert cli("trace check jobs.csv -o json").json == []


def test_every_contradiction_is_listed_with_its_line(cli: Cli, folder: Path) -> None:
    (folder / "bad.csv").write_text("job,arrival,gpus,duration\na,0,1,-5\nb,nan,2,10\na,7,0,10\n")
    told = cli("trace check bad.csv -o json")
    assert told.code == 1
    places = {(found["line"], found["field"]) for found in told.json}
    assert {(2, "duration"), (3, "arrival"), (4, "job"), (4, "gpus")} <= places
    assert "problems" in told.err


def test_what_has_one_right_answer_is_repaired(cli: Cli, folder: Path) -> None:
    (folder / "late.csv").write_text("job,arrival,gpus,duration\na,50,1,5\nb,10,2,10\nb,10,2,10\n")
    told = cli("trace check late.csv --repair good.csv")
    assert told.code == 0, told.err
    assert "dropped 1 row" in told.err
    assert cli("trace check good.csv").code == 0
    (folder / "bad.csv").write_text("job,arrival,gpus,duration\na,50,1,-5\n")
    left = cli("trace check bad.csv --repair still.csv")
    assert left.code == 1
    assert "left:" in left.err


def test_statistics_in_every_form(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = cli("trace stats jobs.csv --gpus 8 -o json").json
    assert told["jobs"] == 5
    assert told["largest"] == 8
    assert cli("trace stats jobs.csv").out.splitlines()[0] == "jobs\t5"
    assert cli("trace stats jobs.csv -o csv").out.startswith("jobs,")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "GPU-hours" in cli("trace stats jobs.csv").out


def test_statistics_can_be_drawn(cli: Cli, folder: Path) -> None:
    assert cli("trace stats jobs.csv --plot figures").code == 0
    assert sorted(path.name for path in (folder / "figures").iterdir()) == ["durations.png", "hours.png", "sizes.png"]


def test_traces_are_changed(cli: Cli, folder: Path) -> None:
    assert len(frame_of(cli("trace sample jobs.csv --jobs 2 --seed 1").out)) == 2
    assert frame_of(cli("trace scale jobs.csv --load 2").out)["arrival"].to_list() == [0, 5, 10, 15, 20]
    assert frame_of(cli("trace shift jobs.csv --by 1m").out)["arrival"].to_list() == [60, 70, 80, 90, 100]
    cut = cli("trace window jobs.csv cut.jsonl --start 10 --end 40s")
    assert cut.code == 0
    assert "3 of 5 jobs" in cut.err
    assert [json.loads(line)["arrival"] for line in (folder / "cut.jsonl").read_text().splitlines()] == [0, 10, 20]


def test_a_workload_is_generated_by_seed(cli: Cli, folder: Path) -> None:
    first = cli("trace generate day --seed 3 --set jobs=20").out
    assert first == cli("trace generate day --seed 3 --set jobs=20").out
    assert first != cli("trace generate day --seed 4 --set jobs=20").out
    assert len(frame_of(first)) == 20


# `gantline profile epochs`: epochs timed with fewer and fewer CPUs, and the table that Synergy's profiles are read from.

EPOCH = "import os, sys; sys.exit(len(os.sched_getaffinity(0)) != int(sys.argv[1]))"


def run(folder: Path, *more: str, cpus: int = 1) -> int:
    head = ["profile", "epochs", "vision", "--data", "100", "--bandwidth", "5000", "--steps", "10", "--to", str(folder)]
    return main([*head, "--cpus", str(cpus), *more])


def test_the_program_has_as_many_cpus_as_it_is_told_and_its_epochs_can_be_read(tmp_path: Path) -> None:
    assert run(tmp_path, "--", sys.executable, "-c", EPOCH, "{cpus}") == 0

    lines = (tmp_path / "epochs.csv").read_text().splitlines()
    assert lines[0] == "model,cpus_per_gpu,epoch_s,data_GB,memory_MBps,steps"
    assert [line.split(",")[0:2] for line in lines[1:]] == [["vision", "1.0"]]
    read_profiles(tmp_path)


def test_other_networks_of_the_table_stay_and_the_same_one_is_replaced(tmp_path: Path) -> None:
    write_epochs(tmp_path, "text", {1.0: 9.0, 3.0: 4.0}, 10.0, 5000.0, 100.0)
    write_epochs(tmp_path, "vision", {1.0: 7.0}, 100.0, 5000.0, 10.0)
    write_epochs(tmp_path, "vision", {2.0: 5.0}, 100.0, 5000.0, 10.0)

    rows = [line.split(",")[:3] for line in (tmp_path / "epochs.csv").read_text().splitlines()[1:]]
    assert rows == [["text", "1.0", "9.0"], ["text", "3.0", "4.0"], ["vision", "2.0", "5.0"]]


@pytest.mark.parametrize(
    ("more", "cpus", "what"),
    [
        (("--", sys.executable, "-c", "raise SystemExit('no data')"), 1, "an epoch with 1 CPUs ended with exit code 1: no data"),
        (("--", sys.executable, "-c", "pass"), 100_000, "this process may use"),
        (("--", "no-such-program"), 1, "cannot run no-such-program"),
        (("--gpus", "2", "--", sys.executable), 1, "1 CPUs for 2 GPUs"),
        ((), 1, "no epoch to run"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], cpus: int, what: str
) -> None:
    before = os.sched_getaffinity(0)

    assert run(tmp_path, *more, cpus=cpus) != 0

    assert what in capsys.readouterr().err
    assert os.sched_getaffinity(0) == before
    assert not (tmp_path / "epochs.csv").exists()
