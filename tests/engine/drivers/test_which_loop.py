"""Every loop says whether it takes a run and why not; the summary and the command line report it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gantline import OrderPolicy, Plan, Snapshot, simulate
from gantline.cli.main import main
from gantline.core.inputs import NodeEvent

JOBS = [{"job": f"j{k}", "arrival": 10.0 * k, "gpus": 1 + k % 3, "duration": 50.0 + k} for k in range(6)]


@dataclass(frozen=True)
class Keyed(OrderPolicy):
    """A policy that is a key."""

    function: Callable[[Any], Any] = lambda snapshot: snapshot.jobs.arrival

    def key(self, snapshot: Snapshot) -> Any:
        return self.function(snapshot)


class Planning(Keyed):
    def decide(self, snapshot: Snapshot) -> Plan:
        return super().decide(snapshot)


class SometimesItsKey(Planning):
    def by_key(self) -> bool:
        return True


class AlsoPlans(SometimesItsKey):
    """Says nothing of its own decide()."""

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.rank(-self.key(snapshot))


class ForEver(Keyed):
    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf


class Soon(Keyed):
    def valid_until(self, snapshot: Snapshot) -> float:
        return snapshot.now + 30.0


def levels(snapshot: Any) -> Any:
    return np.searchsorted([40.0], snapshot.jobs.attained, side="right") * 1e9 + snapshot.jobs.arrival


def with_column(**more: Any) -> list[dict[str, Any]]:
    return [job | more for job in JOBS]


#: policy, what is told to `simulate`, the loop, why the next faster one did not run
RUNS: dict[str, tuple[Any, dict[str, Any], str, str]] = {
    "a sum of columns": ("srtf", {}, "records", ""),
    "backfilling": ("fifo", {"settings": {"backfill": "easy"}}, "records", ""),
    "a decide() that is its key": (SometimesItsKey(), {}, "records", ""),
    "several types": ("srtf", {"cluster": "a:1x3,b:1x3"}, "tables", "several device types"),
    "CPUs": ("srtf", {"trace": with_column(cpus=1.0), "cluster": "1x4/8c/64g"}, "tables", "CPUs, memory or storage"),
    "ways to run": ("srtf", {"trace": with_column(options="gpu:3=50|gpu:1=90")}, "tables", "several ways"),
    "a placement": ("srtf", {"placement": "random"}, "tables", "placement 'random'"),
    "evictions kept": ("srtf", {"regime": "blox", "round": 300.0}, "tables", "regime 'blox' keeps evictions"),
    "no sum": (Keyed(lambda s: np.sqrt(s.jobs.attained)), {}, "questions", "no sum of columns"),
    "a promise that is not kept": (ForEver(lambda s: s.jobs.attained), {}, "questions", "holds although it turns"),
    "levels on events": (Keyed(levels), {"round": None}, "questions", "levels and no valid_until"),
    "a loop over jobs": (Keyed(lambda s: [float(g) for g in s.jobs.gpus]), {}, "questions", "its key takes a loop over jobs"),
    "a mistake": (Keyed(lambda s: s.jobs.arrival / s.no_such_thing), {}, "steps", "must be asked for whole plans"),
    "a decide()": (Planning(), {}, "steps", "a decide() of its own"),
    "an inherited by_key()": (AlsoPlans(), {}, "steps", "a decide() of its own"),
    "a fixed time": (type("At", (Keyed,), {"valid_until": lambda self, snapshot: 90.0})(), {}, "questions", "its valid_until()"),
    "instants of its own": (Soon(lambda s: s.jobs.attained), {"round": None}, "questions", "its valid_until() names instants"),
    "backfilling on types": ("fifo", {"settings": {"backfill": "easy"}, "cluster": "a:1x3,b:1x3"}, "steps", "several device types"),
    "plans": ("fair-share", {}, "steps", "the policy makes plans"),
    "an executor": ("srtf", {"executor": "acknowledged"}, "steps", "an executor acknowledges"),
    "nodes": ("srtf", {"node_events": [NodeEvent(30.0, "node0", "drain")]}, "steps", "nodes change"),
    "a quota": ("srtf", {"admission": "quota:user=3"}, "tables", "quotas"),
    "learned estimates": ("srtf", {"estimates": "history"}, "steps", "estimates learn"),
    "latency": ("srtf", {"latency": 5.0}, "steps", "decisions take time"),
    "a record": ("srtf", {"record": True}, "steps", "the run is recorded"),
    "ticks": ("srtf", {"regime": "tiresias", "round": None}, "steps", "counts in ticks"),
    "victims": ("srtf", {"victims": "least-lost"}, "steps", "chosen by what they lose"),
    "an original": ("gavel.fifo", {"regime": "gavel", "cluster": "v100:2x2", "round": 360.0}, "imitation", "a loop of its own"),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_says_which_loop_it_took_and_why_no_faster_one(name: str) -> None:
    policy, options, loop, why = RUNS[name]
    options = {"trace": JOBS, "cluster": "2x4", "round": 60.0, **options}
    trace, cluster = options.pop("trace"), options.pop("cluster")
    summary = simulate(trace, cluster, policy, **options).summary
    assert summary["loop"] == loop
    assert why in next(reversed(summary["loop_refused"].values()), "")
    assert bool(summary["loop_refused"]) == (loop != "records")


def test_the_command_line_reports_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job,arrival,gpus,duration\na,0,1,10\nb,0,2,20\n", encoding="utf-8")
    line = ["simulate", str(jobs), "--cluster", "a:1x2,b:1x2", "--policy", "srtf", "-o", "json", "--explain-loop"]
    assert main(line) == 0
    assert capsys.readouterr().err == "gantline: loop: tables\ngantline: not records: there are several device types\n"
    assert main([*line, "--decision-latency", "5"]) == 0
    assert capsys.readouterr().err == "gantline: loop: steps\ngantline: not records, tables, questions: decisions take time\n"
