"""`gantline simulate`: the numbers, the files, the notes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Cli

from gantline import Trace, simulate

PROMISED = {
    "policy", "cluster", "regime", "seed", "jobs", "completed", "average_jct", "median_jct", "p95_jct", "p99_jct", "makespan",
    "average_queueing", "average_responsiveness", "utilization", "preemptions", "rounds", "decisions", "wall_seconds",
}  # fmt: skip
PER_JOB = {"job", "arrival", "first_start", "finish", "jct", "gpus", "preemptions", "restarts"}
LOTS = """
from gantline import Plan, Policy


class Lots(Policy):
    def decide(self, snapshot):
        return Plan.rank(snapshot.rng("lots").random(len(snapshot.jobs)))
"""

HOUR = """
from dataclasses import dataclass
from gantline import OrderPolicy

@dataclass(frozen=True)
class Hour(OrderPolicy):
    def key(self, snapshot):
        return snapshot.jobs.attained

    def valid_until(self, snapshot):
        return snapshot.now + 3600.0
"""
LIAR = """
import math
from dataclasses import dataclass
from gantline import OrderPolicy

@dataclass(frozen=True)
class Liar(OrderPolicy):
    def key(self, snapshot):
        return snapshot.jobs.attained

    def valid_until(self, snapshot):
        return math.inf
