"""`gantline decide`: a snapshot by hand, the plan, and what the engine would do with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

from gantline.policies.registry import policy_names

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
    told = cli(f"decide {now} --policy srtf")
    assert told.code == 0
    rows = table(told.out)
    assert list(rows) == ["wide", "small", "new", "big"]
    assert rows["wide"]["act"] == "starts"
    assert json.loads(rows["wide"]["devices"]) == list(range(8))
    assert rows["small"]["act"] == "is stopped"
    assert rows["big"]["why"] == "was stopped for a job that ranks higher"
    assert rows["new"]["act"] == "waits"


def test_a_strict_order_tells_who_blocks_whom(cli: Cli, now: Path) -> None:
    rows = table(cli(f"decide --policy fifo {now}").out)
    assert rows["big"]["act"] == rows["small"]["act"] == "stays"
    assert rows["new"]["why"] == "not enough free devices"
    assert rows["wide"]["why"].startswith("waits behind a job that does not fit")


def test_reservations_are_told(cli: Cli, now: Path) -> None:
    told = cli(f"decide --policy fifo --set backfill=easy {now}")
    assert told.code == 0
    assert "4 GPUs are reserved for job 'new' in 5.0 min" in told.err


def test_placement_matters_to_the_outcome(cli: Cli, folder: Path) -> None:
    (folder / "s.json").write_text(
        json.dumps(
            {"cluster": "2x4", "jobs": [{"id": "a", "devices": [0]}, {"id": "b", "devices": [4]}, {"id": "wide", "gpus": 4, "arrival": 1}]}
        )
    )
    scattered = table(cli("decide s.json --policy fifo").out)
    together = table(cli("decide s.json --policy fifo --placement consolidated").out)
    assert scattered["wide"]["act"] == "starts"
    assert together["wide"]["act"] == "waits"
    assert "not together" in together["wide"]["why"]


def test_json_has_the_plan_and_the_outcome(cli: Cli, now: Path) -> None:
    told = cli(f"decide {now} --policy las -o json").json
    assert told["jobs"] == ["big", "small", "new", "wide"]
    assert told["plan"]["ranking"]["key"] == [500.0, 0.0, 0.0, 0.0]
    assert {one["job"]: one["act"] for one in told["outcome"]} == {"big": "is stopped", "small": "stays", "new": "starts", "wide": "waits"}


def test_the_snapshot_is_left_as_it_was(cli: Cli, now: Path) -> None:
    before = now.read_text()
    first, second = cli(f"decide {now} --policy srtf").out, cli(f"decide {now} --policy srtf").out
    assert first == second
    assert now.read_text() == before


def test_assignments_are_carried_out_too(cli: Cli, folder: Path, now: Path) -> None:
    (folder / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom gantline import Assignment, Plan, Policy\n\n@dataclass(frozen=True)\nclass Two(Policy):\n"
        "    def decide(self, snapshot):\n        return Plan.assign([Assignment(0, gpus=2), Assignment(2, devices=(4, 5, 6, 7))])\n"
    )
    rows = table(cli(f"decide {now} --policy mine.py:Two").out)
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
    told = cli("decide now.json --policy fifo")
    assert told.code == code
    assert told.err.count("\n") == 1
    for part in parts:
        assert part in told.err


def test_a_file_that_is_not_there_is_not_found(cli: Cli, folder: Path) -> None:
    assert cli("decide nowhere.json --policy fifo").code == 3


def test_a_policy_without_an_answer_is_refused(cli: Cli, folder: Path, now: Path) -> None:
    (folder / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom gantline import Plan, Policy\n\n@dataclass(frozen=True)\nclass Short(Policy):\n"
        "    def decide(self, snapshot):\n        return Plan.rank([1.0])\n\n@dataclass(frozen=True)\nclass Raises(Policy):\n"
        "    def decide(self, snapshot):\n        return 1 / 0\n"
    )
    short, raises = cli(f"decide {now} --policy mine.py:Short"), cli(f"decide {now} --policy mine.py:Raises")
    assert short.code == raises.code == 4
    assert "shape (1,) for 4 jobs" in short.err
    assert "ZeroDivisionError" in raises.err


# `gantline explain`, `forecast` and `what-if` about files.

SURE = "--sigma 0 --samples 1"


def test_explain_says_why_who_and_what_would_help(cli: Cli, now: Path) -> None:
    told = cli(f"explain new --snapshot {now} --present fifo {SURE}")
    assert told.code == 0
    assert "with 2 GPUs in place of 4 it would start now" in told.out
    found = cli(f"explain new --snapshot {now} --present fifo {SURE} -o json").json
    assert found["act"] == "waits"
    assert found["waits_for"] == ["small"]
    assert [change["what"] for change in found["changes"]] == ["gpus"]
    assert found["expected"]["start_p50"] == pytest.approx(900)


def test_forecast_lists_everybody_or_those_asked_for(cli: Cli, now: Path) -> None:
    everybody = cli(f"forecast --snapshot {now} --present fifo {SURE} -o json").json
    assert [one["job"] for one in everybody["jobs"]] == ["big", "small", "new", "wide"]
    told = cli(f"forecast new --snapshot {now} --present fifo {SURE}")
    assert told.out.startswith("new: starts in 5.0 min")


def test_what_if_compares_the_two_futures(cli: Cli, now: Path) -> None:
    found = cli(f"what-if --policy srtf --snapshot {now} --present fifo {SURE} -o json").json
    assert (found["present"], found["other"]) == ("fifo", "srtf")
    assert {one["metric"]: one["change"] < 0 for one in found["differences"]}["jct_mean"]
    more = cli(f"what-if --add 1x4 --snapshot {now} --present fifo {SURE}")
    assert "fifo with 1x4 more in place of fifo" in more.out


def test_the_past_under_another_policy(cli: Cli, folder: Path) -> None:
    asked = ("what-if", "--policy", "srtf", "--history", "jobs.csv", "--cluster", "1x8", "--present", "fifo", "--samples", "2")
    found = cli(*asked, "-o", "json").json
    assert found["jobs"] == 5
    assert "the error of the method is not known" in cli(*asked).out


def test_forecasts_are_checked(cli: Cli, folder: Path) -> None:
    found = cli("forecast --check jobs.csv --cluster 1x8 --present fifo --samples 2 -o json").json
    assert found["forecasts"] == 5


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("explain nwe --snapshot now.json --present fifo", 3, "no job 'nwe'"),
        ("explain new --snapshot now.json", 2, "add --present"),
        ("forecast --snapshot now.json --present fifo --samples 0", 2, "samples"),
        ("forecast --snapshot now.json --present fifo --samples 100000", 2, "too many"),
        ("forecast --snapshot now.json --present fifo --sigma -1", 2, "width"),
        ("what-if --snapshot now.json --present fifo", 2, "nothing is different"),
        ("what-if --lose node9 --snapshot now.json --present fifo", 3, "no node 'node9'"),
        ("what-if --policy srft --snapshot now.json --present fifo", 3, "srtf"),
        ("what-if --policy srtf --history jobs.csv", 2, "add --cluster and --present"),
        ("forecast --check jobs.csv", 2, "add --cluster and --present"),
        ("forecast --snapshot now.json --present fifo --profiles none.json", 3, "none.json"),
        ("forecast --check jobs.csv --profiles p.json", 2, "leave --profiles out"),
        ("what-if --policy srtf --history jobs.csv --profiles p.json", 2, "leave --profiles out"),
        ("what-if --job job.yaml --profiles p.json", 2, "by its own profiles"),
    ],
)
def test_mistakes_are_named(cli: Cli, now: Path, words: str, code: int, told: str) -> None:
    found = cli(words)
    assert (found.code, told in found.err) == (code, True), found.err


# `gantline policy list|show|check`.

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
    told = cli("policy list -o json")
    assert [row["policy"] for row in told.json] == policy_names()
    assert all(row["what it does"] for row in told.json)
    srtf = next(row for row in told.json if row["policy"] == "srtf")
    assert srtf["needs"] == ["remaining"]
    assert "1968" in srtf["paper"]


def test_the_list_has_every_form(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("policy list").out.startswith("policy\t")
    assert cli("policy list -o csv").out.startswith("policy,")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    assert "remaining" in cli("policy list").out


def test_show_tells_parameters_paper_needs_and_ties(cli: Cli) -> None:
    told = cli("policy show tiresias -o json").json
    assert "NSDI 2019" in told["paper"]
    assert "arrival" in told["ties"]
    limits = next(one for one in told["parameters"] if one["name"] == "limits")
    assert limits["type"] == "tuple[float, ...]"
    assert limits["help"]


def test_show_has_every_form(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "parameter backfill\tstr = none (none, skip, shrink, easy or conservative); " in cli("policy show fifo").out
    lines = cli("policy show fifo -o csv").out.splitlines()
    assert lines[0] == "name,type,default,takes,help"
    assert lines[1].startswith('backfill,str,none,"none, skip, shrink, easy or conservative",')
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    assert "backfill" in cli("policy show fifo").out
    assert "It has no parameters." in cli("policy show srtf").out


def test_show_works_on_a_file(cli: Cli) -> None:
    told = cli(f"policy show {EXAMPLE}:Patient -o json").json
    assert told["policy"] == "patient"
    (patience,) = told["parameters"]
    assert patience.pop("help") == "seconds taken off the remaining time per second of waiting"
    assert patience == {"name": "patience", "type": "float", "default": 1.0, "takes": "a number, 0 or more"}


@pytest.mark.parametrize(("name", "part"), [("fif", "did you mean 'fifo'"), ("./nowhere.py:X", "no such file")])
def test_a_policy_that_is_not_there_is_not_found(cli: Cli, folder: Path, name: str, part: str) -> None:
    for command in ("show", "check"):
        told = cli(f"policy {command} {name}")
        assert told.code == 3
        assert part in told.err


@pytest.mark.usefixtures("one_scenario")
def test_check_fails_with_code_1_and_says_how(cli: Cli, folder: Path) -> None:
    (folder / "mine.py").write_text(CLOCKED)
    told = cli("policy check mine.py -o json")
    assert told.code == 1
    broken = {row["rule"]: row["message"] for row in told.json if row["result"] != "ok"}
    assert list(broken) == ["purity"]
    assert "time.time in key(), line 9" in broken["purity"]


@pytest.mark.usefixtures("one_scenario")
def test_the_example_runs_and_keeps_the_rules(cli: Cli, folder: Path) -> None:
    name = f"{EXAMPLE}:Patient"
    told = cli(f"simulate jobs.csv --cluster 2x4 --policy {name} --set patience=2 --round 60 -o json")
    assert told.code == 0, told.err
    assert told.json["policy"] == "patient"
    assert told.json["settings"] == {"patience": 2.0}
    assert told.json["completed"] == 5
    assert cli(f"policy check {name} --set patience=2").code == 0


def test_the_example_is_short() -> None:
    lines = EXAMPLE.read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 25
