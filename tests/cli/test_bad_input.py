"""Bad input: each mistake gives one clear message that names file, line, field and remedy, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Cli, Result

HEAD = "job,arrival,gpus,duration\n"

BAD_TRACES = [
    ("empty file", "", 2, ["t.csv", "is empty"]),
    ("no rows", HEAD, 2, ["t.csv", "holds no jobs"]),
    ("no column", "job,arrival,gpus\na,0,1\n", 2, ["t.csv", "column 'duration' is missing"]),
    ("malformed number", HEAD + "a,0,one,10\n", 2, ["t.csv:2", "field 'gpus'", "one"]),
    ("too many cells", HEAD + "a,0,1,10,77\n", 2, ["t.csv:2", "5 fields"]),
    ("empty cell", HEAD + "a,0,,10\n", 2, ["t.csv:2", "field 'gpus'"]),
    ("not a number", HEAD + "a,0,1,nan\n", 2, ["t.csv:2", "field 'duration'"]),
    ("infinite", HEAD + "a,0,1,inf\n", 2, ["t.csv:2", "field 'duration'"]),
    ("negative duration", HEAD + "a,0,1,-10\n", 2, ["t.csv:2", "field 'duration'"]),
    ("negative arrival", HEAD + "a,-5,1,10\n", 2, ["t.csv:2", "field 'arrival'"]),
    ("no GPUs", HEAD + "a,0,0,10\n", 2, ["t.csv:2", "field 'gpus'"]),
    ("time runs back", HEAD + "a,50,1,10\nb,20,1,10\n", 2, ["t.csv:3", "field 'arrival'", "--repair"]),
    ("duplicate id", HEAD + "a,0,1,10\na,5,2,10\n", 2, ["t.csv:3", "field 'job'", "a"]),
    ("several problems", HEAD + "a,0,0,-1\nb,nan,1,1\n", 2, ["t.csv:2", "more problem"]),
    ("too large", HEAD + "a,0,1,10\nbig,3,64,10\n", 2, ["t.csv:3", "field 'gpus'", "job 'big'", "64 GPUs", "larger --cluster"]),
    ("absent type", "job,arrival,gpus,duration,type\na,0,1,10,k80\n", 2, ["t.csv:2", "field 'type'", "'k80'", "does not have"]),
    ("absent type in options", "job,arrival,gpus,duration,options\na,0,1,10,k80:1=10\n", 2, ["t.csv:2", "field 'options'", "'k80'"]),
    ("endless option", "job,arrival,gpus,duration,options\na,0,1,10,v100:1=1e300\n", 2, ["t.csv:2", "field 'options'", "300 years"]),
    ("needs less than nothing", "job,arrival,gpus,duration,gpu_demand\na,0,1,10,-0.5\n", 2, ["t.csv:2", "field 'gpu_demand'", "-0.5"]),
    (
        "needs more than it has",
        "job,arrival,gpus,duration,gpu_demand\na,0,1,10,1.5\n",
        2,
        ["t.csv:2", "field 'gpu_demand'", "1.5 of 1 GPUs"],
    ),
    ("binary", "\x00\x01\x02\x03", 2, ["t.csv"]),
]

BAD_OPTIONS = [
    (["--policy", "srft"], 3, ["no policy 'srft'", "did you mean 'srtf'"]),
    (["--policy", "zzz"], 3, ["no policy 'zzz'", "known:", "fifo"]),
    (["--policy", "fifo", "--set", "backfil=easy"], 2, ["no parameter 'backfil'", "did you mean 'backfill'"]),
    (["--policy", "fifo", "--set", "backfill=never"], 2, ["'backfill' is 'never'", "conservative"]),
    (["--policy", "cassini", "--set", "host=themi"], 3, ["policy 'cassini': parameter 'host'", "did you mean 'themis'"]),
    (["--policy", "cassini", "--set", "host=themis lease=soon"], 2, ["policy 'cassini': parameter 'host'", "'lease' is 'soon'"]),
    (["--policy", "sharing", "--set", "order=srtf x=1"], 2, ["policy 'sharing': parameter 'order'", "no parameter 'x'"]),
    (["--policy", "srtf", "--set", "x=1"], 2, ["no parameter 'x'", "no parameters"]),
    (["--policy", "tiresias", "--set", "promote=soon"], 2, ["'promote' is 'soon'"]),
    (["--policy", "fifo", "--set", "backfill"], 2, ["'backfill' is not a setting"]),
    (["--policy", "fifo", "--cluster", "two"], 2, ["'two' is not a group of nodes"]),
    (["--policy", "fifo", "--cluster", "0x4"], 2, ["has no nodes"]),
    (["--policy", "fifo", "--cluster", "4x0"], 2, ["neither GPUs nor CPUs"]),
    (["--policy", "fifo", "--cluster", "nowhere.yaml"], 3, ["nowhere.yaml", "no such file"]),
    (["--policy", "fifo", "--placement", "consolidate"], 3, ["did you mean 'consolidated'"]),
    (["--policy", "fifo", "--placement", "skew:x"], 2, ["'x' is not a number"]),
    (["--policy", "fifo", "--placement", "skew:nan"], 2, ["'nan' is not a number"]),
    (["--policy", "fifo", "--cluster", "2x4/1.2.3c"], 2, ["'2x4/1.2.3c' is not a group of nodes"]),
    (["--policy", "fifo", "--seed", "12345678901234567890123"], 2, ["--seed", "too large"]),
    (["--policy", "fifo", "--costs", "1e300"], 2, ["cost 'start'", "300 years"]),
    (["--policy", "fifo", "--costs", "start=1,start=2"], 2, ["'start' is given twice"]),
    (["--policy", "fifo", "--prices", "gpu=1,gpu=2"], 2, ["'gpu' is given twice"]),
    (["--policy", "fifo", "--admission", "quota:user=1,user=2"], 2, ["'user' is given twice"]),
    (["--policy", "fifo", "--admission", "load-limit:0"], 2, ["above zero"]),
    (["--policy", "fifo", "--admission", "quotas"], 3, ["no admission rule 'quotas'"]),
    (["--policy", "fifo", "--regime", "bloxx"], 3, ["did you mean 'blox'"]),
    (["--policy", "fifo", "--round", "0"], 2, ["--round", "above zero"]),
    (["--policy", "fifo", "--round", "fast"], 2, ["--round", "'fast' is not a time"]),
    (["--policy", "fifo", "--round", "inf"], 2, ["--round", "never ends"]),
    (["--policy", "fifo", "--estimates", "guess"], 3, ["no estimates 'guess'", "oracle"]),
    (["--policy", "srtf", "--estimates", "none"], 4, ["policy 'srtf' needs remaining", "--estimates oracle"]),
    (["--policy", "fifo", "--costs", "begin=3"], 2, ["no cost 'begin'"]),
    (["--policy", "fifo", "--track", "9"], 2, ["--track", "LO:HI"]),
    (["--policy", "fifo", "--track", "3:1"], 2, ["--track"]),
    (["--policy", "fifo", "--track", "50:60"], 2, ["--track", "5 jobs"]),
    (["--policy", "fifo", "--budget", "0"], 2, ["--budget"]),
    (["--policy", "fifo", "--node-events", "nowhere.csv"], 3, ["nowhere.csv"]),
]

BAD_FILES = [
    ("missing.py:Mine", None, 3, ["missing.py", "no such file"]),
    ("mine.py:Mine", "def broken(:\n", 2, ["mine.py:1", "syntax error"]),
    ("mine.py:Mine", "x = 1\ny = 1 / 0\n", 2, ["mine.py:2", "ZeroDivisionError"]),
    ("mine.py:Mine", "from gantline import OrderPolicy\nclass Mien(OrderPolicy): pass\n", 3, ["no policy 'Mine'", "did you mean 'Mien'"]),
    ("mine.py:Mine", "class Mine: pass\n", 2, ["'Mine' is a class that is not a Policy", "gantline.Policy"]),
    ("mine.py:Mine", "Mine = 7\n", 2, ["'Mine' is a int"]),
    ("mine.py", "x = 1\n", 2, ["holds no policy"]),
    ("mine.py", "from gantline import Policy\nclass A(Policy): pass\nclass B(Policy): pass\n", 2, ["several policies: A, B"]),
]

MISBEHAVING = """
import time
from dataclasses import dataclass
from gantline import Assignment, Plan, Policy