"""
BASE = "simulate jobs.csv --cluster 2x4"


def test_a_load_that_is_too_much_is_told(cli: Cli, folder: Path) -> None:
    rows = "".join(f"j{k},{k},1,1000\n" for k in range(150))
    (folder / "flood.csv").write_text(f"job,arrival,gpus,duration\n{rows}")
    told = cli("simulate flood.csv --cluster 2x4 --policy fifo -o json")
    assert (told.code, told.err.count("\n")) == (0, 1)
    assert "No steady state: jobs ask for 125.00 times the GPU time there is" in told.err


def test_json_is_one_object_with_every_promised_key(cli: Cli, folder: Path) -> None:
    told = cli(f"{BASE} --policy srtf --seed 7 --costs 5 -o json")
    assert told.code == 0
    assert told.err == ""
    assert told.json.keys() >= PROMISED
    assert told.json["policy"] == "srtf"
    assert told.json["cluster"] == "2x4"
    assert told.json["seed"] == 7
    assert told.json["jobs"] == told.json["completed"] == 5


def test_json_lists_device_types_and_queues_where_there_are_several(cli: Cli, folder: Path) -> None:
    (folder / "mixed.csv").write_text(
        "job,arrival,gpus,duration,type,queue\na,0,2,100,v100,research\nb,0,2,100,v100,research\nc,0,1,50,k80,service\n"
    )
    told = cli("simulate mixed.csv --cluster v100:1x2,k80:1x2 --policy fifo --set backfill=skip -o json").json
    assert [(one["type"], one["jobs"], one["queue_mean"], one["utilization"]) for one in told["types"]] == [
        ("v100", 2, 0.5, 1.0),
        ("k80", 1, 0.0, 0.125),
    ]
    assert [(one["queue"], one["jobs"], one["queueing_mean"]) for one in told["queues"]] == [("research", 2, 50.0), ("service", 1, 0.0)]
    assert not {"types", "queues"} & cli(f"{BASE} --policy fifo -o json").json.keys()


def test_the_command_and_the_function_agree(cli: Cli, folder: Path) -> None:
    told = cli(f"{BASE} --policy las --round 1m --placement consolidated -o json").json
    run = simulate("jobs.csv", "2x4", "las", round=60, placement="consolidated")
    assert told["log_hash"] == run.summary["log_hash"]
    assert told["average_jct"] == run.summary["average_jct"]


def test_a_generator_goes_wherever_a_trace_goes(cli: Cli, folder: Path) -> None:
    told = cli("simulate day --trace-set jobs=40 --cluster 8x8 --policy srtf --seed 2 -o json")
    assert told.json["trace_hash"] == Trace.generate("day", seed=2, jobs=40).hash
    assert simulate("day", "8x8", "srtf", seed=2).summary["jobs"] == 600
    assert cli("trace stats day --trace-set jobs=40 -o json").json["jobs"] == 40
    assert len(cli("trace sample day --jobs 2").out.splitlines()) == 3


def test_a_foreign_log_goes_wherever_a_trace_goes(cli: Cli, folder: Path) -> None:
    (folder / "plain.csv").write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n2020-01-01 00:01:40,60,2,120,a\n2020-01-01 00:02:40,30,1,30,a\n"
    )
    told = cli("simulate plain.csv --format philly-list --cluster 2x4 --policy fifo -o json")
    assert told.json["average_jct"] == 45.0
    assert Trace.load("plain.csv", format="philly-list").hash == told.json["trace_hash"]
    assert cli("trace stats plain.csv --format philly-list -o json").json["jobs"] == 2
    wrong = cli("simulate plain.csv --format slurm --cluster 2x4 --policy fifo")
    assert (wrong.code, "no trace format 'slurm' (did you mean 'sacct'?)" in wrong.err) == (3, True)
    wrong = cli("simulate dya --cluster 2x4 --policy fifo")
    assert (wrong.code, "no generator of that name (did you mean 'day'" in wrong.err) == (3, True)
    assert "no generator of that name (known: antman, blox" in cli("simulate nope --cluster 2x4 --policy fifo").err
    assert "nope.csv: no such file (check the path)" in cli("simulate nope.csv --cluster 2x4 --policy fifo").err


def test_columns_under_other_names_are_read_with_a_note(cli: Cli, folder: Path) -> None:
    (folder / "theirs.csv").write_text("job_id,submission_time,num_gpu,duration\na,0,1,10\nb,5,2,20\n")
    told = cli("simulate theirs.csv --cluster 2x4 --policy fifo -o json")
    assert told.json["average_jct"] == 15.0
    for pair in ("'job_id' to 'job'", "'submission_time' to 'arrival'", "'num_gpu' to 'gpus'"):
        assert f"note: renamed {pair}" in told.err
    assert cli("trace check theirs.csv").code == 0


def test_csv_is_a_header_and_a_row(cli: Cli, folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(cli(f"{BASE} --policy fifo -o csv").out)))
    assert len(rows) == 1
    assert rows[0]["policy"] == "fifo"
    assert json.loads(rows[0]["settings"]) == {"backfill": "none"}


def test_a_pipe_gets_a_line_per_key_without_colour(cli: Cli, folder: Path) -> None:
    told = cli(f"{BASE} --policy fifo")
    pairs = dict(line.split("\t") for line in told.out.splitlines())
    assert pairs.keys() >= PROMISED
    assert "\x1b" not in told.out


def test_a_person_gets_a_picture(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    told = cli(f"{BASE} --policy fifo")
    assert "Mean JCT" in told.out
    assert "5 jobs in" in told.out.replace("\x1b[0m", "").replace("\x1b[2m", "")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "csv.gz"])
def test_what_happened_to_each_job_is_written_by_ending(cli: Cli, folder: Path, ending: str) -> None:
    assert cli(f"{BASE} --policy srtf --jobs-out out.{ending}").code == 0
    read = {"csv": pl.read_csv, "csv.gz": pl.read_csv, "jsonl": pl.read_ndjson, "parquet": pl.read_parquet}[ending]
    frame = read(folder / f"out.{ending}")
    assert set(frame.columns) >= PER_JOB
    assert frame["job"].to_list() == ["a", "b", "c", "d", "e"]
    assert frame["jct"].to_list() == (frame["finish"] - frame["arrival"]).to_list()


def test_an_unfinished_job_leaves_its_cells_empty(cli: Cli, folder: Path) -> None:
    told = cli(f"{BASE} --policy fifo --until 45 --jobs-out jobs-out.csv")
    assert told.code == 0
    assert "jobs did not end" in told.err
    rows = {row["job"]: row for row in csv.DictReader((folder / "jobs-out.csv").open())}
    assert rows["d"]["finish"] == ""
    assert rows["a"]["state"] == "running"


def test_allocations_and_run_directories_are_written(cli: Cli, folder: Path) -> None:
    told = cli(f"{BASE} --policy srtf --allocations-out held.parquet --out runs/one")
    assert told.code == 0
    held = pl.read_parquet(folder / "held.parquet")
    assert {"job", "start", "end", "devices"} <= set(held.columns)
    assert json.loads((folder / "runs" / "one" / "summary.json").read_text())["summary"]["policy"] == "srtf"
    again = cli(f"{BASE} --policy fifo --out runs/one")
    assert again.code == 4
    assert "--replace" in again.err
    assert cli(f"{BASE} --policy fifo --out runs/one --replace").code == 0
    assert json.loads((folder / "runs" / "one" / "summary.json").read_text())["summary"]["policy"] == "fifo"


@pytest.mark.parametrize(
    ("target", "code", "part"),
    [("out.xlsx", 2, "no known format"), ("nowhere/out.csv", 3, "no folder 'nowhere'")],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(cli: Cli, folder: Path, target: str, code: int, part: str) -> None:
    told = cli(f"simulate missing.csv --cluster 2x4 --policy fifo --jobs-out {target}")
    assert told.code == code
    assert part in told.err


def test_settings_times_and_windows_reach_the_run(cli: Cli, folder: Path) -> None:
    shown = "--track 0:1 --costs start=5 --min-run 10s --admission load-limit:2 --estimates noisy:0.1 -o json"
    told = cli(f"{BASE} --policy tiresias --set limits=100,200 service=time --round 00:01:00 {shown}")
    assert told.code == 0, told.err
    assert told.json["settings"]["limits"] == [100.0, 200.0]
    assert told.json["settings"]["service"] == "time"
    assert told.json["round"] == 60.0
    assert told.json["tracked"] == 2
    assert told.json["admission"] == "load-limit:2"
    assert told.json["estimates"] == "noisy:0.1"


def test_a_decision_may_take_time(cli: Cli, folder: Path) -> None:
    prompt = cli(f"{BASE} --policy fifo -o json").json
    late = cli(f"{BASE} --policy fifo --decision-latency 5s -o json").json
    assert late["completed"] == 5
    assert late["average_jct"] > prompt["average_jct"]


def test_node_events_come_from_a_file(cli: Cli, folder: Path) -> None:
    (folder / "nodes.csv").write_text("time,node,event,gpus\n1m,node0,down,\n00:02:00,node0,up,\n150,spare,join,4\n")
    told = cli(f"{BASE} --policy fifo --set backfill=skip --node-events nodes.csv -o json")
    assert told.code == 0, told.err
    assert told.json["completed"] == 5
    assert told.json["restarts"] > 0


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("time,node\n1,node0\n", ["nodes.csv:1: field 'event'", "column 'event' is missing"]),
        ("time,node,event\n1,node0,explode\n", ["nodes.csv:2: field 'event'", "down, up, drain, join"]),
        ("time,node,event\nsoon,node0,down\n", ["nodes.csv:2: field 'time'", "'soon' is not a time"]),
        ("time,node,event\n1,node9,down\n", ["nodes.csv:2: field 'node'", "did you mean"]),
        ("time,node,event,gpus\n1,node0,join,4\n", ["nodes.csv:2", "is there already"]),
        ("time,node,event,gpu\n1,node0,down,4\n", ["nodes.csv:1", "unknown column 'gpu'", "'gpus'"]),
        ("time,node,event,gpus\n1,new,join,many\n", ["nodes.csv:2: field 'gpus'"]),
    ],
)
def test_a_mistake_in_node_events_is_named_by_line(cli: Cli, folder: Path, text: str, parts: list[str]) -> None:
    (folder / "nodes.csv").write_text(text)
    told = cli(f"{BASE} --policy fifo --node-events nodes.csv")
    assert told.code == 2
    for part in parts:
        assert part in told.err


def test_skipping_rounds_is_verified_by_stepping(cli: Cli, folder: Path) -> None:
    told = cli(f"{BASE} --policy las --round 10 --verify-skips -o json")
    assert told.code == 0
    assert "gives the same run" in told.err
    assert cli(f"{BASE} --policy las --verify-skips").code == 2


def test_a_policy_that_promises_too_much_is_caught_by_stepping(cli: Cli, folder: Path) -> None:
    (folder / "liar.py").write_text(LIAR)
    told = cli(f"{BASE} --policy liar.py --round 10 --verify-skips -o json")
    assert told.code == 1
    assert "skipping rounds changed the result" in told.err
    assert told.json["completed"] == 5


def test_a_hint_that_contradicts_a_compiled_key_is_caught_too(cli: Cli, folder: Path) -> None:
    """The simulator reads this key and finds by itself when the order changes; a service would ask, and believe the hour."""
    (folder / "hour.py").write_text(HOUR)
    told = cli(f"{BASE} --policy hour.py --round 10 --verify-skips -o json")
    assert told.code == 1
    assert "the policy's valid_until promises too much" in told.err
    (folder / "round.py").write_text(HOUR.replace("3600.0", "10.0"))
    assert cli(f"{BASE} --policy round.py --round 10 --verify-skips -o json").code == 0


def test_a_policy_that_draws_lots_is_not_blamed_for_hours_without_jobs(cli: Cli, folder: Path) -> None:
    """Chance depends on how many decisions there were; rounds in which nobody is there are none."""
    (folder / "lots.py").write_text(LOTS)
    (folder / "gap.csv").write_text("job,arrival,gpus,duration\na,0,1,300\nb,5000,1,300\nc,5010,2,300\nd,5020,1,900\n")
    told = cli("simulate gap.csv --cluster 1x2 --policy lots.py --round 60 --verify-skips")
    assert (told.code, "gives the same run" in told.err) == (0, True), told.err


def test_a_trace_that_answers_nothing_is_said_to(cli: Cli, folder: Path) -> None:
    told = cli("simulate jobs.csv --cluster 16x8 --policy fifo -o json")
    assert "no job had to wait (utilization " in told.err
    assert "no job had to wait" not in cli(f"{BASE} --policy fifo").err
