"""`gantline report`, `gantline plot` and `gantline demo`: stored runs become pages and figures."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli

from gantline.cli.demo import POLICIES


@pytest.fixture
def runs(cli: Cli, folder: Path) -> list[str]:
    """Two stored runs."""
    for policy in ("fifo", "srtf"):
        assert cli("simulate", "jobs.csv", "--cluster", "2x4", "--policy", policy, "--out", f"runs/{policy}").code == 0
    return ["runs/fifo", "runs/srtf"]


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which the plotting libraries are not installed."""
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] in ("matplotlib", "plotly") or name.startswith(("gantline.report.html", "gantline.report.figures")):
            missing = "plotly" if "html" in name else "matplotlib"
            raise ModuleNotFoundError(f"No module named '{missing}'", name=missing)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_a_report_is_one_file(cli: Cli, folder: Path, runs: list[str]) -> None:
    told = cli("report", *runs, "-o", "out/report.html", "--title", "Two policies")
    assert told.code == 0, told.err
    assert "wrote out/report.html" in told.err
    text = (folder / "out" / "report.html").read_text()
    assert "<title>Two policies</title>" in text
    assert "srtf" in text


def test_a_person_gets_the_comparison_too(cli: Cli, runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "Mean JCT" in cli("report", *runs, "-o", "report.html").out


def test_a_run_becomes_a_chrome_trace(cli: Cli, folder: Path, runs: list[str]) -> None:
    assert cli("report", runs[0], "--chrome-trace", "trace.json").code == 0
    assert json.loads((folder / "trace.json").read_text())["traceEvents"]


@pytest.mark.parametrize("figure", ["jct-cdf", "timeline", "fairness"])
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_figures_of_several_runs(cli: Cli, folder: Path, runs: list[str], figure: str, ending: str) -> None:
    told = cli("plot", figure, *runs, "-o", f"figure.{ending}")
    assert told.code == 0, told.err
    assert (folder / f"figure.{ending}").stat().st_size > 1000


def test_a_gantt_chart_shows_one_run(cli: Cli, folder: Path, runs: list[str]) -> None:
    assert cli("plot", "gantt", runs[0], "-o", "gantt.png", "--by", "user", "--dark").code == 0
    told = cli("plot", "gantt", *runs, "-o", "gantt.png")
    assert told.code == 2
    assert "shows one run" in told.err


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["report"], 2, "no run to report on"),
        (["report", "runs/fifo"], 2, "-o report.html"),
        (["report", "runs/none", "-o", "r.html"], 3, "there is no such run"),
        (["report", ".", "-o", "r.html"], 2, "is not a run directory"),
        (["report", "runs/fifo", "runs/srtf", "--chrome-trace", "t.json"], 2, "one run"),
        (["plot", "jct-cdf", "-o", "f.png"], 2, "no run to draw"),
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
def test_without_plotting_libraries_it_says_what_to_install(cli: Cli, folder: Path) -> None:
    assert cli("simulate", "jobs.csv", "--cluster", "2x4", "--policy", "fifo", "--out", "run").code == 0
    for arguments in (["report", "run", "-o", "r.html"], ["plot", "jct-cdf", "run", "-o", "f.png"]):
        told = cli(*arguments)
        assert told.code == 2
        assert "pip install 'gantline[plot]'" in told.err


def test_the_demo_compares_six_policies_and_ends_with_a_page(cli: Cli, folder: Path) -> None:
    told = cli("demo")
    assert told.code == 0, told.err
    head, *rows = [line.split("\t") for line in told.out.splitlines()]
    assert head[0] == "policy"
    assert [row[0] for row in rows] == list(POLICIES)
    jct = {row[0]: float(row[1]) for row in rows}
    assert min(jct, key=jct.__getitem__) == "srtf"
    assert "open out/demo/report.html" in told.err
    assert "fifo easy" in (folder / "out" / "demo" / "report.html").read_text()
    assert (folder / "out" / "demo" / "runs" / "srtf" / "jobs.parquet").is_file()


def test_a_person_sees_bars_in_the_demo(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    told = cli("demo", "--out", "elsewhere")
    assert "█" in told.out
    assert "mean JCT" in told.out
    assert (folder / "elsewhere" / "report.html").is_file()
