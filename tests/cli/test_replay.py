"""`gantline simulate --record` and `gantline replay`: the same plans again, or the first difference."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Cli, Result

from gantline import simulate
from gantline.engine.drivers.journal import first_difference

COUNTING = """
from dataclasses import dataclass
from gantline import Plan, Policy

TURNS = []

@dataclass(frozen=True)
class Counting(Policy):
    def decide(self, snapshot):
        TURNS.append(1)
        return Plan.rank(snapshot.jobs.arrival + len(TURNS))

@dataclass(frozen=True)
class Remembering(Policy):
    step: float = 1.0

    def decide(self, snapshot):
        turns = (snapshot.memory or 0) + 1
        return Plan.rank(snapshot.jobs.arrival + self.step * turns, memory=turns)
"""


def record(cli: Cli, target: str, options: str) -> Result:
    return cli(f"simulate jobs.csv --cluster 2x4 --record {target} -o json {options}")


@pytest.mark.parametrize("target", ["run.jsonl", "run.jsonl.gz"])
@pytest.mark.parametrize(
    "options",
    [
        "--policy srtf",
        "--policy las --round 30",
        "--policy tiresias --set promote=2 --set limits=20,60 --round 30",
        "--policy fifo --set backfill=easy --costs start=5 --estimates noisy:0.5",
        "--policy las --round 30 --executor acknowledged --decision-latency 7 --admission load-limit:1.5",
        "--policy srtf --executor faulty:3 --placement consolidated:preferred",
        "--policy las --executor faulty:4 --node-events nodes.csv --regime tiresias",
    ],
)
def test_a_recorded_run_replays_to_the_same_plans(cli: Cli, folder: Path, target: str, options: str) -> None:
    (folder / "nodes.csv").write_text("time,node,event\n20,node0,down\n45,node0,up\n")
    assert record(cli, target, options).code == 0
    (folder / "nodes.csv").unlink()  # what happened to nodes is in the record
    told = cli(f"replay {target} -o json")
    assert told.code == 0, told.err
    assert told.json["same"] is True
    assert told.json["decisions"] > 0


def test_recording_changes_nothing(cli: Cli, folder: Path) -> None:
    recorded = record(cli, "run.jsonl", "--policy las --round 30").json
    assert recorded["log_hash"] == simulate("jobs.csv", "2x4", "las", round=30).summary["log_hash"]


def test_a_record_says_what_was_run(cli: Cli, folder: Path) -> None:
    record(cli, "run.jsonl.gz", "--policy tiresias --set limits=20,60 --round 30 --seed 4")
    with gzip.open("run.jsonl.gz", "rt") as file:
        head, *lines = map(json.loads, file)
    assert head["policy"] == "tiresias"
    assert head["seed"] == 4
    assert head["lines"] == head["decisions"] == len(lines)
    assert [number for number, line in enumerate(lines, start=1) if "snapshot" in line] == [1, 2, 4, 8][: len(lines).bit_length()]
    assert lines[0]["snapshot"]["kind"] == "snapshot"
    assert lines[0]["plan"]["kind"] == "plan"
    assert lines[2].keys() == {"decision", "now", "hash"}


def test_one_line_of_a_record_can_be_asked_again(cli: Cli, folder: Path) -> None:
    record(cli, "run.jsonl", "--policy srtf")
    (folder / "one.json").write_text((folder / "run.jsonl").read_text().splitlines()[1])
    assert cli("decide one.json --policy srtf").code == 0


def test_a_policy_with_hidden_state_is_caught(cli: Cli, folder: Path) -> None:
    (folder / "mine.py").write_text(COUNTING)
    assert record(cli, "run.jsonl", "--policy mine.py:Counting --round 30").code == 0
    (folder / "mine.py").write_text(COUNTING.replace("TURNS = []", "TURNS = [1]"))
    told = cli("replay run.jsonl --policy mine.py:Counting")
    assert told.code == 1
    assert "decision 1 at" in told.err
    assert "plan.ranking.key[0]: recorded 1.0, replayed 2.0" in told.err


def test_memory_is_carried_from_plan_to_plan(cli: Cli, folder: Path) -> None:
    (folder / "mine.py").write_text(COUNTING)
    record(cli, "run.jsonl", "--policy mine.py:Remembering --round 30")
    assert cli("replay run.jsonl --policy mine.py:Remembering").code == 0
    changed = cli("replay run.jsonl --policy mine.py:Remembering --set step=2")
    assert changed.code == 1
    assert "recorded 1.0, replayed 2.0" in changed.err


def test_a_tampered_plan_is_found(cli: Cli, folder: Path) -> None:
    record(cli, "run.jsonl", "--policy srtf")
    lines = (folder / "run.jsonl").read_text().splitlines()
    lines[2] = lines[2].replace('"preempt":true', '"preempt":false')
    (folder / "run.jsonl").write_text("\n".join(lines) + "\n")
    told = cli("replay run.jsonl")
    assert told.code == 1
    assert "plan.ranking.preempt: recorded false, replayed true" in told.err


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        ("", 2, "is empty"),
        ("{}\n", 2, "is not a record"),
        ("job,arrival\n", 2, "run.jsonl:1: is not JSON"),
        ('{"kind":"record","version":9,"policy":"fifo"}\n', 4, "newer Gantline"),
        ('{"kind":"record","version":1,"policy":"fifo"}\n', 4, "older Gantline"),
        ('{"kind":"record","version":2,"policy":"fifo","lines":2}\n', 2, "promises 2"),
        ('{"kind":"record","version":2,"policy":"fifo"}\n{"snapshot":1}\n', 2, "run.jsonl:2: holds neither"),
        ('{"kind":"record","version":2,"policy":"fifa"}\n', 3, "did you mean 'fifo'"),
    ],
)
def test_what_is_not_a_record_is_refused(cli: Cli, folder: Path, text: str, code: int, part: str) -> None:
    (folder / "run.jsonl").write_text(text)
    told = cli("replay run.jsonl")
    assert told.code == code
    assert part in told.err


def test_a_record_that_was_cut_short_is_noticed(cli: Cli, folder: Path) -> None:
    record(cli, "run.jsonl.gz", "--policy srtf")
    whole = (folder / "run.jsonl.gz").read_bytes()
    (folder / "run.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    told = cli("replay run.jsonl.gz")
    assert told.code == 2
    assert "was the file cut short?" in told.err


def test_a_record_that_is_not_there_is_not_found(cli: Cli, folder: Path) -> None:
    assert cli("replay nowhere.jsonl").code == 3


def test_the_first_difference_is_named_by_its_path() -> None:
    assert first_difference({"a": [1, 2]}, {"a": [1, 2]}, "plan") is None
    assert first_difference({"a": [1, 2]}, {"a": [1, 3]}, "plan") == ("plan.a[1]", 2, 3)
    assert first_difference({"a": [1]}, {"a": [1, 2]}, "plan") == ("plan.a", [1], [1, 2])
    assert first_difference({}, {"b": 1}, "plan") == ("plan.b", None, 1)


def test_an_input_that_is_left_out_is_noticed(cli: Cli, folder: Path) -> None:
    (folder / "nodes.csv").write_text("time,node,event\n20,node0,down\n45,node0,up\n")
    record(cli, "run.jsonl", "--policy las --round 5 --node-events nodes.csv")
    lines = (folder / "run.jsonl").read_text().splitlines()
    kept = [line for line in lines if '"kind":"down"' not in line]
    assert len(kept) == len(lines) - 1
    head = kept[0].replace(f'"lines":{len(lines) - 1}', f'"lines":{len(kept) - 1}')
    (folder / "run.jsonl").write_text("\n".join([head, *kept[1:]]) + "\n")
    assert cli("replay run.jsonl").code == 1


def test_a_folder_without_a_store_is_named(cli: Cli, folder: Path) -> None:
    told = cli(f"replay {folder}")
    assert told.code == 3
    assert "holds no store" in told.err
