"""`gantline report`, `gantline plot` and `gantline demo`: stored runs become pages and figures."""

from __future__ import annotations

import builtins
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import JOBS, Cli

from gantline.cli.demo import POLICIES
from gantline.cli.main import main


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, made once."""
    place = tmp_path_factory.mktemp("stored")
    (place / "jobs.csv").write_text(JOBS, encoding="utf-8")
    for policy in ("fifo", "srtf"):
        line = ["simulate", str(place / "jobs.csv"), "--cluster", "2x4", "--policy", policy, "--out", str(place / "runs" / policy)]
        assert main(line) == 0
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
        assert part in cli("plot", "pareto", "sweep", "--where", wrong, "-o", "x.svg").err
    assert "the sweep has one seed (sweep over --seeds)" in cli("plot", "seeds", "sweep", "--where", "seed=0", "-o", "x.svg").err
    assert "name one with --by: load" in cli("plot", "load", "sweep", "--by", "round", "-o", "x.svg").err


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["report"], 2, "no run to report on"),
        (["report", "runs/fifo"], 2, "-o report.html"),
        (["report", "runs/none", "-o", "r.html"], 3, "there is no such run"),
        (["report", ".", "-o", "r.html"], 2, "is not a run directory"),
        (["report", "runs/fifo", "runs/srtf", "--chrome-trace", "t.json"], 2, "one run"),
        (["plot", "jct-cdf", "-o", "f.png"], 2, "nothing to draw"),
        (["plot", "load", "runs/none", "-o", "f.png"], 3, "there is no such folder"),
        (["plot", "load", "runs/fifo", "-o", "f.png"], 4, "is not the folder of a sweep"),
        (["plot", "load", "runs/fifo", "-o", "f.png"], 4, "name the folder that a sweep or a comparison wrote"),
        (["plot", "gantt", "runs/fifo", "--by", "queue", "-o", "f.png"], 2, "write job or user"),
        (["plot", "jct-cdf", "runs/fifo", "--by", "user", "-o", "f.png"], 2, "--by: jct-cdf does not read it"),
        (["plot", "gantt", "runs/fifo", "--where", "load=1", "-o", "f.png"], 2, "--where: gantt does not read it"),
        (["plot", "gantt", "runs/fifo", "--metric", "jct_mean", "-o", "f.png"], 2, "--metric: gantt shows none of them, and 1 is given"),
        (["plot", "load", "s", "--metric", "jct_p95", "--metric", "makespan", "-o", "f.png"], 2, "load shows 1 of them, and 2 are given"),
        (["plot", "pareto", "s", "--metric", "jct_p95", "--metric", "jct_p95", "-o", "f.png"], 2, "'jct_p95' is named twice"),
        (["report", "runs/fifo", "-o", "."], 2, "'.' is a folder (name an .html file in it)"),
        (["report", "runs/fifo", "-o", "r.pdf"], 2, "'r.pdf' is not the name of a page (end it in .html)"),
        (["report", "runs/fifo", "-o", "r.html", "--track", "3"], 2, "write LO:HI"),
        (["plot", "jct-cfd", "runs/fifo", "-o", "f.png"], 3, "did you mean 'jct-cdf'"),
        (["plot", "jct-cdf", "runs/fifo", "-o", "f.bmp"], 2, "use .png, .svg or .pdf"),
        (["plot", "jct-cdf", "runs/fifo"], 2, "--out is missing"),
    ],
)
def test_a_mistake_is_one_line(cli: Cli, runs: list[str], arguments: list[str], code: int, part: str) -> None:
    told = cli(*arguments)
    assert told.code == code, told.err
    assert part in told.err
    assert told.err.count("\n") == 1


@pytest.mark.usefixtures("without_plots")
def test_pages_need_no_plotting_library_and_figures_say_what_to_install(cli: Cli, folder: Path) -> None:
    assert cli("simulate", "jobs.csv", "--cluster", "2x4", "--policy", "fifo", "--out", "run").code == 0
    assert cli("report", "run", "-o", "r.html").code == 0
    told = cli("plot", "jct-cdf", "run", "-o", "f.png")
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
    digits = cli("demo", "--out", "elsewhere", "-o", "json").json
    assert digits[1]["average_jct"] < digits[0]["average_jct"]
    told = cli("demo", "--out", "elsewhere")
    assert "█" in told.out
    assert "mean JCT" in told.out
    assert (folder / "elsewhere" / "report.html").is_file()
