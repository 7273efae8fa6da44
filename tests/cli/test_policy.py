"""`gantline policy list|show|check`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Cli

from gantline.policies.registry import policy_names

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_policy.py"

CLOCKED = """
import time
from dataclasses import dataclass
from gantline import OrderPolicy

@dataclass(frozen=True)
class Mine(OrderPolicy):
    def key(self, snapshot):
        return snapshot.jobs.arrival + 0 * time.time()
"""


def test_the_list_has_every_policy_with_its_sentence(cli: Cli) -> None:
    told = cli("policy", "list", "-o", "json")
    assert [row["policy"] for row in told.json] == policy_names()
    assert all(row["what it does"] for row in told.json)
    srtf = next(row for row in told.json if row["policy"] == "srtf")
    assert srtf["needs"] == ["remaining"]
    assert "1968" in srtf["paper"]


def test_the_list_has_every_form(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("policy", "list").out.startswith("policy\t")
    assert cli("policy", "list", "-o", "csv").out.startswith("policy,")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    assert "remaining" in cli("policy", "list").out


def test_show_tells_parameters_paper_needs_and_ties(cli: Cli) -> None:
    told = cli("policy", "show", "tiresias", "-o", "json").json
    assert "NSDI 2019" in told["paper"]
    assert "arrival" in told["ties"]
    limits = next(one for one in told["parameters"] if one["name"] == "limits")
    assert limits["type"] == "tuple[float, ...]"
    assert limits["help"]


def test_show_has_every_form(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "parameter backfill\tstr = none (none, skip, shrink, easy or conservative); " in cli("policy", "show", "fifo").out
    lines = cli("policy", "show", "fifo", "-o", "csv").out.splitlines()
    assert lines[0] == "name,type,default,takes,help"
    assert lines[1].startswith('backfill,str,none,"none, skip, shrink, easy or conservative",')
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    assert "backfill" in cli("policy", "show", "fifo").out
    assert "It has no parameters." in cli("policy", "show", "srtf").out


def test_show_works_on_a_file(cli: Cli) -> None:
    told = cli("policy", "show", f"{EXAMPLE}:Patient", "-o", "json").json
    assert told["policy"] == "patient"
    (patience,) = told["parameters"]
    assert patience.pop("help") == "seconds taken off the remaining time per second of waiting"
    assert patience == {"name": "patience", "type": "float", "default": 1.0, "takes": "a number, 0 or more"}


@pytest.mark.parametrize(("name", "part"), [("fif", "did you mean 'fifo'"), ("./nowhere.py:X", "no such file")])
def test_a_policy_that_is_not_there_is_not_found(cli: Cli, folder: Path, name: str, part: str) -> None:
    for command in ("show", "check"):
        told = cli("policy", command, name)
        assert told.code == 3
        assert part in told.err


@pytest.mark.usefixtures("one_scenario")
def test_check_fails_with_code_1_and_says_how(cli: Cli, folder: Path) -> None:
    (folder / "mine.py").write_text(CLOCKED)
    told = cli("policy", "check", "mine.py", "-o", "json")
    assert told.code == 1
    broken = {row["rule"]: row["message"] for row in told.json if row["result"] != "ok"}
    assert list(broken) == ["purity"]
    assert "time.time in key(), line 9" in broken["purity"]


@pytest.mark.usefixtures("one_scenario")
def test_the_example_runs_and_keeps_the_rules(cli: Cli, folder: Path) -> None:
    name = f"{EXAMPLE}:Patient"
    told = cli("simulate", "jobs.csv", "--cluster", "2x4", "--policy", name, "--set", "patience=2", "--round", 60, "-o", "json")
    assert told.code == 0, told.err
    assert told.json["policy"] == "patient"
    assert told.json["settings"] == {"patience": 2.0}
    assert told.json["completed"] == 5
    assert cli("policy", "check", name, "--set", "patience=2").code == 0


def test_the_example_is_short() -> None:
    lines = EXAMPLE.read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 25
