"""Bad input: each mistake gives one clear message that names file, line, field and remedy, and nothing is left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli, Result
from tests.systems.gavel.tiny_world import table, trace

HEAD = "job,arrival,gpus,duration\n"

BAD_TRACES = {
    "empty file": ("", "t.csv ... is empty"),
    "no column": ("job,arrival,gpus\na,0,1\n", "t.csv ... column 'duration' is missing"),
    "malformed number": (HEAD + "a,0,one,10\n", "t.csv:2 ... field 'gpus' ... one"),
    "time runs back": (HEAD + "a,50,1,10\nb,20,1,10\n", "t.csv:3 ... field 'arrival' ... --repair"),
    "several problems": (HEAD + "a,0,0,-1\nb,nan,1,1\n", "t.csv:2 ... more problem"),
    "too large": (HEAD + "a,0,1,10\nbig,3,64,10\n", "t.csv:3 ... field 'gpus' ... job 'big' ... 64 GPUs ... larger --cluster"),
    "absent type": ("job,arrival,gpus,duration,type\na,0,1,10,k80\n", "t.csv:2 ... field 'type' ... 'k80' ... does not have"),
    "absent type in options": ("job,arrival,gpus,duration,options\na,0,1,10,k80:1=10\n", "t.csv:2 ... field 'options' ... 'k80'"),
    "endless option": ("job,arrival,gpus,duration,options\na,0,1,10,v100:1=1e300\n", "t.csv:2 ... field 'options' ... 300 years"),
    "needs less than nothing": ("job,arrival,gpus,duration,gpu_demand\na,0,1,10,-0.5\n", "t.csv:2 ... field 'gpu_demand' ... -0.5"),
    "needs more than it has": ("job,arrival,gpus,duration,gpu_demand\na,0,1,10,1.5\n", "t.csv:2 ... field 'gpu_demand' ... 1.5 of 1 GPUs"),
    "binary": ("\x00\x01\x02\x03", "t.csv"),
}

BAD_OPTIONS = [
    ("--policy srft", 3, "no policy 'srft' ... did you mean 'srtf'"),
    ("--policy zzz", 3, "no policy 'zzz' ... known: ... fifo"),
    ("--set backfil=easy", 2, "no parameter 'backfil' ... did you mean 'backfill'"),
    ("--set backfill=never", 2, "'backfill' is 'never' ... conservative"),
    ("--policy cassini --set host=themi", 3, "policy 'cassini': parameter 'host' ... did you mean 'themis'"),
    ("--policy cassini --set 'host=themis lease=soon'", 2, "policy 'cassini': parameter 'host' ... 'lease' is 'soon'"),
    ("--policy sharing --set 'order=srtf x=1'", 2, "policy 'sharing': parameter 'order' ... no parameter 'x'"),
    ("--policy srtf --set x=1", 2, "no parameter 'x' ... no parameters"),
    ("--policy tiresias --set promote=soon", 2, "'promote' is 'soon'"),
    ("--set backfill", 2, "'backfill' is not a setting"),
    ("--cluster two", 2, "'two' is not a group of nodes"),
    ("--cluster 0x4", 2, "has no nodes"),
    ("--cluster 4x0", 2, "neither GPUs nor CPUs"),
    ("--cluster nowhere.yaml", 3, "nowhere.yaml ... no such file"),
    ("--placement consolidate", 3, "did you mean 'consolidated'"),
    ("--placement skew:x", 2, "'x' is not a number"),
    ("--placement skew:nan", 2, "'nan' is not a number"),
    ("--cluster 2x4/1.2.3c", 2, "'2x4/1.2.3c' is not a group of nodes"),
    ("--seed 12345678901234567890123", 2, "--seed ... too large"),
    ("--costs 1e300", 2, "cost 'start' ... 300 years"),
    ("--costs start=1,start=2", 2, "'start' is given twice"),
    ("--prices gpu=1,gpu=2", 2, "'gpu' is given twice"),
    ("--admission quota:user=1,user=2", 2, "'user' is given twice"),
    ("--admission load-limit:0", 2, "above zero"),
    ("--admission quotas", 3, "no admission rule 'quotas'"),
    ("--regime bloxx", 3, "did you mean 'blox'"),
    ("--round 0", 2, "--round ... above zero"),
    ("--round fast", 2, "--round ... 'fast' is not a time"),
    ("--round inf", 2, "--round ... never ends"),
    ("--estimates guess", 3, "no estimates 'guess' ... oracle"),
    ("--policy srtf --estimates none", 4, "policy 'srtf' needs remaining ... --estimates oracle"),
    ("--costs begin=3", 2, "no cost 'begin'"),
    ("--track 9", 2, "--track ... LO:HI"),
    ("--track 3:1", 2, "--track"),
    ("--track 50:60", 2, "--track ... 5 jobs"),
    ("--budget 0", 2, "--budget"),
    ("--node-events nowhere.csv", 3, "nowhere.csv"),
]

BAD_FILES = [
    ("missing.py:Mine", None, 3, "missing.py ... no such file"),
    ("mine.py:Mine", "def broken(:\n", 2, "mine.py:1 ... syntax error"),
    ("mine.py:Mine", "x = 1\ny = 1 / 0\n", 2, "mine.py:2 ... ZeroDivisionError"),
    ("mine.py:Mine", "from gantline import OrderPolicy\nclass Mien(OrderPolicy): pass\n", 3, "no policy 'Mine' ... did you mean 'Mien'"),
    ("mine.py:Mine", "class Mine: pass\n", 2, "'Mine' is a class that is not a Policy ... gantline.Policy"),
    ("mine.py:Mine", "Mine = 7\n", 2, "'Mine' is a int"),
    ("mine.py", "x = 1\n", 2, "holds no policy"),
    ("mine.py", "from gantline import Policy\nclass A(Policy): pass\nclass B(Policy): pass\n", 2, "several policies: A, B"),
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


def simulate(cli: Cli, options: str = "", trace: str = "jobs.csv") -> Result:
    """A run, under FIFO on eight GPUs where nothing else is said."""
    usual = [] if "--policy" in options else ["--policy", "fifo"]
    usual += [] if "--cluster" in options else ["--cluster", "v100:2x4"]
    return cli(f"simulate {trace} --jobs-out out.csv --out run {options}", *usual)


def assert_one_line(told: Result, code: int, words: str, folder: Path) -> None:
    assert told.code == code, told.err
    assert told.out == ""
    assert told.err.startswith("gantline: error: ")
    assert told.err.count("\n") == 1
    for part in words.split(" ... "):
        assert part in told.err
    assert not (folder / "out.csv").exists()
    assert not (folder / "run").exists()
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(("text", "words"), BAD_TRACES.values(), ids=BAD_TRACES)
def test_a_bad_trace_is_refused_by_line_and_field(cli: Cli, folder: Path, text: str, words: str) -> None:
    (folder / "t.csv").write_text(text)
    assert_one_line(simulate(cli, trace="t.csv"), 2, words, folder)


@pytest.mark.parametrize(("options", "code", "words"), BAD_OPTIONS)
def test_a_bad_option_is_refused_with_a_remedy(cli: Cli, folder: Path, options: str, code: int, words: str) -> None:
    assert_one_line(simulate(cli, options), code, words, folder)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"job": "a", "arrival": 0, "gpus": 1, "duration": 10, "gpus": 2}', "t.jsonl:1 ... 'gpus' is given twice"),
        ('{"job": "a", "arrival": 0, "gpus": [1], "duration": 10}', "t.jsonl ... field 'gpus' ... List"),
        ("[1, 2]", "t.jsonl:1 ... JSON list"),
    ],
)
def test_a_bad_line_of_json_is_refused(cli: Cli, folder: Path, line: str, words: str) -> None:
    (folder / "t.jsonl").write_text(line + "\n")
    assert_one_line(simulate(cli, trace="t.jsonl"), 2, words, folder)


@pytest.mark.parametrize(("setting", "words"), [("seed=5", "'seed' is not a setting ... --seed"), ("jobs=1e30", "1e30 jobs are too many")])
def test_a_generator_is_asked_for_what_it_can_make(cli: Cli, folder: Path, setting: str, words: str) -> None:
    assert_one_line(cli(f"trace generate day --set {setting}"), 2, words, folder)


def test_a_trace_that_is_not_there_is_not_found(cli: Cli, folder: Path) -> None:
    assert_one_line(simulate(cli, trace="nowhere.csv"), 3, "nowhere.csv", folder)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nodes:\n  - {gpus: 4\n", "c.yaml:3 ... broken YAML"),
        ("nodes: []\n", "c.yaml ... no list 'nodes'"),
        ("nodes:\n  - {gpu: 4}\n", "c.yaml: nodes[0] ... unknown key 'gpu' ... 'gpus'"),
        ("nodes:\n  - {gpus: many}\n", "c.yaml: nodes[0] ... 'gpus' is 'many'"),
        ("nodes:\n  - {gpus: -1}\n", "c.yaml: nodes[0] ... zero or more"),
        ("nodes:\n  - {gpus: 1.5}\n", "c.yaml: nodes[0] ... 'gpus' is 1.5 ... whole number"),
        ("nodes:\n  - {gpus: 4, cpus: .inf}\n", "c.yaml: nodes[0] ... 'cpus' is inf"),
        ("nodes:\n  - {gpus: 4}\nlinks: 5\n", "c.yaml ... 'links' is 5, not a list"),
        ("nodes:\n  - {gpus: 4, cpus: 2, gpus: 8}\n", "c.yaml:2 ... 'gpus' is given twice"),
        ("nodes:\n  - {name: a, gpus: 1}\n  - {name: a, gpus: 1}\n", "two nodes are called 'a'"),
        ("- just\n- a list\n", "no list 'nodes'"),
        ("nodes:\n  - !!python/object/apply:os.system ['true']\n", "c.yaml"),
    ],
)
def test_a_broken_cluster_file_is_named(cli: Cli, folder: Path, text: str, words: str) -> None:
    (folder / "c.yaml").write_text(text)
    assert_one_line(simulate(cli, "--cluster c.yaml"), 2, words, folder)


@pytest.mark.parametrize(("policy", "source", "code", "words"), BAD_FILES)
def test_a_policy_file_that_cannot_be_used_is_named(cli: Cli, folder: Path, policy: str, source: str | None, code: int, words: str) -> None:
    if source is not None:
        (folder / "mine.py").write_text(source)
    assert_one_line(simulate(cli, f"--policy {policy}"), code, words, folder)


@pytest.mark.parametrize(
    ("fault", "told_as", "options"),
    [
        ("raise", "the policy raised ValueError: out of ideas", ""),
        ("late", "its budget of 0.05 s", "--budget 0.05"),
        ("infeasible", "the ranking has shape", ""),
        ("twice", "assigned twice", ""),
        ("nonsense", "answered with a str", ""),
    ],
)
def test_a_policy_that_misbehaves_loses_its_turn_and_nothing_else(cli: Cli, folder: Path, fault: str, told_as: str, options: str) -> None:
    (folder / "mine.py").write_text(MISBEHAVING)
    told = cli(f"simulate jobs.csv --cluster 2x4 --policy mine.py:Sometimes --set fault={fault} --round 10 -o json {options}")
    assert told.code == 1  # every job ended, but this is not what the policy would have done
    assert told.json["completed"] == 5
    assert told.json["incidents"] > 0
    assert f"{told.json['lost_turns']} of {told.json['decisions']} decisions were lost" in told.err
    assert told_as in told.err
    assert "the last valid plan stands" in told.err


def test_a_policy_that_never_answers_starts_nothing(cli: Cli, folder: Path) -> None:
    (folder / "mine.py").write_text(MISBEHAVING)
    told = cli("simulate jobs.csv --cluster 2x4 --policy mine.py:Never --round 10 --jobs-out out.csv -o json")
    assert told.code == 4
    assert "I would rather not" in told.err
    assert "no job could be started: 5 waiting" in told.err
    assert told.json["completed"] == 0
    assert (folder / "out.csv").exists()


def test_a_hostile_name_stays_text(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "s.json").write_text('{"cluster": "1x1", "jobs": [{"id": "[red]\\u001b[2J\\tx"}]}')
    for forced in ("", "1"):
        monkeypatch.setenv("FORCE_COLOR", forced)
        told = cli("decide s.json --policy fifo")
        assert "[red]" in told.out
        assert "\x1b[2J" not in told.out


# Bad throughputs, prices and deadlines from the command line: each is named, nothing is silently zero.

CLUSTER = "v100:1,k80:1"
BIG, SMALL = "('big', 1)", "('small', 1)"
Body = dict[str, dict[str, dict[str, Any]]]


def body() -> Body:
    """The tiny world's table as its file."""
    known = table(sizes=(1,))
    rows: Body = {}
    for j, device in enumerate(known.types):
        rows[device] = {}
        for a, key in enumerate(known.keys):
            entry: dict[str, Any] = {"null": float(known.packed.alone[a, j])}
            for b, other in enumerate(known.keys):
                entry[str(other)] = [float(known.packed.paired[a, b, j]), float(known.packed.paired[b, a, j])]
            rows[device][str(key)] = entry
    return rows


