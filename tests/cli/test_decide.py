"""`gantline decide`: a snapshot by hand, the plan, and what the engine would do with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

NOW = {
    "now": 600,
    "cluster": "2x4",
    "jobs": [
        {"id": "big", "gpus": 4, "estimate": 4000, "service": 500, "devices": [0, 1, 2, 3]},
        {"id": "small", "gpus": 2, "estimate": 300, "arrival": 100, "devices": [4, 5]},
        {"id": "new", "gpus": 4, "estimate": 700, "arrival": 590},
        {"id": "wide", "gpus": 8, "estimate": 60, "arrival": 595},
    ],
}


@pytest.fixture
def now(folder: Path) -> Path:
    path = folder / "now.json"
    path.write_text(json.dumps(NOW))
    return path


def table(text: str) -> dict[str, dict[str, str]]:
    head, *rows = [line.split("\t") for line in text.splitlines()]
    return {row[0]: dict(zip(head, row)) for row in rows}


def test_a_ranking_comes_with_what_the_walk_makes_of_it(cli: Cli, now: Path) -> None:
    told = cli("decide", now, "--policy", "srtf")
    assert told.code == 0
    rows = table(told.out)
    assert list(rows) == ["wide", "small", "new", "big"]
    assert rows["wide"]["act"] == "starts"
    assert json.loads(rows["wide"]["devices"]) == list(range(8))
    assert rows["small"]["act"] == "is stopped"
    assert rows["big"]["why"] == "was stopped for a job that ranks higher"
    assert rows["new"]["act"] == "waits"


def test_a_strict_order_tells_who_blocks_whom(cli: Cli, now: Path) -> None:
    rows = table(cli("decide", "--policy", "fifo", now).out)
    assert rows["big"]["act"] == rows["small"]["act"] == "stays"
    assert rows["new"]["why"] == "not enough free devices"
    assert rows["wide"]["why"].startswith("waits behind a job that does not fit")


def test_reservations_are_told(cli: Cli, now: Path) -> None:
    told = cli("decide", "--policy", "fifo", "--set", "backfill=easy", now)
    assert told.code == 0
    assert "4 GPUs are reserved for job 'new' in 5.0 min" in told.err


def test_placement_matters_to_the_outcome(cli: Cli, folder: Path) -> None:
    (folder / "s.json").write_text(
        json.dumps(
            {"cluster": "2x4", "jobs": [{"id": "a", "devices": [0]}, {"id": "b", "devices": [4]}, {"id": "wide", "gpus": 4, "arrival": 1}]}
        )
    )
    scattered = table(cli("decide", "s.json", "--policy", "fifo").out)
    together = table(cli("decide", "s.json", "--policy", "fifo", "--placement", "consolidated").out)
    assert scattered["wide"]["act"] == "starts"
    assert together["wide"]["act"] == "waits"
    assert "not together" in together["wide"]["why"]


def test_json_has_the_plan_and_the_outcome(cli: Cli, now: Path) -> None:
    told = cli("decide", now, "--policy", "las", "-o", "json").json
    assert told["jobs"] == ["big", "small", "new", "wide"]
    assert told["plan"]["ranking"]["key"] == [500.0, 0.0, 0.0, 0.0]
    assert {one["job"]: one["act"] for one in told["outcome"]} == {"big": "is stopped", "small": "stays", "new": "starts", "wide": "waits"}


def test_the_snapshot_is_left_as_it_was(cli: Cli, now: Path) -> None:
    before = now.read_text()
    first, second = cli("decide", now, "--policy", "srtf").out, cli("decide", now, "--policy", "srtf").out
    assert first == second
    assert now.read_text() == before


def test_assignments_are_carried_out_too(cli: Cli, folder: Path, now: Path) -> None:
    (folder / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom gantline import Assignment, Plan, Policy\n\n@dataclass(frozen=True)\nclass Two(Policy):\n"
        "    def decide(self, snapshot):\n        return Plan.assign([Assignment(0, gpus=2), Assignment(2, devices=(4, 5, 6, 7))])\n"
    )
    rows = table(cli("decide", now, "--policy", "mine.py:Two").out)
    assert rows["big"]["act"] == "resizes"
    assert rows["new"]["act"] == "starts"
    assert rows["new"]["devices"] == "[4, 5, 6, 7]"
    assert rows["small"]["act"] == "is stopped"
    assert rows["wide"]["why"] == "the policy chose not to run it now"


@pytest.mark.parametrize(
    ("text", "code", "parts"),
    [
        ("{", 2, ["now.json:1:2", "is not JSON"]),
        ('{"cluster": "2x4", "jobs": [{"id": "a", "gpu": 1}]}', 2, ["snapshot.jobs[0]", "unknown key 'gpu'", "'gpus'"]),
        ('{"cluster": "2x4", "version": 9}', 2, ["newer Gantline"]),
        ("[1]", 2, ["a list, not an object"]),
    ],
)
def test_a_broken_snapshot_is_named(cli: Cli, folder: Path, text: str, code: int, parts: list[str]) -> None:
    (folder / "now.json").write_text(text)
    told = cli("decide", "now.json", "--policy", "fifo")
    assert told.code == code
    assert told.err.count("\n") == 1
    for part in parts:
        assert part in told.err


def test_a_file_that_is_not_there_is_not_found(cli: Cli, folder: Path) -> None:
    assert cli("decide", "nowhere.json", "--policy", "fifo").code == 3


def test_a_policy_without_an_answer_is_refused(cli: Cli, folder: Path, now: Path) -> None:
    (folder / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom gantline import Plan, Policy\n\n@dataclass(frozen=True)\nclass Short(Policy):\n"
        "    def decide(self, snapshot):\n        return Plan.rank([1.0])\n\n@dataclass(frozen=True)\nclass Raises(Policy):\n"
        "    def decide(self, snapshot):\n        return 1 / 0\n"
    )
    short, raises = cli("decide", now, "--policy", "mine.py:Short"), cli("decide", now, "--policy", "mine.py:Raises")
    assert short.code == raises.code == 4
    assert "shape (1,) for 4 jobs" in short.err
    assert "ZeroDivisionError" in raises.err
