"""`gantline explain`, `forecast` and `what-if` about files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Cli
from tests.cli.test_decide import NOW

SURE = ("--sigma", "0", "--samples", "1")


@pytest.fixture
def now(folder: Path) -> Path:
    path = folder / "now.json"
    path.write_text(json.dumps(NOW))
    return path


def test_explain_says_why_who_and_what_would_help(cli: Cli, now: Path) -> None:
    told = cli("explain", "new", "--snapshot", now, "--present", "fifo", *SURE)
    assert told.code == 0
    assert "with 2 GPUs in place of 4 it would start now" in told.out
    found = cli("explain", "new", "--snapshot", now, "--present", "fifo", *SURE, "-o", "json").json
    assert found["act"] == "waits"
    assert found["waits_for"] == ["small"]
    assert [change["what"] for change in found["changes"]] == ["gpus"]
    assert found["expected"]["start_p50"] == pytest.approx(900)


def test_forecast_lists_everybody_or_those_asked_for(cli: Cli, now: Path) -> None:
    everybody = cli("forecast", "--snapshot", now, "--present", "fifo", *SURE, "-o", "json").json
    assert [one["job"] for one in everybody["jobs"]] == ["big", "small", "new", "wide"]
    told = cli("forecast", "new", "--snapshot", now, "--present", "fifo", *SURE)
    assert told.out.startswith("new: starts in 5.0 min")


def test_what_if_compares_the_two_futures(cli: Cli, now: Path) -> None:
    found = cli("what-if", "--policy", "srtf", "--snapshot", now, "--present", "fifo", *SURE, "-o", "json").json
    assert (found["present"], found["other"]) == ("fifo", "srtf")
    assert {one["metric"]: one["change"] < 0 for one in found["differences"]}["jct_mean"]
    more = cli("what-if", "--add", "1x4", "--snapshot", now, "--present", "fifo", *SURE)
    assert "fifo with 1x4 more in place of fifo" in more.out


def test_the_past_under_another_policy(cli: Cli, folder: Path) -> None:
    asked = ("what-if", "--policy", "srtf", "--history", "jobs.csv", "--cluster", "1x8", "--present", "fifo", "--samples", "2")
    found = cli(*asked, "-o", "json").json
    assert found["jobs"] == 5
    assert "the error of the method is not known" in cli(*asked).out


def test_forecasts_are_checked(cli: Cli, folder: Path) -> None:
    found = cli("forecast", "--check", "jobs.csv", "--cluster", "1x8", "--present", "fifo", "--samples", "2", "-o", "json").json
    assert found["forecasts"] == 5


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("explain", "nwe", "--snapshot", "now.json", "--present", "fifo"), 3, "no job 'nwe'"),
        (("explain", "new", "--snapshot", "now.json"), 2, "add --present"),
        (("forecast", "--snapshot", "now.json", "--present", "fifo", "--samples", "0"), 2, "samples"),
        (("forecast", "--snapshot", "now.json", "--present", "fifo", "--samples", "100000"), 2, "too many"),
        (("forecast", "--snapshot", "now.json", "--present", "fifo", "--sigma", "-1"), 2, "width"),
        (("what-if", "--snapshot", "now.json", "--present", "fifo"), 2, "nothing is different"),
        (("what-if", "--lose", "node9", "--snapshot", "now.json", "--present", "fifo"), 3, "no node 'node9'"),
        (("what-if", "--policy", "srft", "--snapshot", "now.json", "--present", "fifo"), 3, "srtf"),
        (("what-if", "--policy", "srtf", "--history", "jobs.csv"), 2, "add --cluster and --present"),
        (("forecast", "--check", "jobs.csv"), 2, "add --cluster and --present"),
        (("forecast", "--snapshot", "now.json", "--present", "fifo", "--profiles", "none.json"), 3, "none.json"),
        (("forecast", "--check", "jobs.csv", "--profiles", "p.json"), 2, "leave --profiles out"),
        (("what-if", "--policy", "srtf", "--history", "jobs.csv", "--profiles", "p.json"), 2, "leave --profiles out"),
        (("what-if", "--job", "job.yaml", "--profiles", "p.json"), 2, "by its own profiles"),
    ],
)
def test_mistakes_are_named(cli: Cli, now: Path, words: tuple[str, ...], code: int, told: str) -> None:
    found = cli(*words)
    assert (found.code, told in found.err) == (code, True), found.err