def _lack_job(rows: Body) -> None:
    for device in rows.values():
        del device[SMALL]
        for entry in device.values():
            entry.pop(SMALL, None)


def _lack_device(rows: Body) -> None:
    del rows["k80"]


def _lack_pairs(rows: Body) -> None:
    for device in rows.values():
        del device[BIG][SMALL], device[SMALL][BIG]


def _nothing(rows: Body) -> None:
    for device in rows.values():
        for entry in device.values():
            entry[SMALL] = [0.0, 0.0]
        device[SMALL] = {key: 0.0 if key == "null" else [0.0, 0.0] for key in device[SMALL]}


def _one_side(rows: Body) -> None:
    del rows["v100"][BIG][SMALL]


def _one_moves(rows: Body) -> None:
    rows["v100"][BIG][SMALL] = [1.0, 0.0]


def _alone(value: Any) -> Callable[[Body], None]:
    def change(rows: Body) -> None:
        rows["v100"][BIG]["null"] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_lack_job, "no throughput of 'small' with 1 devices"),
        (_lack_device, "job '0': no throughput of ('big', 1) on 'k80'"),
        (_lack_pairs, "no throughput of ('big', 1) next to ('small', 1) on 'v100'"),
        (_nothing, "job '1': ('small', 1) has speed 0 on every device type"),
        (_one_side, "is given from one side only"),
        (_one_moves, "only one of the two makes progress"),
        (_alone(-2.0), "field 'v100 / ('big', 1)': speed -2.0 is not possible"),
        (_alone("fast"), "field 'v100 / ('big', 1)': 'fast' is not a number"),
        (_alone(float("inf")), "speed inf is not possible"),
    ],
)
def test_a_table_that_cannot_be_is_named(change: Callable[[Body], None], words: str, cli: Cli, folder: Path) -> None:
    rows = body()
    change(rows)
    (folder / "speeds.json").write_text(json.dumps(rows))
    trace(("big", 400.0, 0.0), ("small", 400.0, 0.0)).save(folder / "jobs.csv")
    told = with_speeds(cli, "gavel.max_min_fairness_packed")
    assert told.code in (2, 3)
    assert words in told.err
    assert told.out == ""