@dataclass(frozen=True)
class Sometimes(Policy):
    fault: str = "raise"

    def decide(self, snapshot):
        if snapshot.decision % 3 == 2:
            if self.fault == "raise":
                raise ValueError("out of ideas")
            if self.fault == "late":
                time.sleep(0.3)
            if self.fault == "infeasible":
                return Plan.rank([1.0] * (len(snapshot.jobs) + 1))
            if self.fault == "twice":
                return Plan.assign([Assignment(0), Assignment(0)])
            if self.fault == "nonsense":
                return "start everything"
        return Plan.rank(snapshot.jobs.arrival)

@dataclass(frozen=True)
class Never(Policy):
    def decide(self, snapshot):
        raise RuntimeError("I would rather not")
"""


def simulate(cli: Cli, *options: str, trace: str = "jobs.csv") -> Result:
    chosen = options if "--cluster" in options else (*options, "--cluster", "v100:2x4")
    return cli("simulate", trace, *chosen, "--jobs-out", "out.csv", "--out", "run")


def assert_one_line(told: Result, code: int, parts: list[str], folder: Path) -> None:
    assert told.code == code, told.err
    assert told.out == ""
    assert told.err.startswith("gantline: error: ")
    assert told.err.count("\n") == 1
    for part in parts:
        assert part in told.err
    assert not (folder / "out.csv").exists()
    assert not (folder / "run").exists()
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(("text", "code", "parts"), [row[1:] for row in BAD_TRACES], ids=[row[0] for row in BAD_TRACES])
def test_a_bad_trace_is_refused_by_line_and_field(cli: Cli, folder: Path, text: str, code: int, parts: list[str]) -> None:
    (folder / "t.csv").write_text(text)
    assert_one_line(simulate(cli, "--policy", "fifo", trace="t.csv"), code, parts, folder)


@pytest.mark.parametrize(("options", "code", "parts"), BAD_OPTIONS, ids=[" ".join(row[0]) for row in BAD_OPTIONS])
def test_a_bad_option_is_refused_with_a_remedy(cli: Cli, folder: Path, options: list[str], code: int, parts: list[str]) -> None:
    assert_one_line(simulate(cli, *options), code, parts, folder)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ('{"job": "a", "arrival": 0, "gpus": 1, "duration": 10, "gpus": 2}', ["t.jsonl:1", "'gpus' is given twice"]),
        ('{"job": "a", "arrival": 0, "gpus": [1], "duration": 10}', ["t.jsonl", "field 'gpus'", "List"]),
        ("[1, 2]", ["t.jsonl:1", "JSON list"]),
    ],
)
def test_a_bad_line_of_json_is_refused(cli: Cli, folder: Path, line: str, parts: list[str]) -> None:
    (folder / "t.jsonl").write_text(line + "\n")
    assert_one_line(simulate(cli, "--policy", "fifo", trace="t.jsonl"), 2, parts, folder)


@pytest.mark.parametrize(
    ("setting", "parts"), [("seed=5", ["'seed' is not a setting", "--seed"]), ("jobs=1e30", ["1e30 jobs are too many"])]
)
def test_a_generator_is_asked_for_what_it_can_make(cli: Cli, folder: Path, setting: str, parts: list[str]) -> None:
    assert_one_line(cli("trace", "generate", "day", "--set", setting), 2, parts, folder)


def test_a_trace_that_is_not_there_is_not_found(cli: Cli, folder: Path) -> None:
    assert_one_line(simulate(cli, "--policy", "fifo", trace="nowhere.csv"), 3, ["nowhere.csv"], folder)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("nodes:\n  - {gpus: 4\n", ["c.yaml:3", "broken YAML"]),
        ("nodes: []\n", ["c.yaml", "no list 'nodes'"]),
        ("nodes:\n  - {gpu: 4}\n", ["c.yaml: nodes[0]", "unknown key 'gpu'", "'gpus'"]),
        ("nodes:\n  - {gpus: many}\n", ["c.yaml: nodes[0]", "'gpus' is 'many'"]),
        ("nodes:\n  - {gpus: -1}\n", ["c.yaml: nodes[0]", "zero or more"]),
        ("nodes:\n  - {gpus: 1.5}\n", ["c.yaml: nodes[0]", "'gpus' is 1.5", "whole number"]),
        ("nodes:\n  - {gpus: 4, cpus: .inf}\n", ["c.yaml: nodes[0]", "'cpus' is inf"]),
        ("nodes:\n  - {gpus: 4}\nlinks: 5\n", ["c.yaml", "'links' is 5, not a list"]),
        ("nodes:\n  - {gpus: 4, cpus: 2, gpus: 8}\n", ["c.yaml:2", "'gpus' is given twice"]),
        ("nodes:\n  - {name: a, gpus: 1}\n  - {name: a, gpus: 1}\n", ["two nodes are called 'a'"]),
        ("- just\n- a list\n", ["no list 'nodes'"]),
        ("nodes:\n  - !!python/object/apply:os.system ['true']\n", ["c.yaml"]),
    ],
)
def test_a_broken_cluster_file_is_named(cli: Cli, folder: Path, text: str, parts: list[str]) -> None:
    (folder / "c.yaml").write_text(text)
    assert_one_line(simulate(cli, "--policy", "fifo", "--cluster", "c.yaml"), 2, parts, folder)


@pytest.mark.parametrize(("policy", "source", "code", "parts"), BAD_FILES, ids=[f"{row[0]} {row[3][-1]}" for row in BAD_FILES])
def test_a_policy_file_that_cannot_be_used_is_named(
    cli: Cli, folder: Path, policy: str, source: str | None, code: int, parts: list[str]
) -> None:
    if source is not None:
        (folder / "mine.py").write_text(source)
    assert_one_line(simulate(cli, "--policy", policy), code, parts, folder)


@pytest.mark.parametrize(
    ("fault", "told_as", "options"),
    [
        ("raise", "the policy raised ValueError: out of ideas", []),
        ("late", "its budget of 0.05 s", ["--budget", "0.05"]),
        ("infeasible", "the ranking has shape", []),
        ("twice", "assigned twice", []),
        ("nonsense", "answered with a str", []),
    ],
)
def test_a_policy_that_misbehaves_loses_its_turn_and_nothing_else(
    cli: Cli, folder: Path, fault: str, told_as: str, options: list[str]
) -> None:
    (folder / "mine.py").write_text(MISBEHAVING)
    told = cli(
        "simulate",
        "jobs.csv",
        "--cluster",
        "2x4",
        "--policy",
        "mine.py:Sometimes",
        "--set",
        f"fault={fault}",
        "--round",
        "10",
        "-o",
        "json",
        *options,
    )
    assert told.code == 1  # every job ended, but this is not what the policy would have done
    assert told.json["completed"] == 5
    assert told.json["incidents"] > 0
    assert f"{told.json['lost_turns']} of {told.json['decisions']} decisions were lost" in told.err
    assert told_as in told.err
    assert "the last valid plan stands" in told.err


def test_a_policy_that_never_answers_starts_nothing(cli: Cli, folder: Path) -> None:
    (folder / "mine.py").write_text(MISBEHAVING)
    told = cli(
        "simulate", "jobs.csv", "--cluster", "2x4", "--policy", "mine.py:Never", "--round", "10", "--jobs-out", "out.csv", "-o", "json"
    )
    assert told.code == 4
    assert "I would rather not" in told.err
    assert "no job could be started: 5 waiting" in told.err
    assert told.json["completed"] == 0
    assert (folder / "out.csv").exists()


def test_a_hostile_name_stays_text(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "s.json").write_text('{"cluster": "1x1", "jobs": [{"id": "[red]\\u001b[2J\\tx"}]}')
    for forced in ("", "1"):
        monkeypatch.setenv("FORCE_COLOR", forced)
        told = cli("decide", "s.json", "--policy", "fifo")
        assert "[red]" in told.out
        assert "\x1b[2J" not in told.out
