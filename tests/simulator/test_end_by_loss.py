"""Jobs that end when their loss says so, in simulation: their true work is cut, and policies do not know."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from gantline.cli.main import main
from gantline.core.columns import Job
from gantline.core.errors import GantlineError
from gantline.simulator.in_blocks import simulate_in_blocks
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate

LEVEL = "0:2|0.3:1|1:1"  # falls to 30 % of its work, then is level
STEADY = "0:2|1:1"  # falls to the end
RULE = "plateau:0.001@10"  # ends LEVEL at 40 %, ten reports after its last fall


def trace(*curves: str, duration: float = 1000.0, apart: float = 0.0) -> pl.DataFrame:
    count = len(curves)
    columns = {"arrival": [apart * k for k in range(count)], "gpus": [1] * count, "duration": [duration] * count}
    return pl.DataFrame({"job": [f"j{k}" for k in range(count)], **columns, "loss": list(curves)})


def told(run: Run) -> dict[str, tuple[float, str, bool]]:
    return {job: (jct, state, ended) for job, jct, state, ended in run.jobs.select("job", "jct", "state", "ended_by_loss").iter_rows()}


def test_a_job_ends_where_its_loss_has_been_level_for_the_window_and_others_run_on() -> None:
    run = simulate(trace(LEVEL, STEADY, ""), "1x4", "fifo", end_by=RULE)

    assert told(run) == {"j0": (400.0, "completed", True), "j1": (1000.0, "completed", False), "j2": (1000.0, "completed", False)}
    assert (run.summary["end_by"], run.summary["ended_by_loss"]) == (RULE, 1)


def test_a_target_ends_a_job_at_the_first_report_that_reaches_it() -> None:
    run = simulate(trace("start=2;floor=0;rate=10", STEADY, "0:2|1:1.8"), "1x4", "fifo", end_by="target:1.5")

    assert [round(jct) for jct, _, _ in told(run).values()] == [30, 500, 1000]  # 2 exp(-0.3) is the first below 1.5
    assert run.summary["ended_by_loss"] == 2


def test_a_loss_that_rises_counts_as_one_that_does_not_fall() -> None:
    assert told(simulate(trace("0:1|1:2"), "1x1", "fifo", end_by=RULE))["j0"] == (110.0, "completed", True)


def test_policies_go_by_the_whole_job() -> None:
    jobs = trace(LEVEL, STEADY).with_columns(duration=pl.Series([1000.0, 900.0]))

    run = simulate(jobs, "1x1", "srtf", end_by=RULE)

    # the first would be done after 400 s, which nobody knows: the second looks shorter and goes first
    assert run.jobs["first_start"].to_list() == [900.0, 0.0]
    assert run.jobs["finish"].to_list() == [1300.0, 900.0]


def test_without_a_rule_curves_change_nothing() -> None:
    jobs = trace(LEVEL, STEADY, apart=10.0)
    assert simulate(jobs, "1x1", "las").summary["log_hash"] == simulate(jobs.drop("loss"), "1x1", "las").summary["log_hash"]


def test_a_job_that_did_not_come_to_its_end_was_not_ended() -> None:
    run = simulate(trace(LEVEL, LEVEL), "1x1", "fifo", end_by=RULE, until=500.0)
    assert [ended for _, _, ended in told(run).values()] == [True, False]
    assert run.summary["ended_by_loss"] == 1


def test_history_learns_what_jobs_really_took() -> None:
    run = simulate(trace(LEVEL, LEVEL, apart=2000.0), "1x1", "srtf", estimates="history", end_by=RULE)
    assert run.tables.F[Job.ESTIMATE].tolist() == [3600.0, 400.0]  # nothing has ended when the first arrives


@pytest.mark.parametrize(
    ("jobs", "rule", "words"),
    [
        (trace(LEVEL).drop("loss"), RULE, "no job of this trace has a loss curve"),
        (trace("", ""), RULE, "no job of this trace has a loss curve"),
        (trace(LEVEL), "plateau:0.1%@100", r"never full: a simulated job reports its loss 100 times \(use .* plateau:0.1%@10\)"),
        (trace("falls"), "never", "'falls' is no loss curve"),
        (trace("0:2|0.5:nan"), "never", "has 'nan' where a number must stand"),
        (trace("0:2|0.5:1|0.5:0.9"), "never", "out of order, twice"),
        (trace("0:2|50:1"), "never", "outside 0 to 1"),
        (trace("0:2:3"), "never", "is no loss curve"),
        (trace("start=2;floor=1"), "never", "is no loss curve"),
        (trace("start=2;floor=1;rate=-3"), "never", "has a rate below zero"),
        (trace("start=2;floor=inf;rate=3"), "never", "has 'inf' where a number must stand"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(jobs: pl.DataFrame, rule: str, words: str) -> None:
    with pytest.raises(GantlineError, match=words):
        simulate(jobs, "1x1", "fifo", end_by=rule)


def test_a_run_in_blocks_refuses_the_rule(tmp_path: Path) -> None:
    trace(LEVEL).write_parquet(tmp_path / "jobs.parquet")
    with pytest.raises(GantlineError, match="does not support --end-by"):
        simulate_in_blocks(tmp_path / "jobs.parquet", "1x1", "fifo", end_by=RULE)


def test_the_command_line_has_it_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs, bad, out = tmp_path / "jobs.csv", tmp_path / "bad.csv", tmp_path / "ended.csv"
    trace(LEVEL, STEADY).write_csv(jobs)
    trace(STEADY, "down").write_csv(bad)
    run = ["simulate", str(jobs), "--cluster", "1x1", "--policy", "fifo", "--end-by", RULE]

    assert main([*run, "-o", "json", "--jobs-out", str(out), "--record", str(tmp_path / "r.jsonl")]) == 0
    assert json.loads(capsys.readouterr().out)["ended_by_loss"] == 1
    assert pl.read_csv(out)["ended_by_loss"].to_list() == [True, False]
    assert main(["replay", str(tmp_path / "r.jsonl")]) == 0
    assert main(["trace", "check", str(bad)]) != 0
    shown = capsys.readouterr()
    assert "bad.csv\t3\tloss\t'down' is no loss curve" in shown.out