def with_speeds(cli: Cli, policy: str, *more: str) -> Result:
    return cli(f"simulate jobs.csv --cluster {CLUSTER} --policy {policy} --regime gavel --throughputs speeds.json", *more)


@pytest.fixture
def world(folder: Path) -> Path:
    (folder / "speeds.json").write_text(json.dumps(body()))
    return folder


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ("v100=1", "no price for device type 'k80'"),
        ("v100=1,k80=free", "k80: 'free' is not a number"),
        ("v100=1,k80=-1", "price -1 is not above 0"),
        ("nowhere.csv", "prices nowhere.csv: no such file"),
    ],
)
def test_prices_that_are_missing_or_wrong_are_named(prices: str, words: str, cli: Cli, world: Path) -> None:
    trace(("big", 400.0, 0.0)).save(world / "jobs.csv")
    told = with_speeds(cli, "gavel.max_sum_throughput_normalized_by_cost_perf", "--prices", prices)
    assert told.code in (2, 3)
    assert words in told.err


def test_a_deadline_before_the_arrival_is_refused_with_its_line(cli: Cli, world: Path) -> None:
    trace(("big", 400.0, 0.0), ("big", 400.0, 100.0), deadline=[900.0, 950.0]).save(world / "jobs.csv")
    (world / "jobs.csv").write_text((world / "jobs.csv").read_text().replace("950.0", "50.0"))
    told = with_speeds(cli, "gavel.max_sum_throughput_normalized_by_cost_perf_SLOs", "--prices", "v100=1,k80=1")
    assert told.code == 2
    assert "jobs.csv:3: field 'deadline': deadline 50 is before the arrival at 100" in told.err


def test_a_trace_is_imported_by_a_table_and_mistakes_in_it_are_named(cli: Cli, world: Path) -> None:
    (world / "jobs.trace").write_text("big\tcmd\t.\t--n\t0\t800\t1\t1.0\t-1\t0\nsmall\tcmd\t.\t--n\t0\t600\t1\t1.0\t2\t5\n")
    told = cli("trace import gavel jobs.trace jobs.csv --throughputs speeds.json")
    assert told.code == 0, told.err
    assert with_speeds(cli, "gavel.isolated").code == 0
    rows = body()
    rows["v100"][BIG]["null"] = "fast"
    (world / "wrong.json").write_text(json.dumps(rows))
    told = cli("trace import gavel jobs.trace jobs.csv --throughputs wrong.json")
    assert told.code == 2
    assert "wrong.json: field 'v100 / ('big', 1)': 'fast' is no speed" in told.err
    assert "has no option 'throughputs'" in cli("trace import philly jobs.trace x.csv --throughputs wrong.json").err
